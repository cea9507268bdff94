// What a kernel in CUDA C++ sees: the items of its chunk, and views of what it
// declared. Included as "celerity.cuh"; needs no other header.
//
//     #include "celerity.cuh"
//     extern "C" __global__ void axpy(celerity::chunk<1> chunk,
//                                     celerity::view<const float, 1> x,
//                                     celerity::view<float, 1> y, float a) {
//         celerity::for_each_item(chunk, [&](celerity::item<1> item) {
//             y[item] += a * x[item];
//         });
//     }
//
// Parameters: the chunk, a view per access of the task in order, then values.
// Indices are those of the buffer, whatever part of it is on this GPU. The last
// dimension is contiguous, and is that of threadIdx.x.
//
// With CELERITY_CHECKED defined, views check every index against what the task
// declared for the chunk. An access outside is recorded and goes nowhere.
#pragma once

namespace celerity {

using size = unsigned long long;

// One point of the index space.
template <int D>
struct item {
    size id[D];     // in the whole index space, with its offset
    size range[D];  // of the whole index space
    __device__ size operator[](int dim) const { return id[dim]; }
};

// The part of the index space that this launch runs.
template <int D>
struct chunk {
    size offset[3];
    size range[3];
    size global[3];

    __device__ item<D> at(const size (&local)[D]) const {
        item<D> it;
        for (int dim = 0; dim < D; ++dim) {
            it.id[dim] = offset[dim] + local[dim];
            it.range[dim] = global[dim];
        }
        return it;
    }
};

#ifdef CELERITY_CHECKED
// Read by the runtime after each launch. Where nothing is wrong, `count` is 0.
constexpr int recorded_accesses = 16;
struct out_of_bounds {
    size count;
    size min[3];
    size max[3];  // inclusive
};
}  // namespace celerity
extern "C" {
__device__ celerity::out_of_bounds celerity_out_of_bounds[celerity::recorded_accesses];
}
namespace celerity {
#endif

// Elements of a buffer. `view<const T, D>` for what is only read.
template <class T, int D>
struct view {
    T* base;
    size access;     // its number among the task's accesses
    size min[3];     // of what the allocation holds
    size extent[3];
    size low[3];     // of what the chunk may touch
    size high[3];

    template <class... Index>
    __device__ T& operator()(Index... index) const {
        static_assert(sizeof...(Index) == D, "one index per dimension");
        const size at[D] = {static_cast<size>(index)...};
        return element(at);
    }
    __device__ T& operator[](const item<D>& it) const { return element(it.id); }
    __device__ T& operator[](size index) const {
        static_assert(D == 1, "one index is for one dimension");
        const size at[1] = {index};
        return element(at);
    }

    // The address of an element; those after it in the last dimension follow.
    __device__ T* pointer(const size (&at)[D]) const { return base + offset(at); }

  private:
    __device__ size offset(const size (&at)[D]) const {
        size sum = at[0] - min[0];
        for (int dim = 1; dim < D; ++dim) sum = sum * extent[dim] + (at[dim] - min[dim]);
        return sum;
    }

    __device__ T& element(const size (&at)[D]) const {
#ifdef CELERITY_CHECKED
        bool inside = true;
        for (int dim = 0; dim < D; ++dim) inside &= at[dim] >= low[dim] && at[dim] < high[dim];
        if (!inside) return astray(at);
#endif
        return base[offset(at)];
    }

#ifdef CELERITY_CHECKED
    __device__ T& astray(const size (&at)[D]) const {
        __shared__ alignas(T) unsigned char nowhere[sizeof(T)];
        out_of_bounds& record =
            celerity_out_of_bounds[access < recorded_accesses ? access : recorded_accesses - 1];
        // Kept as the distance from the top, so that zeroed memory is empty.
        for (int dim = 0; dim < D; ++dim) {
            atomicMax(&record.min[dim], ~size(0) - at[dim]);
            atomicMax(&record.max[dim], at[dim]);
        }
        atomicAdd(&record.count, size(1));
        return reinterpret_cast<T&>(nowhere);
    }
#endif
};

// Calls `body` with each item of the chunk: for launches of any size.
template <int D, class Body>
__device__ void for_each_item(const chunk<D>& part, Body body) {
    const size step[3] = {size(gridDim.x) * blockDim.x, size(gridDim.y) * blockDim.y,
                          size(gridDim.z) * blockDim.z};
    const size first[3] = {size(blockIdx.x) * blockDim.x + threadIdx.x,
                           size(blockIdx.y) * blockDim.y + threadIdx.y,
                           size(blockIdx.z) * blockDim.z + threadIdx.z};
    size local[D];
    if constexpr (D == 1) {
        for (local[0] = first[0]; local[0] < part.range[0]; local[0] += step[0])
            body(part.at(local));
    } else if constexpr (D == 2) {
        for (local[0] = first[1]; local[0] < part.range[0]; local[0] += step[1])
            for (local[1] = first[0]; local[1] < part.range[1]; local[1] += step[0])
                body(part.at(local));
    } else {
        for (local[0] = first[2]; local[0] < part.range[0]; local[0] += step[2])
            for (local[1] = first[1]; local[1] < part.range[1]; local[1] += step[1])
                for (local[2] = first[0]; local[2] < part.range[2]; local[2] += step[0])
                    body(part.at(local));
    }
}

// The threads of a block as a work-group: one item each.
template <int D>
struct group_item : item<D> {
    size group[D];  // which group
    size local[D];  // which item of it
    __device__ void barrier() const { __syncthreads(); }
};

template <int D>
__device__ size thread_of(int dim) {
    return dim == D - 1 ? threadIdx.x : dim == D - 2 ? threadIdx.y : threadIdx.z;
}

template <int D>
__device__ size width_of(int dim) {
    return dim == D - 1 ? blockDim.x : dim == D - 2 ? blockDim.y : blockDim.z;
}

// Calls `body` with each item of the chunk, all items of a group at the same
// time. Chunks consist of whole groups. Shared memory is free at the start.
template <int D, class Body>
__device__ void for_each_group(const chunk<D>& part, Body body) {
    size groups[D], total = 1;
    for (int dim = 0; dim < D; ++dim) {
        groups[dim] = part.range[dim] / width_of<D>(dim);
        total *= groups[dim];
    }
    for (size number = blockIdx.x; number < total; number += gridDim.x) {
        group_item<D> it;
        size rest = number;
        for (int dim = D - 1; dim >= 0; --dim) {
            const size first = (rest % groups[dim]) * width_of<D>(dim);
            rest /= groups[dim];
            it.local[dim] = thread_of<D>(dim);
            it.id[dim] = part.offset[dim] + first + it.local[dim];
            it.group[dim] = (part.offset[dim] + first) / width_of<D>(dim);
            it.range[dim] = part.global[dim];
        }
        body(it);
        __syncthreads();
    }
}

}  // namespace celerity

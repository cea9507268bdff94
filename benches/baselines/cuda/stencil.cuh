// What the stencils share: four cells of a row as 16 or 32 bytes, and the choice of a kernel and
// its blocks. Knows nothing of what is computed.
#pragma once

#include "common.cuh"

// Four cells side by side, at a multiple of 16 bytes.
template <class T>
struct alignas(16) Four {
    T x, y, z, w;
};

// One load of 16 bytes for single precision, two for double.
template <class T>
__device__ Four<T> four(const T* at)
{
    return *reinterpret_cast<const Four<T>*>(at);
}

template <class T>
__device__ void put(T* at, const Four<T>& cells)
{
    *reinterpret_cast<Four<T>*>(at) = cells;
}

// A shape of blocks, and planes that a thread goes through.
struct Shape {
    dim3 threads;
    int planes;
};

// How many of so many threads are needed for all.
inline int blocks(int total, int of) { return (total + of - 1) / of; }

// The seconds of all timed steps in the fastest of the shapes, each of which starts anew.
inline double fastest(const std::vector<Gpu>& gpus, const Options& options, const std::vector<Shape>& shapes,
                      const std::function<void()>& start, const std::function<void(const Shape&, int)>& step)
{
    double best = INFINITY;
    for (const Shape& shape : shapes) {
        start();
        best = std::min(best, timed(gpus, options, [&](int number) { step(shape, number); }));
    }
    return best;
}

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

// What a cell of a plane has of a field at its four sides.
template <class T>
struct Sides {
    T north, south, west, east;
};

// The same of one of so many columns (x) and rows (y): at its edges, the cell's own.
template <class T>
__device__ Sides<T> sides(const T* __restrict__ f, int y, int x, int2 size)
{
    const auto at = [&](int y, int x) { return f[static_cast<size_t>(y) * size.x + x]; };
    return {at(max(y - 1, 0), x), at(min(y + 1, size.y - 1), x), at(y, max(x - 1, 0)), at(y, min(x + 1, size.x - 1))};
}

// Four cells of a row, and what they have at their sides.
template <class T>
struct FourSides {
    Four<T> centre, north, south;
    T west, east;

    __device__ FourSides(const T* __restrict__ f, int y, int x, int2 size)
    {
        const auto at = [&](int y) { return f + static_cast<size_t>(y) * size.x + x; };
        centre = four(at(y));
        north = four(at(max(y - 1, 0)));
        south = four(at(min(y + 1, size.y - 1)));
        west = x > 0 ? at(y)[-1] : centre.x;
        east = x + 4 < size.x ? at(y)[4] : centre.w;
    }

    // Of the first to the fourth cell.
    __device__ Sides<T> first() const { return {north.x, south.x, west, centre.y}; }
    __device__ Sides<T> second() const { return {north.y, south.y, centre.x, centre.z}; }
    __device__ Sides<T> third() const { return {north.z, south.z, centre.y, centre.w}; }
    __device__ Sides<T> fourth() const { return {north.w, south.w, centre.z, east}; }
};

// Columns (x) and rows (y) of a plane: `--size` of both, or what `--columns` and `--rows` say.
inline int2 plane_size(const Options& options)
{
    const auto along = [&](const char* name) { return options.number(options.number(name) > 0 ? name : "size", 1); };
    return make_int2(along("columns"), along("rows"));
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

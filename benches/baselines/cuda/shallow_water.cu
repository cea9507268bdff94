// Waves on shallow water: what the kernels of `shallow_water` compute, on one GPU, by a thread for each cell (`plain`)
// and for four of a row (`row`). Of several shapes of blocks the fastest counts.

#include "stencil.cuh"

// Height, and flows along rows and along columns.
template <class T>
struct Cell {
    T h, u, v;
};

template <class T>
BOTH Cell<T> initial(int y, int x)
{
    const bool is_high = y / 16 % 4 == 0 && x / 16 % 4 == 0;
    return {static_cast<T>(is_high ? 0.5f + static_cast<float>((y + x) % 16) / 64.0f : 0.0f), 0, 0};
}

// Which of the three.
template <class T>
using Field = T Cell<T>::*;

template <class T>
BOTH T level(T centre, const Sides<T>& a, T smooth)
{
    return centre + smooth * (a.north + a.south + a.west + a.east - T(4) * centre);
}

template <class T>
BOTH Cell<T> next(const Cell<T>& cell, const Sides<T>& h, const Sides<T>& u, const Sides<T>& v, T rate, T smooth)
{
    return {level(cell.h, h, smooth) - rate * (u.east - u.west + v.south - v.north),
            level(cell.u, u, smooth) - rate * (h.east - h.west),
            level(cell.v, v, smooth) - rate * (h.south - h.north)};
}

template <class T>
__global__ void fill(T* h, T* u, T* v, int2 size)
{
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x;
    if (x >= size.x) return;
    const Cell<T> cell = initial<T>(y, x);
    const size_t at = static_cast<size_t>(y) * size.x + x;
    h[at] = cell.h;
    u[at] = cell.u;
    v[at] = cell.v;
}

template <class T>
__global__ void plain(T* __restrict__ next_h, T* __restrict__ next_u, T* __restrict__ next_v, const T* __restrict__ h,
                      const T* __restrict__ u, const T* __restrict__ v, int2 size, T rate, T smooth)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= size.x || y >= size.y) return;
    const size_t at = static_cast<size_t>(y) * size.x + x;
    const Cell<T> cell =
        next({h[at], u[at], v[at]}, sides(h, y, x, size), sides(u, y, x, size), sides(v, y, x, size), rate, smooth);
    next_h[at] = cell.h;
    next_u[at] = cell.u;
    next_v[at] = cell.v;
}

template <class T>
__global__ void row(T* __restrict__ next_h, T* __restrict__ next_u, T* __restrict__ next_v, const T* __restrict__ h,
                    const T* __restrict__ u, const T* __restrict__ v, int2 size, T rate, T smooth)
{
    const int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= size.x || y >= size.y) return;
    const FourSides<T> a(h, y, x, size), b(u, y, x, size), c(v, y, x, size);
    const auto cell = [&](T Four<T>::*which, Sides<T> (FourSides<T>::*sides)() const) {
        return next({a.centre.*which, b.centre.*which, c.centre.*which}, (a.*sides)(), (b.*sides)(), (c.*sides)(),
                    rate, smooth);
    };
    const Cell<T> first = cell(&Four<T>::x, &FourSides<T>::first), second = cell(&Four<T>::y, &FourSides<T>::second);
    const Cell<T> third = cell(&Four<T>::z, &FourSides<T>::third), fourth = cell(&Four<T>::w, &FourSides<T>::fourth);
    const size_t at = static_cast<size_t>(y) * size.x + x;
    put(next_h + at, {first.h, second.h, third.h, fourth.h});
    put(next_u + at, {first.u, second.u, third.u, fourth.u});
    put(next_v + at, {first.v, second.v, third.v, fourth.v});
}

// The same by plain loops: all heights, then all flows.
template <class T>
std::vector<T> reference(int2 size, int steps, T rate, T smooth)
{
    const size_t cells = static_cast<size_t>(size.y) * size.x;
    const auto index = [&](int y, int x) {
        return static_cast<size_t>(std::clamp(y, 0, size.y - 1)) * size.x + std::clamp(x, 0, size.x - 1);
    };
    std::vector<Cell<T>> now(cells), after(cells);
    const auto each = [&](auto cell) {
        for (int y = 0; y < size.y; ++y)
            for (int x = 0; x < size.x; ++x) after[index(y, x)] = cell(y, x);
        std::swap(now, after);
    };
    each(initial<T>);
    for (int step = 0; step < steps; ++step)
        each([&](int y, int x) {
            const auto around = [&](Field<T> of) {
                return Sides<T>{now[index(y - 1, x)].*of, now[index(y + 1, x)].*of, now[index(y, x - 1)].*of,
                                 now[index(y, x + 1)].*of};
            };
            return next(now[index(y, x)], around(&Cell<T>::h), around(&Cell<T>::u), around(&Cell<T>::v), rate, smooth);
        });
    std::vector<T> fields;
    for (const Field<T> of : {&Cell<T>::h, &Cell<T>::u, &Cell<T>::v})
        for (const Cell<T>& cell : now) fields.push_back(cell.*of);
    return fields;
}

template <class T>
void measure(const Options& options)
{
    const int2 size = plane_size(options);
    const std::string form = options.text("form");
    const T rate = T(0.125), smooth = T(0.125);
    const std::vector<Gpu> gpus = open_gpus(1);
    const Gpu& gpu = gpus.front();
    const size_t cells = static_cast<size_t>(size.y) * size.x;
    // One behind the other: h, u and v.
    Array<T> current = allocate<T>(gpu, 3 * cells), other = allocate<T>(gpu, 3 * cells);
    const auto start = [&] {
        T* h = current.get();
        fill<<<dim3(size.y, blocks(size.x, 256)), 256, 0, gpu.stream>>>(h, h + cells, h + 2 * cells, size);
        CHECK(cudaGetLastError());
    };
    const auto step = [&](const Shape& shape, int) {
        const dim3 grid(blocks(form == "row" ? size.x / 4 : size.x, shape.threads.x), blocks(size.y, shape.threads.y));
        const T* h = current.get();
        T* next_h = other.get();
        const auto kernel = form == "row" ? row<T> : plain<T>;
        kernel<<<grid, shape.threads, 0, gpu.stream>>>(next_h, next_h + cells, next_h + 2 * cells, h, h + cells,
                                                       h + 2 * cells, size, rate, smooth);
        CHECK(cudaGetLastError());
        std::swap(current, other);
    };
    const double seconds =
        fastest(gpus, options, {{{32, 4, 1}, 0}, {{32, 8, 1}, 0}, {{64, 4, 1}, 0}, {{16, 8, 1}, 0}}, start, step);
    uint64_t sum = 0;
    if (options.verify || options.checksum) {
        std::vector<T> fields(3 * cells);
        CHECK(cudaMemcpy(fields.data(), current.get(), 3 * cells * sizeof(T), cudaMemcpyDeviceToHost));
        if (options.verify) compare(fields, reference<T>(size, options.number("steps"), rate, smooth), 1e-5);
        if (options.checksum) sum = checksum(fields);
    }
    report(("shallow_water-" + form + "-" + options.text("precision")).c_str(), options, size.x, seconds,
           static_cast<double>(cells), "cells", sum);
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"size", "512"}, {"rows", "0"}, {"columns", "0"}, {"steps", "100"}, {"form", "row"}, {"precision", "single"}});
    const std::string form = options.text("form"), precision = options.text("precision");
    if (form != "plain" && form != "row") fail("--form is plain or row, not \"" + form + "\"");
    if (form == "row" && plane_size(options).x % 4 != 0)
        fail("rows must have a multiple of 4 cells, but for --form plain");
    if (precision == "single") measure<float>(options);
    else if (precision == "double") measure<double>(options);
    else fail("--precision is single or double, not \"" + precision + "\"");
}

// Heat in a box: what the kernels of `heat` compute, on one GPU, in three forms: a thread for each
// cell (`plain`), for four of a row (`row`), and for four of a row that goes through planes and keeps
// three of them in registers (`march`). Of several shapes of blocks the fastest counts.

#include "stencil.cuh"

template <class T>
BOTH T initial(int z, int y, int x, dim3 size)
{
    const bool is_warm = (z / 8 + y / 8 + x / 8) % 2 == 0;
    const float place = static_cast<float>(z + y + x) / static_cast<float>(size.x + size.y + size.z);
    return is_warm ? place : 0.0f;
}

template <class T>
BOTH T next(T centre, T above, T below, T north, T south, T west, T east, T rate)
{
    return centre + rate * (above + below + north + south + west + east - T(6) * centre);
}

template <class T>
__global__ void fill(T* u, dim3 size)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x < size.x) u[(static_cast<size_t>(z) * size.y + y) * size.x + x] = initial<T>(z, y, x, size);
}

template <class T>
__global__ void plain(T* __restrict__ after, const T* __restrict__ u, int3 size, T rate)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= size.x || y >= size.y || z >= size.z) return;
    const auto at = [&](int z, int y, int x) { return (static_cast<size_t>(z) * size.y + y) * size.x + x; };
    after[at(z, y, x)] =
        next(u[at(z, y, x)], u[at(max(z - 1, 0), y, x)], u[at(min(z + 1, size.z - 1), y, x)],
             u[at(z, max(y - 1, 0), x)], u[at(z, min(y + 1, size.y - 1), x)], u[at(z, y, max(x - 1, 0))],
             u[at(z, y, min(x + 1, size.x - 1))], rate);
}

// Four cells after a step.
template <class T>
__device__ Four<T> next_four(const Four<T>& c, const Four<T>& above, const Four<T>& below, const Four<T>& north,
                             const Four<T>& south, T west, T east, T rate)
{
    return {next(c.x, above.x, below.x, north.x, south.x, west, c.y, rate),
            next(c.y, above.y, below.y, north.y, south.y, c.x, c.z, rate),
            next(c.z, above.z, below.z, north.z, south.z, c.y, c.w, rate),
            next(c.w, above.w, below.w, north.w, south.w, c.z, east, rate)};
}

template <class T>
__global__ void row(T* __restrict__ after, const T* __restrict__ u, int3 size, T rate)
{
    const int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= size.x || y >= size.y || z >= size.z) return;
    const auto at = [&](int z, int y) { return (static_cast<size_t>(z) * size.y + y) * size.x + x; };
    const T* here = u + at(z, y);
    const Four<T> centre = four(here);
    const T west = x > 0 ? here[-1] : centre.x, east = x + 4 < size.x ? here[4] : centre.w;
    put(after + at(z, y),
        next_four(centre, four(u + at(max(z - 1, 0), y)), four(u + at(min(z + 1, size.z - 1), y)),
                  four(u + at(z, max(y - 1, 0))), four(u + at(z, min(y + 1, size.y - 1))), west, east, rate));
}

template <class T>
__global__ void march(T* __restrict__ after, const T* __restrict__ u, int3 size, T rate, int planes)
{
    const int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * planes;
    if (x >= size.x || y >= size.y) return;
    const size_t plane = static_cast<size_t>(size.y) * size.x, at = z * plane + static_cast<size_t>(y) * size.x + x;
    const ptrdiff_t north = y > 0 ? -size.x : 0, south = y + 1 < size.y ? size.x : 0;
    const T* here = u + at;
    T* out = after + at;
    Four<T> above = four(z > 0 ? here - plane : here), centre = four(here);
    for (const int end = min(z + planes, size.z); z < end; ++z, here += plane, out += plane) {
        const Four<T> below = z + 1 < size.z ? four(here + plane) : centre;
        const T west = x > 0 ? here[-1] : centre.x, east = x + 4 < size.x ? here[4] : centre.w;
        put(out, next_four(centre, above, below, four(here + north), four(here + south), west, east, rate));
        above = centre;
        centre = below;
    }
}

// The same by plain loops.
template <class T>
std::vector<T> reference(int3 size, int steps, T rate)
{
    const auto at = [&](int z, int y, int x) { return (static_cast<size_t>(z) * size.y + y) * size.x + x; };
    std::vector<T> u(at(size.z, 0, 0)), after(u.size());
    const auto each = [&](auto cell) {
        for (int z = 0; z < size.z; ++z)
            for (int y = 0; y < size.y; ++y)
                for (int x = 0; x < size.x; ++x) after[at(z, y, x)] = cell(z, y, x);
        std::swap(u, after);
    };
    each([&](int z, int y, int x) { return initial<T>(z, y, x, dim3(size.x, size.y, size.z)); });
    for (int step = 0; step < steps; ++step)
        each([&](int z, int y, int x) {
            return next(u[at(z, y, x)], u[at(std::max(z - 1, 0), y, x)], u[at(std::min(z + 1, size.z - 1), y, x)],
                        u[at(z, std::max(y - 1, 0), x)], u[at(z, std::min(y + 1, size.y - 1), x)],
                        u[at(z, y, std::max(x - 1, 0))], u[at(z, y, std::min(x + 1, size.x - 1))], rate);
        });
    return u;
}

template <class T>
void measure(const Options& options, int3 size)
{
    const std::string form = options.text("form");
    const std::vector<Gpu> gpus = open_gpus(1);
    const Gpu& gpu = gpus.front();
    const T rate = T(0.125);
    const size_t cells = static_cast<size_t>(size.z) * size.y * size.x;
    Array<T> u = allocate<T>(gpu, cells), after = allocate<T>(gpu, cells);
    const auto start = [&] {
        const dim3 grid(blocks(size.x, 256), size.y, size.z);
        fill<<<grid, 256, 0, gpu.stream>>>(u.get(), dim3(size.x, size.y, size.z));
        CHECK(cudaGetLastError());
    };
    const auto step = [&](const Shape& shape, int) {
        const int columns = form == "plain" ? size.x : size.x / 4, planes = shape.planes > 0 ? shape.planes : shape.threads.z;
        const dim3 grid(blocks(columns, shape.threads.x), blocks(size.y, shape.threads.y), blocks(size.z, planes));
        if (form == "plain") plain<<<grid, shape.threads, 0, gpu.stream>>>(after.get(), u.get(), size, rate);
        else if (form == "row") row<<<grid, shape.threads, 0, gpu.stream>>>(after.get(), u.get(), size, rate);
        else march<<<grid, shape.threads, 0, gpu.stream>>>(after.get(), u.get(), size, rate, planes);
        CHECK(cudaGetLastError());
        std::swap(u, after);
    };
    std::vector<Shape> shapes;
    if (form == "plain") shapes = {{{32, 8, 1}, 0}, {{64, 4, 1}, 0}, {{128, 2, 1}, 0}, {{32, 4, 4}, 0}};
    if (form == "row") shapes = {{{32, 4, 1}, 0}, {{16, 8, 1}, 0}, {{32, 4, 2}, 0}, {{16, 8, 2}, 0}};
    if (form == "march") shapes = {{{32, 4, 1}, 8}, {{16, 8, 1}, 8}, {{32, 8, 1}, 8}, {{32, 4, 1}, 32}, {{32, 8, 1}, 32}};
    const double seconds = fastest(gpus, options, shapes, start, step);
    uint64_t sum = 0;
    if (options.verify || options.checksum) {
        std::vector<T> field(cells);
        CHECK(cudaMemcpy(field.data(), u.get(), cells * sizeof(T), cudaMemcpyDeviceToHost));
        if (options.verify) compare(field, reference(size, options.number("steps"), rate), 1e-5);
        if (options.checksum) sum = checksum(field);
    }
    report(("heat-" + form + "-" + options.text("precision")).c_str(), options, size.x, seconds,
           static_cast<double>(cells), "cells", sum);
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"planes", "128"}, {"rows", "128"}, {"columns", "128"}, {"steps", "100"},
                                       {"form", "row"}, {"precision", "single"}});
    const int3 size = make_int3(options.number("columns", 1), options.number("rows", 1), options.number("planes", 1));
    const std::string form = options.text("form"), precision = options.text("precision");
    if (form != "plain" && form != "row" && form != "march") fail("--form is plain, row or march, not \"" + form + "\"");
    if (form != "plain" && size.x % 4 != 0) fail("--columns must be a multiple of 4, but for --form plain");
    if (precision == "single") measure<float>(options, size);
    else if (precision == "double") measure<double>(options, size);
    else fail("--precision is single or double, not \"" + precision + "\"");
}

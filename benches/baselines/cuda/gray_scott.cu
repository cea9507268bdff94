// Gray and Scott's reaction: what the kernels of `gray_scott` compute, on one GPU, by a thread for
// each cell (`plain`) and for four of a row (`row`). Of several shapes of blocks the fastest counts.

#include "stencil.cuh"

struct Rates {
    float spread_u, spread_v, feed, kill;
};

constexpr Rates SPOTS = {0.2f, 0.1f, 0.037f, 0.06f};

struct Cell {
    float u, v;
};

BOTH Cell initial(int y, int x)
{
    const bool is_seed = y % 64 / 8 == 3 && x % 64 / 8 == (y / 64) % 8;
    return is_seed ? Cell{0.5f, 0.25f} : Cell{1.0f, 0.0f};
}

BOTH float more(float centre, const Sides<float>& a) { return a.north + a.south + a.west + a.east - 4.0f * centre; }

BOTH Cell next(float u, float v, const Sides<float>& around_u, const Sides<float>& around_v, const Rates& rates)
{
    const float reaction = u * v * v;
    return {u + (rates.spread_u * more(u, around_u) - reaction + rates.feed * (1.0f - u)),
            v + (rates.spread_v * more(v, around_v) + reaction - (rates.feed + rates.kill) * v)};
}

// Both fields.
struct Fields {
    float *u, *v;
};

__global__ void fill(Fields fields, int2 size)
{
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x;
    if (x >= size.x) return;
    const Cell cell = initial(y, x);
    const size_t at = static_cast<size_t>(y) * size.x + x;
    fields.u[at] = cell.u;
    fields.v[at] = cell.v;
}

__global__ void plain(float* __restrict__ next_u, float* __restrict__ next_v, const float* __restrict__ u,
                      const float* __restrict__ v, int2 size, Rates rates)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= size.x || y >= size.y) return;
    const size_t at = static_cast<size_t>(y) * size.x + x;
    const Cell cell = next(u[at], v[at], sides(u, y, x, size), sides(v, y, x, size), rates);
    next_u[at] = cell.u;
    next_v[at] = cell.v;
}

__global__ void row(float* __restrict__ next_u, float* __restrict__ next_v, const float* __restrict__ u,
                    const float* __restrict__ v, int2 size, Rates rates)
{
    const int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= size.x || y >= size.y) return;
    const FourSides<float> a(u, y, x, size), b(v, y, x, size);
    const auto cell = [&](float Four<float>::*which, Sides<float> (FourSides<float>::*sides)() const) {
        return next(a.centre.*which, b.centre.*which, (a.*sides)(), (b.*sides)(), rates);
    };
    const Cell first = cell(&Four<float>::x, &FourSides<float>::first), second = cell(&Four<float>::y, &FourSides<float>::second);
    const Cell third = cell(&Four<float>::z, &FourSides<float>::third), fourth = cell(&Four<float>::w, &FourSides<float>::fourth);
    const size_t at = static_cast<size_t>(y) * size.x + x;
    put(next_u + at, {first.u, second.u, third.u, fourth.u});
    put(next_v + at, {first.v, second.v, third.v, fourth.v});
}

// The same by plain loops: all of u, then all of v.
std::vector<float> reference(int2 size, int steps)
{
    const size_t cells = static_cast<size_t>(size.y) * size.x;
    std::vector<float> u(cells), v(cells), next_u(cells), next_v(cells);
    const auto each = [&](auto cell) {
        for (int y = 0; y < size.y; ++y)
            for (int x = 0; x < size.x; ++x) {
                const Cell after = cell(y, x);
                next_u[static_cast<size_t>(y) * size.x + x] = after.u;
                next_v[static_cast<size_t>(y) * size.x + x] = after.v;
            }
        std::swap(u, next_u);
        std::swap(v, next_v);
    };
    each([&](int y, int x) { return initial(y, x); });
    for (int step = 0; step < steps; ++step)
        each([&](int y, int x) {
            const auto at = [&](const std::vector<float>& f, int y, int x) {
                return f[static_cast<size_t>(std::clamp(y, 0, size.y - 1)) * size.x + std::clamp(x, 0, size.x - 1)];
            };
            const auto around = [&](const std::vector<float>& f) {
                return Sides<float>{at(f, y - 1, x), at(f, y + 1, x), at(f, y, x - 1), at(f, y, x + 1)};
            };
            return next(at(u, y, x), at(v, y, x), around(u), around(v), SPOTS);
        });
    u.insert(u.end(), v.begin(), v.end());
    return u;
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"size", "512"}, {"rows", "0"}, {"columns", "0"}, {"steps", "100"}, {"form", "row"}});
    const int2 size = plane_size(options);
    const std::string form = options.text("form");
    if (form != "plain" && form != "row") fail("--form is plain or row, not \"" + form + "\"");
    if (form == "row" && size.x % 4 != 0) fail("rows must have a multiple of 4 cells, but for --form plain");
    const std::vector<Gpu> gpus = open_gpus(1);
    const Gpu& gpu = gpus.front();
    const size_t cells = static_cast<size_t>(size.y) * size.x;
    // One behind the other: u, and v.
    Array<float> current = allocate<float>(gpu, 2 * cells), other = allocate<float>(gpu, 2 * cells);
    const auto start = [&] {
        fill<<<dim3(size.y, blocks(size.x, 256)), 256, 0, gpu.stream>>>({current.get(), current.get() + cells}, size);
        CHECK(cudaGetLastError());
    };
    const auto step = [&](const Shape& shape, int) {
        const int columns = form == "row" ? size.x / 4 : size.x;
        const dim3 threads = shape.threads, grid(blocks(columns, threads.x), blocks(size.y, threads.y));
        const float* u = current.get();
        float* next_u = other.get();
        const auto kernel = form == "row" ? row : plain;
        kernel<<<grid, threads, 0, gpu.stream>>>(next_u, next_u + cells, u, u + cells, size, SPOTS);
        CHECK(cudaGetLastError());
        std::swap(current, other);
    };
    const double seconds =
        fastest(gpus, options, {{{32, 4, 1}, 0}, {{32, 8, 1}, 0}, {{64, 4, 1}, 0}, {{16, 8, 1}, 0}}, start, step);
    uint64_t sum = 0;
    if (options.verify || options.checksum) {
        std::vector<float> field(2 * cells);
        CHECK(cudaMemcpy(field.data(), current.get(), 2 * cells * sizeof(float), cudaMemcpyDeviceToHost));
        if (options.verify) compare(field, reference(size, options.number("steps")), 1e-4);
        if (options.checksum) sum = checksum(field);
    }
    report(("gray_scott-" + form).c_str(), options, size.x, seconds, static_cast<double>(cells), "cells", sum);
}

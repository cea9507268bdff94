// Means over a cell and all that touch it: what the kernels of `means` compute, 9 cells on a plane (`--shape square`) or
// 27 in space (`cube`), on one GPU, in three forms: a thread for each cell (`plain`), for four of a row (`row`), and, in
// space, for four of a row that goes through planes and keeps what it sees of three of them in registers (`march`).
// Of several shapes of blocks the fastest counts.

#include "stencil.cuh"

// At the start: blocks of 8³ cells, of which every other one is warm.
BOTH float initial(int z, int y, int x)
{
    return (z / 8 + y / 8 + x / 8) % 2 == 0 ? 0.25f + static_cast<float>((z + y + x) % 64) : 0.0f;
}

__global__ void fill(float* u, int3 size)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x < size.x) u[(static_cast<size_t>(z) * size.y + y) * size.x + x] = initial(z, y, x);
}

// The planes around: its own one of a square, three of a cube.
template <bool CUBE>
constexpr int AROUND = CUBE ? 1 : 0;

template <bool CUBE>
constexpr float SHARE = 1.0f / (CUBE ? 27.0f : 9.0f);

template <bool CUBE>
__global__ void plain(float* __restrict__ after, const float* __restrict__ u, int3 size)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= size.x || y >= size.y || z >= size.z) return;
    float sum = 0.0f;
#pragma unroll
    for (int dz = -AROUND<CUBE>; dz <= AROUND<CUBE>; ++dz)
#pragma unroll
        for (int dy = -1; dy <= 1; ++dy) {
            const size_t plane = min(max(z + dz, 0), size.z - 1);
            const float* line = u + (plane * size.y + min(max(y + dy, 0), size.y - 1)) * size.x;
            sum = sum + line[max(x - 1, 0)] + line[x] + line[min(x + 1, size.x - 1)];
        }
    after[(static_cast<size_t>(z) * size.y + y) * size.x + x] = sum * SHARE<CUBE>;
}

// Four cells of a row, and those beside them.
struct Strip {
    Four<float> cells;
    float west, east;

    Strip() = default;

    __device__ Strip(const float* __restrict__ here, int x, int columns) : cells(four(here))
    {
        west = x > 0 ? here[-1] : cells.x;
        east = x + 4 < columns ? here[4] : cells.w;
    }

    __device__ void add_to(Four<float>& sums) const
    {
        sums.x = sums.x + west + cells.x + cells.y;
        sums.y = sums.y + cells.x + cells.y + cells.z;
        sums.z = sums.z + cells.y + cells.z + cells.w;
        sums.w = sums.w + cells.z + cells.w + east;
    }
};

// What four cells see of a plane.
struct Strips {
    Strip rows[3];

    Strips() = default;

    // `north` and `south` say how far those rows are.
    __device__ Strips(const float* __restrict__ here, ptrdiff_t north, ptrdiff_t south, int x, int columns)
        : rows{{here + north, x, columns}, {here, x, columns}, {here + south, x, columns}}
    {
    }

    __device__ void add_to(Four<float>& sums) const
    {
        for (int row = 0; row < 3; ++row) rows[row].add_to(sums);
    }
};

template <bool CUBE>
__device__ Four<float> share(const Four<float>& sums)
{
    return {sums.x * SHARE<CUBE>, sums.y * SHARE<CUBE>, sums.z * SHARE<CUBE>, sums.w * SHARE<CUBE>};
}

template <bool CUBE>
__global__ void row(float* __restrict__ after, const float* __restrict__ u, int3 size)
{
    const int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= size.x || y >= size.y || z >= size.z) return;
    const ptrdiff_t north = y > 0 ? -size.x : 0, south = y + 1 < size.y ? size.x : 0;
    const auto at = [&](int z) { return (static_cast<size_t>(z) * size.y + y) * size.x + x; };
    Four<float> sums{};
#pragma unroll
    for (int dz = -AROUND<CUBE>; dz <= AROUND<CUBE>; ++dz)
        Strips(u + at(min(max(z + dz, 0), size.z - 1)), north, south, x, size.x).add_to(sums);
    put(after + at(z), share<CUBE>(sums));
}

__global__ void march(float* __restrict__ after, const float* __restrict__ u, int3 size, int planes)
{
    const int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * planes;
    if (x >= size.x || y >= size.y) return;
    const ptrdiff_t north = y > 0 ? -size.x : 0, south = y + 1 < size.y ? size.x : 0;
    const size_t plane = static_cast<size_t>(size.y) * size.x, at = z * plane + static_cast<size_t>(y) * size.x + x;
    const float* here = u + at;
    float* out = after + at;
    Strips above(z > 0 ? here - plane : here, north, south, x, size.x), centre(here, north, south, x, size.x);
    for (const int end = min(z + planes, size.z); z < end; ++z, here += plane, out += plane) {
        const Strips below(z + 1 < size.z ? here + plane : here, north, south, x, size.x);
        Four<float> sums{};
        above.add_to(sums);
        centre.add_to(sums);
        below.add_to(sums);
        put(out, share<true>(sums));
        above = centre;
        centre = below;
    }
}

// The same by plain loops.
std::vector<float> reference(int3 size, int steps, bool cube)
{
    const auto at = [&](int z, int y, int x) {
        const size_t plane = std::clamp(z, 0, size.z - 1);
        return (plane * size.y + std::clamp(y, 0, size.y - 1)) * size.x + std::clamp(x, 0, size.x - 1);
    };
    std::vector<float> u(static_cast<size_t>(size.z) * size.y * size.x), after(u.size());
    const auto each = [&](auto cell) {
        for (int z = 0; z < size.z; ++z)
            for (int y = 0; y < size.y; ++y)
                for (int x = 0; x < size.x; ++x) after[at(z, y, x)] = cell(z, y, x);
        std::swap(u, after);
    };
    each(initial);
    const int around = cube ? 1 : 0;
    const float share = cube ? SHARE<true> : SHARE<false>;
    for (int step = 0; step < steps; ++step)
        each([&](int z, int y, int x) {
            float sum = 0.0f;
            for (int dz = -around; dz <= around; ++dz)
                for (int dy = -1; dy <= 1; ++dy)
                    for (int dx = -1; dx <= 1; ++dx) sum += u[at(z + dz, y + dy, x + dx)];
            return sum * share;
        });
    return u;
}

template <bool CUBE>
void launch(const std::string& form, const Shape& shape, const Gpu& gpu, float* after, const float* u, int3 size)
{
    const int columns = form == "plain" ? size.x : size.x / 4, planes = shape.planes > 0 ? shape.planes : shape.threads.z;
    const dim3 grid(blocks(columns, shape.threads.x), blocks(size.y, shape.threads.y), blocks(size.z, planes));
    if (form == "plain") plain<CUBE><<<grid, shape.threads, 0, gpu.stream>>>(after, u, size);
    else if (form == "row") row<CUBE><<<grid, shape.threads, 0, gpu.stream>>>(after, u, size);
    else march<<<grid, shape.threads, 0, gpu.stream>>>(after, u, size, planes);
    CHECK(cudaGetLastError());
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"planes", "128"}, {"rows", "128"}, {"columns", "128"}, {"steps", "100"},
                                       {"form", "row"}, {"shape", "cube"}});
    const std::string form = options.text("form"), shape = options.text("shape");
    if (shape != "square" && shape != "cube") fail("--shape is square or cube, not \"" + shape + "\"");
    const bool cube = shape == "cube";
    const int3 size =
        make_int3(options.number("columns", 1), options.number("rows", 1), cube ? options.number("planes", 1) : 1);
    if (form != "plain" && form != "row" && !(form == "march" && cube))
        fail("--form is plain, row or, of a cube, march, not \"" + form + "\"");
    if (form != "plain" && size.x % 4 != 0) fail("--columns must be a multiple of 4, but for --form plain");
    const std::vector<Gpu> gpus = open_gpus(1);
    const Gpu& gpu = gpus.front();
    const size_t cells = static_cast<size_t>(size.z) * size.y * size.x;
    Array<float> u = allocate<float>(gpu, cells), after = allocate<float>(gpu, cells);
    const auto start = [&] {
        fill<<<dim3(blocks(size.x, 256), size.y, size.z), 256, 0, gpu.stream>>>(u.get(), size);
        CHECK(cudaGetLastError());
    };
    const auto step = [&](const Shape& shape, int) {
        if (cube) launch<true>(form, shape, gpu, after.get(), u.get(), size);
        else launch<false>(form, shape, gpu, after.get(), u.get(), size);
        std::swap(u, after);
    };
    std::vector<Shape> shapes = {{{32, 4, 1}, 0}, {{32, 8, 1}, 0}, {{64, 4, 1}, 0}, {{16, 8, 1}, 0}, {{128, 2, 1}, 0}};
    if (cube && form != "march") shapes.insert(shapes.end(), {{{32, 4, 2}, 0}, {{16, 8, 2}, 0}});
    if (form == "march") shapes = {{{32, 4, 1}, 8}, {{16, 8, 1}, 8}, {{32, 8, 1}, 8}, {{32, 4, 1}, 32}, {{32, 8, 1}, 32}};
    const double seconds = fastest(gpus, options, shapes, start, step);
    uint64_t sum = 0;
    if (options.verify || options.checksum) {
        std::vector<float> field(cells);
        CHECK(cudaMemcpy(field.data(), u.get(), cells * sizeof(float), cudaMemcpyDeviceToHost));
        if (options.verify) compare(field, reference(size, options.number("steps"), cube), 1e-5);
        if (options.checksum) sum = checksum(field);
    }
    report(("means-" + shape + "-" + form).c_str(), options, size.x, seconds, static_cast<double>(cells), "cells", sum);
}

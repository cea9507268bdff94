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

template <class T>
__global__ void fill(T* u, int3 size)
{
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x, z = blockIdx.z;
    if (x < size.x) u[(static_cast<size_t>(z) * size.y + y) * size.x + x] = initial(z, y, x);
}

// The planes around: its own one of a square, three of a cube.
template <bool CUBE>
constexpr int AROUND = CUBE ? 1 : 0;

template <class T, bool CUBE>
constexpr T SHARE = T(1) / T(CUBE ? 27 : 9);

template <class T, bool CUBE>
__global__ void plain(T* __restrict__ after, const T* __restrict__ u, int3 size)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= size.x || y >= size.y || z >= size.z) return;
    T sum = 0;
#pragma unroll
    for (int dz = -AROUND<CUBE>; dz <= AROUND<CUBE>; ++dz)
#pragma unroll
        for (int dy = -1; dy <= 1; ++dy) {
            const size_t plane = min(max(z + dz, 0), size.z - 1);
            const T* line = u + (plane * size.y + min(max(y + dy, 0), size.y - 1)) * size.x;
            sum = sum + line[max(x - 1, 0)] + line[x] + line[min(x + 1, size.x - 1)];
        }
    after[(static_cast<size_t>(z) * size.y + y) * size.x + x] = sum * SHARE<T, CUBE>;
}

// Four cells of a row, and those beside them.
template <class T>
struct Strip {
    Four<T> cells;
    T west, east;

    Strip() = default;

    __device__ Strip(const T* __restrict__ here, int x, int columns) : cells(four(here))
    {
        west = x > 0 ? here[-1] : cells.x;
        east = x + 4 < columns ? here[4] : cells.w;
    }

    __device__ void add_to(Four<T>& sums) const
    {
        sums.x = sums.x + west + cells.x + cells.y;
        sums.y = sums.y + cells.x + cells.y + cells.z;
        sums.z = sums.z + cells.y + cells.z + cells.w;
        sums.w = sums.w + cells.z + cells.w + east;
    }
};

// What four cells see of a plane.
template <class T>
struct Strips {
    Strip<T> rows[3];

    Strips() = default;

    // `north` and `south` say how far those rows are.
    __device__ Strips(const T* __restrict__ here, ptrdiff_t north, ptrdiff_t south, int x, int columns)
        : rows{{here + north, x, columns}, {here, x, columns}, {here + south, x, columns}}
    {
    }

    __device__ void add_to(Four<T>& sums) const
    {
        for (int row = 0; row < 3; ++row) rows[row].add_to(sums);
    }
};

template <bool CUBE, class T>
__device__ Four<T> share(const Four<T>& sums)
{
    return {sums.x * SHARE<T, CUBE>, sums.y * SHARE<T, CUBE>, sums.z * SHARE<T, CUBE>, sums.w * SHARE<T, CUBE>};
}

template <class T, bool CUBE>
__global__ void row(T* __restrict__ after, const T* __restrict__ u, int3 size)
{
    const int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= size.x || y >= size.y || z >= size.z) return;
    const ptrdiff_t north = y > 0 ? -size.x : 0, south = y + 1 < size.y ? size.x : 0;
    const auto at = [&](int z) { return (static_cast<size_t>(z) * size.y + y) * size.x + x; };
    Four<T> sums{};
#pragma unroll
    for (int dz = -AROUND<CUBE>; dz <= AROUND<CUBE>; ++dz)
        Strips<T>(u + at(min(max(z + dz, 0), size.z - 1)), north, south, x, size.x).add_to(sums);
    put(after + at(z), share<CUBE>(sums));
}

template <class T>
__global__ void march(T* __restrict__ after, const T* __restrict__ u, int3 size, int planes)
{
    const int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * planes;
    if (x >= size.x || y >= size.y) return;
    const ptrdiff_t north = y > 0 ? -size.x : 0, south = y + 1 < size.y ? size.x : 0;
    const size_t plane = static_cast<size_t>(size.y) * size.x, at = z * plane + static_cast<size_t>(y) * size.x + x;
    const T* here = u + at;
    T* out = after + at;
    Strips<T> above(z > 0 ? here - plane : here, north, south, x, size.x), centre(here, north, south, x, size.x);
    for (const int end = min(z + planes, size.z); z < end; ++z, here += plane, out += plane) {
        const Strips<T> below(z + 1 < size.z ? here + plane : here, north, south, x, size.x);
        Four<T> sums{};
        above.add_to(sums);
        centre.add_to(sums);
        below.add_to(sums);
        put(out, share<true>(sums));
        above = centre;
        centre = below;
    }
}

// The same by plain loops.
template <class T>
std::vector<T> reference(int3 size, int steps, bool cube)
{
    const auto at = [&](int z, int y, int x) {
        const size_t plane = std::clamp(z, 0, size.z - 1);
        return (plane * size.y + std::clamp(y, 0, size.y - 1)) * size.x + std::clamp(x, 0, size.x - 1);
    };
    std::vector<T> u(static_cast<size_t>(size.z) * size.y * size.x), after(u.size());
    const auto each = [&](auto cell) {
        for (int z = 0; z < size.z; ++z)
            for (int y = 0; y < size.y; ++y)
                for (int x = 0; x < size.x; ++x) after[at(z, y, x)] = cell(z, y, x);
        std::swap(u, after);
    };
    each(initial);
    const int around = cube ? 1 : 0;
    const T share = cube ? SHARE<T, true> : SHARE<T, false>;
    for (int step = 0; step < steps; ++step)
        each([&](int z, int y, int x) {
            T sum = 0;
            for (int dz = -around; dz <= around; ++dz)
                for (int dy = -1; dy <= 1; ++dy)
                    for (int dx = -1; dx <= 1; ++dx) sum += u[at(z + dz, y + dy, x + dx)];
            return sum * share;
        });
    return u;
}

template <bool CUBE, class T>
void launch(const std::string& form, const Shape& shape, const Gpu& gpu, T* after, const T* u, int3 size)
{
    const int columns = form == "plain" ? size.x : size.x / 4, planes = shape.planes > 0 ? shape.planes : shape.threads.z;
    const dim3 grid(blocks(columns, shape.threads.x), blocks(size.y, shape.threads.y), blocks(size.z, planes));
    if (form == "plain") plain<T, CUBE><<<grid, shape.threads, 0, gpu.stream>>>(after, u, size);
    else if (form == "row") row<T, CUBE><<<grid, shape.threads, 0, gpu.stream>>>(after, u, size);
    else march<<<grid, shape.threads, 0, gpu.stream>>>(after, u, size, planes);
    CHECK(cudaGetLastError());
}

template <class T>
void measure(const Options& options, int3 size)
{
    const std::string form = options.text("form"), shape = options.text("shape");
    const bool cube = shape == "cube";
    const std::vector<Gpu> gpus = open_gpus(1);
    const Gpu& gpu = gpus.front();
    const size_t cells = static_cast<size_t>(size.z) * size.y * size.x;
    Array<T> u = allocate<T>(gpu, cells), after = allocate<T>(gpu, cells);
    const auto start = [&] {
        fill<<<dim3(size.y, blocks(size.x, 256), size.z), 256, 0, gpu.stream>>>(u.get(), size);
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
    // Of many rows, those of which no grid has enough.
    const auto too_many = [&](const Shape& shape) { return blocks(size.y, shape.threads.y) > 65535; };
    shapes.erase(std::remove_if(shapes.begin(), shapes.end(), too_many), shapes.end());
    if (shapes.empty()) fail("--rows has more than grids of blocks have");
    const double seconds = fastest(gpus, options, shapes, start, step);
    uint64_t sum = 0;
    if (options.verify || options.checksum) {
        std::vector<T> field(cells);
        CHECK(cudaMemcpy(field.data(), u.get(), cells * sizeof(T), cudaMemcpyDeviceToHost));
        if (options.verify) compare(field, reference<T>(size, options.number("steps"), cube), 1e-5);
        if (options.checksum) sum = checksum(field);
    }
    report(("means-" + shape + "-" + form + "-" + options.text("precision")).c_str(), options, size.x, seconds,
           static_cast<double>(cells), "cells", sum);
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"planes", "128"}, {"rows", "128"}, {"columns", "128"}, {"steps", "100"},
                                       {"form", "row"}, {"shape", "cube"}, {"precision", "single"}});
    const std::string form = options.text("form"), shape = options.text("shape"), precision = options.text("precision");
    if (shape != "square" && shape != "cube") fail("--shape is square or cube, not \"" + shape + "\"");
    const bool cube = shape == "cube";
    const int3 size =
        make_int3(options.number("columns", 1), options.number("rows", 1), cube ? options.number("planes", 1) : 1);
    if (form != "plain" && form != "row" && !(form == "march" && cube))
        fail("--form is plain, row or, of a cube, march, not \"" + form + "\"");
    if (form != "plain" && size.x % 4 != 0) fail("--columns must be a multiple of 4, but for --form plain");
    if (precision == "single") measure<float>(options, size);
    else if (precision == "double") measure<double>(options, size);
    else fail("--precision is single or double, not \"" + precision + "\"");
}

// Kernels of many shapes, each a few lines as one writes them at first, a thread for each item: what the kernels of `shapes`
// compute, on one GPU. `--shape` says which. Of several shapes of blocks the fastest counts. A cube has `--side` cells along each
// dimension, a square `--size`. `--checksum` takes one step, and tells what it makes.

#include "stencil.cuh"

__device__ size_t item() { return blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; }

// Numbers that look random.
__global__ void noise(float* cells, size_t count, uint64_t salt)
{
    const size_t at = item();
    if (at < count) cells[at] = unit(at ^ salt << 40);
}

// What there is of a thread in a cube or a square of which it has one cell.
struct Cell {
    int z, y, x, side;

    __device__ explicit Cell(int side)
        : z(blockIdx.z * blockDim.z + threadIdx.z), y(blockIdx.y * blockDim.y + threadIdx.y),
          x(blockIdx.x * blockDim.x + threadIdx.x), side(side)
    {
    }

    __device__ bool is_there() const { return x < side && y < side && z < side; }
    __device__ size_t at() const { return at(z, y, x); }
    __device__ size_t at(int z, int y, int x) const { return (static_cast<size_t>(z) * side + y) * side + x; }

    // So far away, but not beyond the edges.
    __device__ size_t clamped(int dz, int dy, int dx) const
    {
        const auto inside = [&](int at) { return min(max(at, 0), side - 1); };
        return at(inside(z + dz), inside(y + dy), inside(x + dx));
    }

    // So far away, where edges of the cube meet, or of the square.
    __device__ size_t around(int dz, int dy, int dx) const
    {
        const auto inside = [&](int at) { return at < 0 ? at + side : at < side ? at : at - side; };
        return at(inside(z + dz), inside(y + dy), inside(x + dx));
    }
    __device__ size_t around(int dy, int dx) const { return around(0, dy, dx); }
};

__global__ void magnetic(float* __restrict__ hx, float* __restrict__ hy, float* __restrict__ hz, const float* __restrict__ ex,
                         const float* __restrict__ ey, const float* __restrict__ ez, int side, float c)
{
    const Cell cell(side);
    if (!cell.is_there()) return;
    const size_t at = cell.at(), z1 = cell.clamped(1, 0, 0), y1 = cell.clamped(0, 1, 0), x1 = cell.clamped(0, 0, 1);
    const float x = ex[at], y = ey[at], z = ez[at];
    hx[at] += c * ((ey[z1] - y) - (ez[y1] - z));
    hy[at] += c * ((ez[x1] - z) - (ex[z1] - x));
    hz[at] += c * ((ex[y1] - x) - (ey[x1] - y));
}

__global__ void electric(float* __restrict__ ex, float* __restrict__ ey, float* __restrict__ ez, const float* __restrict__ hx,
                         const float* __restrict__ hy, const float* __restrict__ hz, int side, float c)
{
    const Cell cell(side);
    if (!cell.is_there()) return;
    const size_t at = cell.at(), z1 = cell.clamped(-1, 0, 0), y1 = cell.clamped(0, -1, 0), x1 = cell.clamped(0, 0, -1);
    const float x = hx[at], y = hy[at], z = hz[at];
    ex[at] += c * ((z - hz[y1]) - (y - hy[z1]));
    ey[at] += c * ((x - hx[z1]) - (z - hz[x1]));
    ez[at] += c * ((y - hy[x1]) - (x - hx[y1]));
}

__global__ void coefficients(float* __restrict__ out, const float* __restrict__ u, const float* __restrict__ here,
                             const float* __restrict__ below, const float* __restrict__ above,
                             const float* __restrict__ north, const float* __restrict__ south,
                             const float* __restrict__ west, const float* __restrict__ east, int side)
{
    const Cell cell(side);
    if (!cell.is_there()) return;
    const size_t at = cell.at();
    out[at] = here[at] * u[at] + below[at] * u[cell.clamped(-1, 0, 0)] + above[at] * u[cell.clamped(1, 0, 0)]
        + north[at] * u[cell.clamped(0, -1, 0)] + south[at] * u[cell.clamped(0, 1, 0)]
        + west[at] * u[cell.clamped(0, 0, -1)] + east[at] * u[cell.clamped(0, 0, 1)];
}

// Where what moves in each direction goes, and how much does in a fluid at rest. Local to each loop, which is unrolled.
struct Directions {
    int down[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1}, right[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
    float weights[9] = {4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};

    __device__ float equilibrium(int k, float density, float y, float x) const
    {
        const float square = 1.5f * (y * y + x * x), along = 3.0f * (float(down[k]) * y + float(right[k]) * x);
        return weights[k] * density * (1.0f + along + 0.5f * along * along - square);
    }
};

struct Buffers {
    float* field[9];
};

__global__ void lattice_fill(Buffers to, int side)
{
    const Cell cell(side);
    if (!cell.is_there()) return;
    const float y = abs(cell.y - side / 2), x = abs(cell.x - side / 3);
    const float density = 1.0f + 0.1f / (1.0f + (y * y + x * x));
    const Directions directions;
#pragma unroll
    for (int k = 0; k < 9; ++k) to.field[k][cell.at()] = directions.equilibrium(k, density, 0, 0);
}

__global__ void lattice(float* __restrict__ a, float* __restrict__ b, float* __restrict__ c, float* __restrict__ d,
                        float* __restrict__ e, float* __restrict__ f, float* __restrict__ g, float* __restrict__ h,
                        float* __restrict__ i, const float* __restrict__ j, const float* __restrict__ k,
                        const float* __restrict__ l, const float* __restrict__ m, const float* __restrict__ n,
                        const float* __restrict__ o, const float* __restrict__ p, const float* __restrict__ q,
                        const float* __restrict__ r, int side, float rate)
{
    const Cell cell(side);
    if (!cell.is_there()) return;
    const float arrived[9] = {j[cell.at()],          k[cell.around(0, -1)], l[cell.around(-1, 0)],
                              m[cell.around(0, 1)],  n[cell.around(1, 0)],  o[cell.around(-1, -1)],
                              p[cell.around(-1, 1)], q[cell.around(1, 1)],  r[cell.around(1, -1)]};
    float density = 0, down = 0, right = 0;
    const Directions directions;
#pragma unroll
    for (int k = 0; k < 9; ++k) {
        density += arrived[k];
        down += float(directions.down[k]) * arrived[k];
        right += float(directions.right[k]) * arrived[k];
    }
    down = down / density;
    right = right / density;
    float* const to[9] = {a, b, c, d, e, f, g, h, i};
#pragma unroll
    for (int k = 0; k < 9; ++k)
        to[k][cell.at()] = arrived[k] + rate * (directions.equilibrium(k, density, down, right) - arrived[k]);
}

// D3Q19: those of the 27 directions around a cell that are not along all three dimensions.
struct InSpace {
    int z[19], y[19], x[19];
    float weights[19];

    __host__ __device__ constexpr InSpace() : z(), y(), x(), weights()
    {
        int next = 0;
        for (int at = 0; at < 27; ++at) {
            const int dz = at / 9 - 1, dy = at / 3 % 3 - 1, dx = at % 3 - 1, square = dz * dz + dy * dy + dx * dx;
            if (square == 3) continue;
            z[next] = dz, y[next] = dy, x[next] = dx;
            weights[next++] = square == 0 ? 1.f / 3 : square == 1 ? 1.f / 18 : 1.f / 36;
        }
    }

    __device__ float equilibrium(int k, float density, float v, float u, float w) const
    {
        const float square = 1.5f * (v * v + u * u + w * w), along = 3.0f * (float(z[k]) * v + float(y[k]) * u + float(x[k]) * w);
        return weights[k] * density * (1.0f + along + 0.5f * along * along - square);
    }
};

struct SpaceBuffers {
    float* field[19];
};

__global__ void space_fill(SpaceBuffers to, int side)
{
    const Cell cell(side);
    if (!cell.is_there()) return;
    const int z = cell.z - side / 2, y = cell.y - side / 2, x = cell.x - side / 2;
    const float density = 1.0f + 0.1f / (1.0f + float(z * z + y * y + x * x));
    constexpr InSpace directions;
#pragma unroll
    for (int k = 0; k < 19; ++k) to.field[k][cell.at()] = directions.equilibrium(k, density, 0, 0, 0);
}

__global__ void space(SpaceBuffers to, SpaceBuffers from, int side, float rate)
{
    const Cell cell(side);
    if (!cell.is_there()) return;
    constexpr InSpace directions;
    float arrived[19], density = 0, v = 0, u = 0, w = 0;
#pragma unroll
    for (int k = 0; k < 19; ++k)
        arrived[k] = __ldg(from.field[k] + cell.around(-directions.z[k], -directions.y[k], -directions.x[k]));
#pragma unroll
    for (int k = 0; k < 19; ++k) {
        density += arrived[k];
        v += float(directions.z[k]) * arrived[k];
        u += float(directions.y[k]) * arrived[k];
        w += float(directions.x[k]) * arrived[k];
    }
    v = v / density;
    u = u / density;
    w = w / density;
#pragma unroll
    for (int k = 0; k < 19; ++k)
        to.field[k][cell.at()] = arrived[k] + rate * (directions.equilibrium(k, density, v, u, w) - arrived[k]);
}

__global__ void coarsen(float* __restrict__ coarse, const float* __restrict__ fine, int side)
{
    const Cell cell(side);
    if (!cell.is_there()) return;
    float sum = 0;
#pragma unroll
    for (int dz = 0; dz < 2; ++dz)
#pragma unroll
        for (int dy = 0; dy < 2; ++dy)
#pragma unroll
            for (int dx = 0; dx < 2; ++dx)
                sum += fine[((2 * static_cast<size_t>(cell.z) + dz) * 2 * side + 2 * cell.y + dy) * 2 * side + 2 * cell.x + dx];
    coarse[cell.at()] = 0.125f * sum;
}

// `side` is the fine grid's.
__global__ void refine(float* __restrict__ fine, const float* __restrict__ coarse, int side)
{
    const Cell cell(side);
    if (!cell.is_there()) return;
    fine[cell.at()] += coarse[(static_cast<size_t>(cell.z / 2) * (side / 2) + cell.y / 2) * (side / 2) + cell.x / 2];
}

__global__ void shorten(float* __restrict__ way, const float* __restrict__ from, const float* __restrict__ to, int side)
{
    const Cell cell(side);
    if (!cell.is_there()) return;
    way[cell.at()] = fminf(way[cell.at()], to[cell.y] + from[cell.x]);
}

__global__ void nearest(uint32_t* __restrict__ nearest, const float4* __restrict__ points, const float4* __restrict__ centres,
                        size_t count, int of)
{
    const size_t number = item();
    if (number >= count) return;
    const float4 point = points[number];
    float best = 3.40282347e38f;
    uint32_t which = 0;
    for (int at = 0; at < of; ++at) {
        const float4 centre = centres[at];
        const float x = point.x - centre.x, y = point.y - centre.y, z = point.z - centre.z, w = point.w - centre.w;
        const float distance = ((x * x + y * y) + z * z) + w * w;
        if (distance < best) {
            best = distance;
            which = at;
        }
    }
    nearest[number] = which;
}

constexpr int ENTRIES = 27;

__global__ void cube_columns(uint32_t* columns, size_t count, uint32_t cells, uint32_t side)
{
    const size_t at = item();
    if (at >= count) return;
    const uint32_t row = at / ENTRIES, nth = at % ENTRIES;
    columns[at] = (row + (nth / 9 * side + nth / 3 % 3) * side + nth % 3) % cells;
}

__global__ void multiply_rows(float* __restrict__ y, const uint32_t* __restrict__ columns, const float* __restrict__ values,
                              const float* __restrict__ x, size_t rows)
{
    const size_t row = item();
    if (row >= rows) return;
    float sum = 0;
    for (size_t at = ENTRIES * row; at < ENTRIES * row + ENTRIES; ++at) sum += values[at] * x[columns[at]];
    y[row] = sum;
}

// A thread for each column of a cube.
__global__ void spread_in_column(float* __restrict__ warmth, float* __restrict__ factors, const float* __restrict__ spread, int side)
{
    const Cell cell(side);
    if (!cell.is_there()) return;
    float factor = 0, above = 0;
    for (int layer = 0; layer < side; ++layer) {
        const size_t at = cell.at(layer, cell.y, cell.x);
        const float to = spread[at], part = 1.0f / (1.0f + 2.0f * to - to * factor);
        above = (warmth[at] + to * above) * part;
        factor = to * part;
        warmth[at] = above;
        factors[at] = factor;
    }
    float below = 0;
    for (int layer = side; layer-- > 0;) {
        const size_t at = cell.at(layer, cell.y, cell.x);
        below = warmth[at] + factors[at] * below;
        warmth[at] = below;
    }
}

// Philox 4 x 32 with ten rounds.
__device__ uint4 philox(uint4 counter, uint2 key)
{
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const uint64_t first = static_cast<uint64_t>(counter.x) * 0xd2511f53u, second = static_cast<uint64_t>(counter.z) * 0xcd9e8d57u;
        counter = make_uint4(static_cast<uint32_t>(second >> 32) ^ counter.y ^ key.x, static_cast<uint32_t>(second),
                             static_cast<uint32_t>(first >> 32) ^ counter.w ^ key.y, static_cast<uint32_t>(first));
        key = make_uint2(key.x + 0x9e3779b9u, key.y + 0xbb67ae85u);
    }
    return counter;
}

__device__ uint32_t is_hit(uint32_t first, uint32_t second)
{
    const float x = static_cast<float>(first >> 8) / 16777216.0f, y = static_cast<float>(second >> 8) / 16777216.0f;
    return x * x + y * y < 1.0f;
}

__global__ void throw_darts(uint32_t* __restrict__ hits, size_t count, uint32_t rounds)
{
    const size_t at = item();
    if (at >= count) return;
    uint32_t found = 0;
    for (uint32_t round = 0; round < rounds; ++round) {
        const uint4 numbers = philox(make_uint4(static_cast<uint32_t>(at), round, 0, 0), make_uint2(42, 7));
        found += is_hit(numbers.x, numbers.y) + is_hit(numbers.z, numbers.w);
    }
    hits[at] = found;
}

// Runs one shape: its buffers, its step, and how many bytes that moves at least.
class Bench {
public:
    explicit Bench(const Options& options) : options(options), gpus(open_gpus(1)) {}

    void run()
    {
        const std::string shape = options.text("shape");
        const int side = options.number("side", 1), size = options.number("size", 1);
        const size_t cube = static_cast<size_t>(side) * side * side, square = static_cast<size_t>(size) * size;
        if (shape == "fields") {
            std::vector<float*> f = noises(6, cube);
            of(72.0 * cube, f[3], cube, 3, side, [=](dim3 grid, dim3 threads) {
                magnetic<<<grid, threads, 0, stream()>>>(f[3], f[4], f[5], f[0], f[1], f[2], side, 0.5f);
                electric<<<grid, threads, 0, stream()>>>(f[0], f[1], f[2], f[3], f[4], f[5], side, 0.5f);
            });
        } else if (shape == "coefficients") {
            std::vector<float*> f = noises(9, cube);
            of(36.0 * cube, f[0], cube, 3, side, [=](dim3 grid, dim3 threads) {
                coefficients<<<grid, threads, 0, stream()>>>(f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], side);
            });
        } else if (shape == "lattice") {
            std::vector<float*> from = noises(9, square), to = noises(9, square);
            Buffers all;
            std::copy(from.begin(), from.end(), all.field);
            lattice_fill<<<dim3(blocks(size, 32), blocks(size, 8)), dim3(32, 8), 0, stream()>>>(all, size);
            of(72.0 * square, to[5], square, 2, size, [=](dim3 grid, dim3 threads) {
                lattice<<<grid, threads, 0, stream()>>>(to[0], to[1], to[2], to[3], to[4], to[5], to[6], to[7], to[8],
                                                        from[0], from[1], from[2], from[3], from[4], from[5], from[6],
                                                        from[7], from[8], size, 1.25f);
            });
        } else if (shape == "space") {
            std::vector<float*> from = noises(19, cube), to = noises(19, cube);
            SpaceBuffers before, after;
            std::copy(from.begin(), from.end(), before.field);
            std::copy(to.begin(), to.end(), after.field);
            space_fill<<<dim3(blocks(side, 32), blocks(side, 8), side), dim3(32, 8), 0, stream()>>>(before, side);
            of(152.0 * cube, to[5], cube, 3, side, [=](dim3 grid, dim3 threads) {
                space<<<grid, threads, 0, stream()>>>(after, before, side, 1.25f);
            });
        } else if (shape == "coarser") {
            float *coarse = noise_of(cube, 0), *fine = noise_of(8 * cube, 1);
            of(36.0 * cube, coarse, cube, 3, side, [=](dim3 grid, dim3 threads) {
                coarsen<<<grid, threads, 0, stream()>>>(coarse, fine, side);
            });
        } else if (shape == "finer") {
            float *coarse = noise_of(cube, 0), *fine = noise_of(8 * cube, 1);
            if (options.checksum) coarsen<<<dim3(blocks(side, 32), side, side), 32, 0, stream()>>>(coarse, fine, side);
            of(68.0 * cube, fine, 8 * cube, 3, 2 * side, [=](dim3 grid, dim3 threads) {
                refine<<<grid, threads, 0, stream()>>>(fine, coarse, 2 * side);
            });
        } else if (shape == "ways") {
            float *ways = noise_of(square, 0), *from = noise_of(size, 1), *to = noise_of(size, 2);
            of(8.0 * square, ways, square, 2, size, [=](dim3 grid, dim3 threads) {
                shorten<<<grid, threads, 0, stream()>>>(ways, from, to, size);
            });
        } else if (shape == "nearest") {
            constexpr int CENTRES = 64;
            auto *points = reinterpret_cast<float4*>(noise_of(4 * square, 0)), *centres = reinterpret_cast<float4*>(noise_of(4 * CENTRES, 1));
            auto* found = reinterpret_cast<uint32_t*>(noise_of(square, 0));
            of(20.0 * square, found, square, 1, square, [=](dim3 grid, dim3 threads) {
                nearest<<<grid, threads, 0, stream()>>>(found, points, centres, square, CENTRES);
            });
        } else if (shape == "sparse") {
            const int half = (side + 1) / 2;
            const size_t rows = static_cast<size_t>(half) * half * half, entries = ENTRIES * rows;
            float *x = noise_of(rows, 0), *values = noise_of(entries, 1), *y = noise_of(rows, 2);
            auto* columns = reinterpret_cast<uint32_t*>(noise_of(entries, 0));
            cube_columns<<<(entries + 255) / 256, 256, 0, stream()>>>(columns, entries, rows, half);
            of((8.0 * ENTRIES + 8) * rows, y, rows, 1, rows, [=](dim3 grid, dim3 threads) {
                multiply_rows<<<grid, threads, 0, stream()>>>(y, columns, values, x, rows);
            });
        } else if (shape == "columns") {
            float *warmth = noise_of(cube, 0), *spread = noise_of(cube, 1), *factors = noise_of(cube, 2);
            of(28.0 * cube, warmth, cube, 2, side, [=](dim3 grid, dim3 threads) {
                spread_in_column<<<grid, threads, 0, stream()>>>(warmth, factors, spread, side);
            });
        } else if (shape == "darts") {
            auto* hits = reinterpret_cast<uint32_t*>(noise_of(square, 0));
            of(4.0 * square, hits, square, 1, square, [=](dim3 grid, dim3 threads) {
                throw_darts<<<grid, threads, 0, stream()>>>(hits, square, 8);
            });
        } else {
            fail("--shape is fields, coefficients, lattice, space, coarser, finer, ways, nearest, sparse, columns or darts");
        }
    }

private:
    cudaStream_t stream() const { return gpus.front().stream; }

    float* noise_of(size_t count, uint64_t salt)
    {
        held.push_back(allocate<float>(gpus.front(), count));
        noise<<<(count + 255) / 256, 256, 0, stream()>>>(held.back().get(), count, salt);
        return held.back().get();
    }

    std::vector<float*> noises(int count, size_t cells)
    {
        std::vector<float*> all(count);
        for (int salt = 0; salt < count; ++salt) all[salt] = noise_of(cells, salt);
        return all;
    }

    // Times the step over a line, a square or a cube of so many items along each side; `bytes` are those of a step.
    template <class T>
    void of(double bytes, T* result, size_t count, int dims, size_t side, const std::function<void(dim3, dim3)>& launch)
    {
        std::vector<Shape> shapes = {{{32, 4, 1}, 0}, {{32, 8, 1}, 0}, {{64, 4, 1}, 0}, {{128, 2, 1}, 0}, {{256, 1, 1}, 0}};
        if (dims == 1) shapes = {{{128, 1, 1}, 0}, {{256, 1, 1}, 0}, {{512, 1, 1}, 0}};
        const auto step = [&](const Shape& shape, int) {
            const auto along = [&](int dim, unsigned threads) { return dim < dims ? static_cast<unsigned>((side + threads - 1) / threads) : 1; };
            launch(dim3(along(0, shape.threads.x), along(1, shape.threads.y), along(2, shape.threads.z)), shape.threads);
            CHECK(cudaGetLastError());
        };
        uint64_t sum = 0;
        double seconds = 0;
        if (options.checksum) {
            step(shapes[0], 0);
            std::vector<T> found(count);
            CHECK(cudaMemcpyAsync(found.data(), result, count * sizeof(T), cudaMemcpyDefault, stream()));
            synchronise(gpus);
            sum = checksum(found);
        } else {
            seconds = fastest(gpus, options, shapes, [] {}, step);
        }
        report("shapes", options, options.number(dims == 3 ? "side" : "size"), seconds, bytes, "bytes", sum);
    }

    const Options& options;
    std::vector<Gpu> gpus;
    std::vector<Array<float>> held;
};

int main(int argc, char** argv)
{
    Options options(argc, argv, {{"shape", "fields"}, {"side", "512"}, {"size", "8192"}, {"steps", "60"}, {"warm-up", "10"}});
    Bench(options).run();
}

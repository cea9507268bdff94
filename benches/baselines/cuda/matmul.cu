// Products of square matrices, `x = a x` again and again: what the example matmul computes in
// groups. Each GPU has its rows of `a` and computes these rows of the product; all have all of `x`.
// With CUBLAS, cuBLAS multiplies, as in the example with --cublas.

#include "common.cuh"
#ifdef CUBLAS
#include <cublas_v2.h>
#endif

constexpr uint64_t SEED_A = 1, SEED_X = 2;

// Threads along each side of a block.
constexpr int TILE = 16;

// An element of a matrix whose elements look random, between -scale and scale.
BOTH float element(int row, int column, uint64_t seed, float scale)
{
    const uint64_t place = static_cast<uint64_t>(row) << 32 | static_cast<uint64_t>(column);
    return (2.0f * unit(mix(place) ^ mix(seed)) - 1.0f) * scale;
}

// Rows from `first` on.
__global__ void fill(float* matrix, int size, int first, uint64_t seed, float scale)
{
    const int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    matrix[static_cast<size_t>(row) * size + column] = element(first + row, column, seed, scale);
}

// c = a b for the rows of `a` that there are, tile by tile; sums are in order of the index that
// both factors share.
__global__ void multiply(float* __restrict__ c, const float* __restrict__ a, const float* __restrict__ b, int size)
{
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const size_t row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int first = 0; first < size; first += TILE) {
        tile_a[y][x] = a[row * size + first + x];
        tile_b[y][x] = b[(first + y) * static_cast<size_t>(size) + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k) sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    c[row * size + column] = sum;
}

#ifndef STRICT
// Elements of a thread along each side, of a block, and how far along both factors a block goes at a time.
constexpr int OWN = 8, EDGE = 128, DEPTH = 8;

// As fast as one gets without further tricks: each thread has 8 × 8 sums in registers, blocks share 128 × 8 and 8 × 128
// elements of the factors, which are loaded 16 bytes at a time while those before are used.
__global__ void __launch_bounds__(256, 2) multiply_blocks(float* __restrict__ c, const float* __restrict__ a,
                                                          const float* __restrict__ b, int size)
{
    __shared__ __align__(16) float tile_a[2][DEPTH][EDGE + 4], tile_b[2][DEPTH][EDGE];
    const int at = threadIdx.y * 16 + threadIdx.x, x = threadIdx.x, y = threadIdx.y;
    const size_t row = blockIdx.y * EDGE, column = blockIdx.x * EDGE;
    const int row_a = at / 2, column_a = at % 2 * 4, row_b = at / 32, column_b = at % 32 * 4;
    const float* next_a = a + (row + row_a) * size + column_a;
    const float* next_b = b + static_cast<size_t>(row_b) * size + column + column_b;
    float sums[OWN][OWN] = {};
    float4 of_a, of_b;
    const auto bring = [&] {
        of_a = *reinterpret_cast<const float4*>(next_a);
        of_b = *reinterpret_cast<const float4*>(next_b);
        next_a += DEPTH;
        next_b += static_cast<size_t>(DEPTH) * size;
    };
    const auto keep = [&](int tile) {
        tile_a[tile][column_a][row_a] = of_a.x;
        tile_a[tile][column_a + 1][row_a] = of_a.y;
        tile_a[tile][column_a + 2][row_a] = of_a.z;
        tile_a[tile][column_a + 3][row_a] = of_a.w;
        *reinterpret_cast<float4*>(&tile_b[tile][row_b][column_b]) = of_b;
    };
    bring();
    keep(0);
    __syncthreads();
    for (int first = 0, tile = 0; first < size; first += DEPTH, tile ^= 1) {
        const bool is_last = first + DEPTH >= size;
        if (!is_last) bring();
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            // Four columns here and four 64 further on: what the threads of a warp read lies side by side.
            float left[OWN], right[OWN];
            *reinterpret_cast<float4*>(left) = *reinterpret_cast<const float4*>(&tile_a[tile][k][y * 4]);
            *reinterpret_cast<float4*>(left + 4) = *reinterpret_cast<const float4*>(&tile_a[tile][k][64 + y * 4]);
            *reinterpret_cast<float4*>(right) = *reinterpret_cast<const float4*>(&tile_b[tile][k][x * 4]);
            *reinterpret_cast<float4*>(right + 4) = *reinterpret_cast<const float4*>(&tile_b[tile][k][64 + x * 4]);
#pragma unroll
            for (int i = 0; i < OWN; ++i)
#pragma unroll
                for (int j = 0; j < OWN; ++j) sums[i][j] += left[i] * right[j];
        }
        if (!is_last) keep(tile ^ 1);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
        float* to = c + (row + i / 4 * 64 + y * 4 + i % 4) * size + column + x * 4;
        *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(sums[i]);
        *reinterpret_cast<float4*>(to + 64) = *reinterpret_cast<const float4*>(sums[i] + 4);
    }
}
#endif

// What a GPU has.
struct Part {
    Gpu gpu;
    int first, rows;
    Array<float> a, x, next;
#ifdef CUBLAS
    cublasHandle_t handle = nullptr;
#endif
};

#ifdef CUBLAS
void check_cublas(cublasStatus_t status)
{
    if (status != CUBLAS_STATUS_SUCCESS) fail("cuBLAS says " + std::to_string(static_cast<int>(status)));
}

// By cuBLAS, which goes by columns and takes our matrices for the transposed ones. The handle
// lives as long as the program.
void multiply(Part& part, float* own, int size)
{
    if (part.handle == nullptr) {
        check_cublas(cublasCreate(&part.handle));
        check_cublas(cublasSetStream(part.handle, part.gpu.stream));
    }
    const float one = 1, zero = 0;
    check_cublas(cublasSgemm(part.handle, CUBLAS_OP_N, CUBLAS_OP_N, size, part.rows, size, &one, part.x.get(), size,
                             part.a.get(), size, &zero, own, size));
}
#endif

dim3 blocks(int size, int rows)
{
    return dim3(size / TILE, rows / TILE);
}

std::vector<Part> divide(const std::vector<Gpu>& gpus, const std::vector<int>& begins, int size, float scale)
{
    const dim3 threads(TILE, TILE);
    const size_t row = size;
    std::vector<Part> parts;
    for (const Gpu& gpu : gpus) {
        const int first = begins[gpu.number], rows = begins[gpu.number + 1] - first;
        Part part{gpu, first, rows, allocate<float>(gpu, rows * row), allocate<float>(gpu, row * row),
                  allocate<float>(gpu, row * row)};
        fill<<<blocks(size, rows), threads, 0, gpu.stream>>>(part.a.get(), size, first, SEED_A, scale);
        fill<<<blocks(size, size), threads, 0, gpu.stream>>>(part.x.get(), size, 0, SEED_X, 1.0f);
        CHECK(cudaGetLastError());
        parts.push_back(std::move(part));
    }
    return parts;
}

// The other rows of a factor are fetched only when there is another product to compute.
void product(std::vector<Part>& parts, const std::vector<Gpu>& gpus, const std::vector<int>& begins, int size,
             bool is_first)
{
    std::vector<float*> copies;
    for (const Part& part : parts) copies.push_back(part.x.get());
    if (!is_first) all_gather(gpus, copies, begins, size);
    for (Part& part : parts) {
        CHECK(cudaSetDevice(part.gpu.number));
        float* own = part.next.get() + static_cast<size_t>(part.first) * size;
#ifdef CUBLAS
        multiply(part, own, size);
#else
#ifdef STRICT
        const auto kernel = multiply;
        const dim3 grid = blocks(size, part.rows);
#else
        // Of what is no multiple of 128, tiles of 16 × 16.
        const bool whole = size % EDGE == 0 && part.rows % EDGE == 0;
        const auto kernel = whole ? multiply_blocks : multiply;
        const dim3 grid = whole ? dim3(size / EDGE, part.rows / EDGE) : blocks(size, part.rows);
#endif
        kernel<<<grid, dim3(TILE, TILE), 0, part.gpu.stream>>>(own, part.a.get(), part.x.get(), size);
        CHECK(cudaGetLastError());
#endif
        std::swap(part.x, part.next);
    }
}

std::vector<float> gather(const std::vector<Part>& parts, int size)
{
    const size_t row = size;
    std::vector<float> matrix(row * row);
    for (const Part& part : parts)
        CHECK(cudaMemcpy(matrix.data() + part.first * row, part.x.get() + part.first * row,
                         part.rows * row * sizeof(float), cudaMemcpyDeviceToHost));
    return matrix;
}

// The same by plain loops.
std::vector<float> reference(int size, float scale, int steps)
{
    const size_t row = size;
    const auto matrix = [&](uint64_t seed, float scale) {
        std::vector<float> matrix(row * row);
        for (size_t at = 0; at < matrix.size(); ++at)
            matrix[at] = element(static_cast<int>(at / row), static_cast<int>(at % row), seed, scale);
        return matrix;
    };
    const std::vector<float> a = matrix(SEED_A, scale);
    std::vector<float> x = matrix(SEED_X, 1.0f);
    for (int number = 0; number < steps; ++number) {
        std::vector<float> next(row * row);
        for (size_t y = 0; y < row; ++y)
            for (size_t k = 0; k < row; ++k)
                for (size_t column = 0; column < row; ++column)
                    next[y * row + column] += a[y * row + k] * x[k * row + column];
        x = next;
    }
    return x;
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"size", "512"}, {"steps", "1"}});
    const int size = options.number("size", TILE);
    if (size % TILE != 0) fail("--size must be a multiple of " + std::to_string(TILE));
    const std::vector<Gpu> gpus = open_gpus(options.number("gpus", 1));
    if (static_cast<int>(gpus.size()) > size / TILE) fail("--size must be at least 16 per GPU");
    const float scale = 1.0f / std::sqrt(static_cast<float>(size));
    const std::vector<int> begins = split(size, gpus.size(), TILE);
    std::vector<Part> parts = divide(gpus, begins, size, scale);
    synchronise(gpus);
    const double seconds = timed(gpus, options, [&](int number) { product(parts, gpus, begins, size, number == 0); });

    uint64_t sum = 0;
    if (options.verify || options.checksum) {
        const std::vector<float> matrix = gather(parts, size);
        if (options.verify) compare(matrix, reference(size, scale, options.number("steps")), 1e-5);
        if (options.checksum) sum = checksum(matrix);
    }
    report("matmul", options, size, seconds, 2.0 * std::pow(size, 3), "flop", sum);
}

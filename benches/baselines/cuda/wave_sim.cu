// The wave equation on a square with reflecting edges: what the example wave_sim computes in rows.
// Each GPU has a band of rows and a copy of its neighbours' nearest rows.

#include "common.cuh"
#include "musl.cuh"

constexpr float COURANT_SQUARED = 0.25f;

// Cells of a thread, along a row.
constexpr int RUN = 4;

// Row, column and height of drops that fall into the resting water, in fractions of the side.
BOTH float initial(int y, int x, int size)
{
    const float drops[3][3] = {{0.30f, 0.36f, 1.0f}, {0.62f, 0.70f, -0.8f}, {0.72f, 0.24f, 0.6f}};
    const float radius = 1.0f / 48.0f, side = static_cast<float>(size);
    float height = 0.0f;
    for (const auto& [row, column, drop] : drops) {
        const float dy = static_cast<float>(y) / side - row, dx = static_cast<float>(x) / side - column;
        height += drop * musl::exp(-(dy * dy + dx * dx) / (2.0f * radius * radius));
    }
    return height;
}

// A cell after a step; the water starts at rest.
template <bool FIRST>
BOTH float next(float before, float centre, float north, float south, float west, float east)
{
    const float acceleration = COURANT_SQUARED * (north + south + west + east - 4.0f * centre);
    return FIRST ? centre + 0.5f * acceleration : 2.0f * centre - before + acceleration;
}

// A band: rows 1 to `rows` are the GPU's own, 0 and `rows + 1` its neighbours'. Beyond the first
// and last row of the field, which are `top` and `bottom` here, the same row is met again.
struct Band {
    int size, first_row, rows, top, bottom;
};

__global__ void fill(float* u, Band band)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int row = y + band.top;
    if (x < band.size && row <= band.bottom)
        u[static_cast<size_t>(row) * band.size + x] = initial(band.first_row + row - 1, x, band.size);
}

// One step of `count` rows: `first`, `first + stride` and so on.
template <bool FIRST>
__global__ void step_rows(float* __restrict__ up, const float* __restrict__ u, Band band, int first, int stride,
                          int count)
{
    const int x = RUN * (blockIdx.x * blockDim.x + threadIdx.x);
    const int index = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= band.size || index >= count) return;
    const int y = first + stride * index;
    const auto row = [&](int y) { return static_cast<size_t>(y) * band.size; };
    const auto four = [&](int y) { return *reinterpret_cast<const float4*>(u + row(y) + x); };
    const float4 centre = four(y), north = four(max(y - 1, band.top)), south = four(min(y + 1, band.bottom));
    const float west = x > 0 ? u[row(y) + x - 1] : centre.x;
    const float east = x + RUN < band.size ? u[row(y) + x + RUN] : centre.w;
    float4* out = reinterpret_cast<float4*>(up + row(y) + x);
    float4 cell = FIRST ? centre : *out;
    cell.x = next<FIRST>(cell.x, centre.x, north.x, south.x, west, centre.y);
    cell.y = next<FIRST>(cell.y, centre.y, north.y, south.y, centre.x, centre.z);
    cell.z = next<FIRST>(cell.z, centre.z, north.z, south.z, centre.y, centre.w);
    cell.w = next<FIRST>(cell.w, centre.w, north.w, south.w, centre.z, east);
    *out = cell;
}

// What a GPU has of the field, and a second stream for the rows that its neighbours wait for.
struct Part {
    Gpu gpu;
    Band band;
    Array<float> current, other;
    cudaStream_t border;
    cudaEvent_t inside_done, border_done;
};

std::vector<Part> divide(const std::vector<Gpu>& gpus, int size)
{
    const std::vector<int> begins = split(size, gpus.size());
    std::vector<Part> parts;
    for (const Gpu& gpu : gpus) {
        const int begin = begins[gpu.number], rows = begins[gpu.number + 1] - begin;
        const bool is_last = gpu.number + 1 == static_cast<int>(gpus.size());
        const Band band{size, begin, rows, begin == 0 ? 1 : 0, is_last ? rows : rows + 1};
        const size_t cells = static_cast<size_t>(rows + 2) * size;
        Array<float> current = allocate<float>(gpu, cells), other = allocate<float>(gpu, cells);
        const dim3 threads(32, 8), blocks((size + 31) / 32, (rows + 2 + 7) / 8);
        fill<<<blocks, threads, 0, gpu.stream>>>(current.get(), band);
        CHECK(cudaGetLastError());
        parts.push_back({gpu, band, std::move(current), std::move(other), new_stream(), new_event(), new_event()});
    }
    return parts;
}

void launch(const Part& part, cudaStream_t stream, bool is_first, int first, int stride, int count)
{
    const dim3 threads(32, 4), blocks((part.band.size / RUN + 31) / 32, (count + 3) / 4);
    float *up = part.other.get(), *u = part.current.get();
    if (is_first) step_rows<true><<<blocks, threads, 0, stream>>>(up, u, part.band, first, stride, count);
    else step_rows<false><<<blocks, threads, 0, stream>>>(up, u, part.band, first, stride, count);
    CHECK(cudaGetLastError());
}

// Border rows come first, and travel while the others are computed. Each stream waits for what
// the other one did in the step before, which is what it reads and overwrites.
void compute(const Part& part, bool is_first)
{
    const int rows = part.band.rows;
    CHECK(cudaSetDevice(part.gpu.number));
    CHECK(cudaStreamWaitEvent(part.gpu.stream, part.border_done, 0));
    CHECK(cudaStreamWaitEvent(part.border, part.inside_done, 0));
    launch(part, part.border, is_first, 1, rows - 1, 2);
    CHECK(cudaEventRecord(part.border_done, part.border));
    launch(part, part.gpu.stream, is_first, 2, 1, rows - 2);
    CHECK(cudaEventRecord(part.inside_done, part.gpu.stream));
}

// Fetches a row of a neighbour's new field.
void fetch(const Part& to, int to_row, const Part& from, int from_row)
{
    const size_t size = to.band.size;
    CHECK(cudaStreamWaitEvent(to.border, from.border_done, 0));
    CHECK(cudaMemcpyPeerAsync(to.other.get() + to_row * size, to.gpu.number, from.other.get() + from_row * size,
                              from.gpu.number, size * sizeof(float), to.border));
}

void step(std::vector<Part>& parts, bool is_first)
{
    if (parts.size() == 1) {
        launch(parts[0], parts[0].gpu.stream, is_first, 1, 1, parts[0].band.rows);
    } else {
        for (const Part& part : parts) compute(part, is_first);
        for (size_t at = 0; at + 1 < parts.size(); ++at) {
            fetch(parts[at], parts[at].band.rows + 1, parts[at + 1], 1);
            fetch(parts[at + 1], 0, parts[at], parts[at].band.rows);
        }
    }
    for (Part& part : parts) std::swap(part.current, part.other);
}

std::vector<float> gather(const std::vector<Part>& parts)
{
    const size_t size = parts[0].band.size;
    std::vector<float> field(size * size);
    for (const Part& part : parts)
        CHECK(cudaMemcpy(field.data() + part.band.first_row * size, part.current.get() + size,
                         part.band.rows * size * sizeof(float), cudaMemcpyDeviceToHost));
    return field;
}

// The same by plain loops.
std::vector<float> reference(int size, int steps)
{
    std::vector<float> current(static_cast<size_t>(size) * size), other(current.size());
    for (int y = 0; y < size; ++y)
        for (int x = 0; x < size; ++x) current[y * size + x] = initial(y, x, size);
    for (int number = 0; number < steps; ++number) {
        for (int y = 0; y < size; ++y)
            for (int x = 0; x < size; ++x) {
                const auto at = [&](int y, int x) {
                    return current[std::clamp(y, 0, size - 1) * size + std::clamp(x, 0, size - 1)];
                };
                float& cell = other[y * size + x];
                const auto after = number == 0 ? next<true> : next<false>;
                cell = after(cell, at(y, x), at(y - 1, x), at(y + 1, x), at(y, x - 1), at(y, x + 1));
            }
        std::swap(current, other);
    }
    return current;
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"size", "512"}, {"steps", "300"}});
    const int size = options.number("size", RUN);
    const std::vector<Gpu> gpus = open_gpus(options.number("gpus", 1));
    if (size % RUN != 0) fail("--size must be a multiple of " + std::to_string(RUN));
    if (size / static_cast<int>(gpus.size()) < 3) fail("--size must be at least three rows per GPU");

    std::vector<Part> parts = divide(gpus, size);
    synchronise(gpus);
    const double seconds = timed(gpus, options, [&](int number) { step(parts, number == 0); });

    uint64_t sum = 0;
    if (options.verify || options.checksum) {
        const std::vector<float> field = gather(parts);
        if (options.verify) compare(field, reference(size, options.number("steps")), 1e-5);
        if (options.checksum) sum = checksum(field);
    }
    report("wave_sim", options, size, seconds, static_cast<double>(size) * size, "cells", sum);
}

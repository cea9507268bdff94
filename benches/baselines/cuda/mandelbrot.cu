// The Mandelbrot set: for each point c of a square, after how many steps z² + c escapes. What the example
// mandelbrot computes of the square that it shows by default. A thread has a point. GPUs have bands of rows in
// turns, so that all have as much to do.

#include <numeric>

#include "stencil.cuh"

// The middle of the square, and how far it reaches.
constexpr double CENTRE[2] = {-0.75, 0.0};
constexpr double REACH = 1.25;

// Rows of a band.
constexpr int BAND = 32;

template <class T>
struct Complex {
    T re, im;
};

// The points: that of the first pixel, from one to the next, and after how many steps one is given up.
template <class T>
struct Square {
    int size;
    Complex<T> corner;
    T pitch;
    uint32_t limit;
};

template <class T>
Square<T> pose(int size, int limit)
{
    const double pitch = 2.0 * REACH / size, offset = REACH - pitch / 2.0;
    const Complex<T> corner{static_cast<T>(CENTRE[0] - offset), static_cast<T>(CENTRE[1] + offset)};
    return {size, corner, static_cast<T>(pitch), static_cast<uint32_t>(limit)};
}

template <class T>
BOTH Complex<T> place(const Square<T>& square, int y, int x)
{
    const T right = static_cast<T>(x) * square.pitch, down = static_cast<T>(y) * square.pitch;
    return {square.corner.re + right, square.corner.im - down};
}

// 2 product + term, whose product is exact, so that what is fused has the same bits.
template <class T>
BOTH T add_twice(T product, T term)
{
#ifdef __CUDA_ARCH__
    return fma(static_cast<T>(2), product, term);
#else
    return product + product + term;
#endif
}

template <class T>
BOTH Complex<T> advance(Complex<T> z, Complex<T> c)
{
    return {z.re * z.re + (c.re - z.im * z.im), add_twice(z.re * z.im, c.im)};
}

template <class T>
BOTH bool is_within(Complex<T> z)
{
    return z.re * z.re + z.im * z.im <= static_cast<T>(4);
}

// After how many steps z escapes that is here after `steps`, or the limit.
template <class T>
BOTH uint32_t escape(Complex<T> z, uint32_t steps, Complex<T> c, uint32_t limit)
{
    for (; steps < limit && is_within(z); ++steps) z = advance(z, c);
    return steps;
}

// What has escaped does not come back: by STRIDE steps, of which those in which it does are taken again.
template <class T, int STRIDE>
__global__ void escapes(uint32_t* __restrict__ out, Square<T> square, int rows, int number, int gpus)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= square.size || row >= rows) return;
    const int y = (row / BAND * gpus + number) * BAND + row % BAND;
    const Complex<T> c = place(square, y, x);
    Complex<T> z = {0, 0};
    uint32_t steps = 0;
    while (square.limit - steps >= STRIDE) {
        Complex<T> ahead = z;
#pragma unroll
        for (int step = 0; step < STRIDE; ++step) ahead = advance(ahead, c);
        if (!is_within(ahead)) break;
        z = ahead;
        steps += STRIDE;
    }
    out[static_cast<size_t>(row) * square.size + x] = escape(z, steps, c, square.limit);
}

// What a GPU has: the rows of its bands, one behind the other.
struct Part {
    Gpu gpu;
    int rows;
    Array<uint32_t> escapes;
};

std::vector<Part> divide(const std::vector<Gpu>& gpus, int size)
{
    std::vector<Part> parts;
    for (const Gpu& gpu : gpus) {
        int rows = 0;
        for (int begin = gpu.number * BAND; begin < size; begin += static_cast<int>(gpus.size()) * BAND)
            rows += std::min(BAND, size - begin);
        parts.push_back({gpu, rows, allocate<uint32_t>(gpu, std::max<size_t>(1, static_cast<size_t>(rows) * size))});
    }
    return parts;
}

// A shape says how many steps are a stride where stencils have planes.
template <class T>
void step(const std::vector<Part>& parts, const Square<T>& square, const Shape& shape)
{
    const dim3 threads = shape.threads;
    const auto kernel = shape.planes == 8 ? escapes<T, 8> : shape.planes == 16 ? escapes<T, 16> : escapes<T, 32>;
    for (const Part& part : parts) {
        if (part.rows == 0) continue;
        const dim3 blocks((square.size + threads.x - 1) / threads.x, (part.rows + threads.y - 1) / threads.y);
        CHECK(cudaSetDevice(part.gpu.number));
        kernel<<<blocks, threads, 0, part.gpu.stream>>>(part.escapes.get(), square, part.rows, part.gpu.number,
                                                        static_cast<int>(parts.size()));
        CHECK(cudaGetLastError());
    }
}

// All points, row by row.
std::vector<uint32_t> gather(const std::vector<Part>& parts, int size)
{
    const size_t width = size;
    std::vector<uint32_t> all(width * width);
    for (const Part& part : parts) {
        std::vector<uint32_t> own(part.rows * width);
        CHECK(cudaMemcpy(own.data(), part.escapes.get(), own.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost));
        for (int row = 0; row < part.rows; ++row) {
            const size_t y = (row / BAND * parts.size() + part.gpu.number) * BAND + row % BAND;
            std::copy_n(own.begin() + row * width, width, all.begin() + y * width);
        }
    }
    return all;
}

// The same by plain loops.
template <class T>
std::vector<uint32_t> reference(const Square<T>& square)
{
    std::vector<uint32_t> all;
    for (int y = 0; y < square.size; ++y)
        for (int x = 0; x < square.size; ++x)
            all.push_back(escape(Complex<T>{0, 0}, 0, place(square, y, x), square.limit));
    return all;
}

// Where products and sums are fused, points close to the border of the set escape earlier or later: here far less
// than a hundredth of them.
void verify(const std::vector<uint32_t>& actual, const std::vector<uint32_t>& expected)
{
#ifdef STRICT
    compare(actual, expected, 0);
#else
    size_t differing = 0;
    for (size_t at = 0; at < expected.size(); ++at) differing += actual[at] != expected[at];
    const double share = static_cast<double>(differing) / static_cast<double>(expected.size());
    if (share > 0.01) fail("verification failed: " + std::to_string(differing) + " points differ");
    std::printf("verified: all but %.2e of the points equal those of the sequential program\n", share);
#endif
}

template <class T>
void run(const Options& options, const char* name)
{
    const int size = options.number("size", 1);
    const Square<T> square = pose<T>(size, options.number("limit", 1));
    const std::vector<Gpu> gpus = open_gpus(options.number("gpus", 1));
    const std::vector<Part> parts = divide(gpus, size);
    synchronise(gpus);
    std::vector<Shape> shapes;
    for (const dim3 threads : {dim3(32, 4, 1), dim3(8, 16, 1), dim3(32, 8, 1)})
        for (const int stride : {8, 16, 32}) shapes.push_back({threads, stride});
    const double seconds =
        fastest(gpus, options, shapes, [] {}, [&](const Shape& shape, int) { step(parts, square, shape); });

    const std::vector<uint32_t> all = gather(parts, size);
    if (options.verify) verify(all, reference(square));
    const double work = std::accumulate(all.begin(), all.end(), 0.0);
    report(name, options, size, seconds, work, "iterations", options.checksum ? checksum(all) : 0);
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"size", "512"}, {"limit", "1000"}, {"steps", "1"}, {"precision", "single"}});
    if (options.text("precision") == "single") run<float>(options, "mandelbrot");
    else if (options.text("precision") == "double") run<double>(options, "mandelbrot_double");
    else fail("--precision takes single or double, not \"" + options.text("precision") + "\"");
}

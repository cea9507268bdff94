// How fast a GPU copies in its own memory, read and written bytes together: by the driver, and by
// a kernel whose threads copy 16 bytes each.

#include "common.cuh"

constexpr int THREADS = 256;

__global__ void copy(uint4* __restrict__ to, const uint4* __restrict__ from, size_t count)
{
    const size_t at = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (at < count) to[at] = from[at];
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"mib", "1024"}, {"steps", "60"}});
    const int mib = options.number("mib", 1);
    const size_t bytes = static_cast<size_t>(mib) << 20, count = bytes / sizeof(uint4);
    std::vector<Gpu> gpus = open_gpus(options.number("gpus", 1));
    std::vector<Array<uint4>> from, to;
    for (const Gpu& gpu : gpus) {
        from.push_back(allocate<uint4>(gpu, count));
        to.push_back(allocate<uint4>(gpu, count));
        CHECK(cudaMemset(from.back().get(), 1, bytes));
    }
    synchronise(gpus);
    const double work = 2.0 * static_cast<double>(bytes) * static_cast<double>(gpus.size());
    const double by_driver = timed(gpus, options, [&](int) {
        for (const Gpu& gpu : gpus)
            CHECK(cudaMemcpyAsync(to[gpu.number].get(), from[gpu.number].get(), bytes, cudaMemcpyDeviceToDevice,
                                  gpu.stream));
    });
    report("copy_by_driver", options, mib, by_driver, work, "bytes", 0);
    const double by_kernel = timed(gpus, options, [&](int) {
        for (const Gpu& gpu : gpus) {
            CHECK(cudaSetDevice(gpu.number));
            const int blocks = static_cast<int>((count + THREADS - 1) / THREADS);
            copy<<<blocks, THREADS, 0, gpu.stream>>>(to[gpu.number].get(), from[gpu.number].get(), count);
            CHECK(cudaGetLastError());
        }
    });
    report("copy_by_kernel", options, mib, by_kernel, work, "bytes", 0);
}

// The sum of 2^log2 floats by CUB, whose order is its own.

#include <cub/cub.cuh>

#include "common.cuh"

__global__ void draw(float* values, size_t count)
{
    const size_t at = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at < count) values[at] = static_cast<float>((static_cast<uint32_t>(at) * 2654435761u) >> 8) / 16777216.0f;
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"log2", "28"}, {"steps", "60"}});
    const int log2 = options.number("log2", 8);
    const size_t count = static_cast<size_t>(1) << log2, bytes = count * sizeof(float);
    std::vector<Gpu> gpus = open_gpus(1);
    const Gpu& gpu = gpus.front();
    Array<float> values = allocate<float>(gpu, count), sum = allocate<float>(gpu, 1);
    draw<<<static_cast<int>((count + 255) / 256), 256, 0, gpu.stream>>>(values.get(), count);
    CHECK(cudaGetLastError());
    size_t scratch_bytes = 0;
    CHECK(cub::DeviceReduce::Sum(nullptr, scratch_bytes, values.get(), sum.get(), count, gpu.stream));
    Array<uint8_t> scratch = allocate<uint8_t>(gpu, scratch_bytes);
    synchronise(gpus);
    const double seconds = timed(gpus, options, [&](int) {
        CHECK(cub::DeviceReduce::Sum(scratch.get(), scratch_bytes, values.get(), sum.get(), count, gpu.stream));
    });
    report("reduce", options, log2, seconds, static_cast<double>(bytes), "bytes", 0);
}

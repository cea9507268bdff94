// How many operations on floating-point numbers a GPU does from registers alone: sums, products, and both as one
// instruction, which counts once. What arithmetic can reach at most, as a copy is what memory can.

#include "common.cuh"

constexpr int THREADS = 256;

// Chains of a thread that do not wait for each other, and links of each between two questions whether it is done.
constexpr int CHAINS = 8;
constexpr int LINKS = 32;

__device__ float sum(float a, float b) { return __fadd_rn(a, b); }
__device__ double sum(double a, double b) { return __dadd_rn(a, b); }
__device__ float product(float a, float b) { return __fmul_rn(a, b); }
__device__ double product(double a, double b) { return __dmul_rn(a, b); }

struct Fused {
    static constexpr const char* NAME = "fused";
    template <class T>
    __device__ static T link(T x, T y, int) { return fma(x, y, y); }
};

// Sums and products in turns, none of which may become one instruction.
struct Apart {
    static constexpr const char* NAME = "apart";
    template <class T>
    __device__ static T link(T x, T y, int at) { return at % 2 == 0 ? product(x, y) : sum(x, y); }
};

// Numbers stay small, since `factor` is below 1. What comes out is stored if it is what it never is.
template <class Form, class T>
__global__ void __launch_bounds__(THREADS) chains(T* out, T factor, int rounds)
{
    T x[CHAINS];
#pragma unroll
    for (int chain = 0; chain < CHAINS; ++chain) x[chain] = static_cast<T>(threadIdx.x + chain);
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int at = 0; at < LINKS; ++at) {
#pragma unroll
            for (int chain = 0; chain < CHAINS; ++chain) x[chain] = Form::link(x[chain], factor, at);
        }
    }
    T all = 0;
#pragma unroll
    for (int chain = 0; chain < CHAINS; ++chain) all += x[chain];
    if (all == static_cast<T>(-1)) *out = all;
}

template <class Form, class T>
void measure(const std::vector<Gpu>& gpus, const Options& options, const char* precision)
{
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    const int blocks = properties.multiProcessorCount * 64, rounds = options.number("rounds", 1);
    std::vector<Array<T>> out;
    for (const Gpu& gpu : gpus) out.push_back(allocate<T>(gpu, 1));
    const double seconds = timed(gpus, options, [&](int) {
        for (const Gpu& gpu : gpus) {
            CHECK(cudaSetDevice(gpu.number));
            chains<Form, T><<<blocks, THREADS, 0, gpu.stream>>>(out[gpu.number].get(), static_cast<T>(0.5), rounds);
            CHECK(cudaGetLastError());
        }
    });
    const double links = static_cast<double>(blocks) * THREADS * CHAINS * LINKS * rounds * gpus.size();
    const std::string name = std::string("peak_") + Form::NAME + "_" + precision;
    report(name.c_str(), options, rounds, seconds, links, "operations", 0);
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"rounds", "256"}, {"steps", "30"}});
    const std::vector<Gpu> gpus = open_gpus(options.number("gpus", 1));
    measure<Fused, float>(gpus, options, "single");
    measure<Apart, float>(gpus, options, "single");
    measure<Fused, double>(gpus, options, "double");
    measure<Apart, double>(gpus, options, "double");
}

// How many values of a function one GPU finds in a second: sums of many values for each thread, of which none depends on another.

#include "common.cuh"

constexpr unsigned items = 1u << 20, values = 256;

struct Exp { template <class T> __device__ T operator()(T x) const { return exp(x); } };
struct Ln { template <class T> __device__ T operator()(T x) const { return log(x); } };
struct Sin { template <class T> __device__ T operator()(T x) const { return sin(x); } };
struct Cos { template <class T> __device__ T operator()(T x) const { return cos(x); } };
struct Tanh { template <class T> __device__ T operator()(T x) const { return tanh(x); } };
struct Pow { template <class T> __device__ T operator()(T x) const { return pow(x, T(2) - x); } };
struct Erf { template <class T> __device__ T operator()(T x) const { return erf(x); } };

template <class T, class F>
__global__ void sums(T* out, F function)
{
    const unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
    T x = T(0.125f + static_cast<float>(item % 1024) / 1024.0f), sum = T(0);
    for (unsigned at = 0; at < values; ++at) {
        sum += function(x);
        x += T(0.015625f);
    }
    out[item] = sum;
}

template <class T, class F>
void measure(const Options& options, const std::string& name, F function)
{
    const std::vector<Gpu> gpus = open_gpus(1);
    const Gpu& gpu = gpus.front();
    Array<T> out = allocate<T>(gpu, items);
    const double seconds = timed(gpus, options, [&](int) {
        sums<<<items / 256, 256, 0, gpu.stream>>>(out.get(), function);
        CHECK(cudaGetLastError());
    });
    report(("functions_" + name).c_str(), options, items, seconds, static_cast<double>(items) * values, "values", 0);
}

template <class T>
void choose(const Options& options)
{
    const std::string name = options.text("function");
    if (name == "exp") measure<T>(options, name, Exp());
    else if (name == "ln") measure<T>(options, name, Ln());
    else if (name == "sin") measure<T>(options, name, Sin());
    else if (name == "cos") measure<T>(options, name, Cos());
    else if (name == "tanh") measure<T>(options, name, Tanh());
    else if (name == "pow") measure<T>(options, name, Pow());
    else if (name == "erf") measure<T>(options, name, Erf());
    else fail("--function is exp, ln, sin, cos, tanh, pow or erf, not \"" + name + "\"");
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"function", "exp"}, {"precision", "single"}, {"steps", "60"}, {"warm-up", "10"}});
    const std::string precision = options.text("precision");
    if (precision == "single") choose<float>(options);
    else if (precision == "double") choose<double>(options);
    else fail("--precision is single or double, not \"" + precision + "\"");
}

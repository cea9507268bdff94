// What the programs share: options, GPUs, copies between them, clock, checks, result line.
// Knows nothing of what is computed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime.h>

// For functions that kernels and sequential programs share.
#define BOTH __host__ __device__ inline

// Ends the program with the place and the reason if a call of CUDA's fails.
#define CHECK(call) check((call), #call, __FILE__, __LINE__)

inline void check(cudaError_t error, const char* call, const char* file, int line)
{
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(error));
    std::exit(EXIT_FAILURE);
}

[[noreturn]] inline void fail(const std::string& what)
{
    std::fprintf(stderr, "error: %s\n", what.c_str());
    std::exit(EXIT_FAILURE);
}

// `--name value` for each name that has a default, and the flags of all programs.
class Options {
public:
    Options(int argc, char** argv, std::map<std::string, std::string> defaults)
        : values(std::move(defaults))
    {
        values.insert({{"gpus", "1"}, {"warm-up", "0"}});
        for (int at = 1; at < argc; ++at) at += take(argv[at], argv[at + 1]);
        if (number("warm-up") >= number("steps")) fail("--warm-up must be less than --steps");
    }

    const std::string& text(const std::string& name) const { return values.at(name); }

    // A whole number of at least `least`.
    int number(const std::string& name, int least = 0) const
    {
        const std::string& text = values.at(name);
        char* end = nullptr;
        const long value = std::strtol(text.c_str(), &end, 10);
        if (text.empty() || *end != '\0' || value < least || value > 1'000'000'000)
            fail("--" + name + " takes a number of at least " + std::to_string(least) + ", not \"" + text + "\"");
        return static_cast<int>(value);
    }

    bool verify = false;
    bool checksum = false;

private:
    // How many arguments were used up beside the first.
    int take(const std::string& option, const char* value)
    {
        if (option == "--verify") return verify = true, 0;
        if (option == "--checksum") return checksum = true, 0;
        const auto known = option.rfind("--", 0) == 0 ? values.find(option.substr(2)) : values.end();
        if (known == values.end() || value == nullptr) usage();
        known->second = value;
        return 1;
    }

    [[noreturn]] void usage() const
    {
        std::fprintf(stderr, "options: --verify --checksum");
        for (const auto& [name, value] : values)
            std::fprintf(stderr, " --%s VALUE (%s)", name.c_str(), value.c_str());
        std::fprintf(stderr, "\n");
        std::exit(2);
    }

    std::map<std::string, std::string> values;
};

// A GPU with a stream for its work, and events by which others wait for it.
struct Gpu {
    int number;
    cudaStream_t stream;
    cudaEvent_t computed, fetched;
};

inline cudaEvent_t new_event()
{
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

inline cudaStream_t new_stream()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

// The first GPUs of this host, which can reach each other's memory where the hardware can.
inline std::vector<Gpu> open_gpus(int count)
{
    int there = 0;
    CHECK(cudaGetDeviceCount(&there));
    if (count > there) fail("there are " + std::to_string(there) + " GPUs, not " + std::to_string(count));
    std::vector<Gpu> gpus;
    for (int number = 0; number < count; ++number) {
        CHECK(cudaSetDevice(number));
        gpus.push_back({number, new_stream(), new_event(), new_event()});
        for (int other = 0; other < count; ++other) {
            int reachable = 0;
            if (other != number) CHECK(cudaDeviceCanAccessPeer(&reachable, number, other));
            if (reachable) CHECK(cudaDeviceEnablePeerAccess(other, 0));
        }
    }
    return gpus;
}

inline void synchronise(const std::vector<Gpu>& gpus)
{
    for (const Gpu& gpu : gpus) {
        CHECK(cudaSetDevice(gpu.number));
        CHECK(cudaDeviceSynchronize());
    }
}

// Memory of a GPU.
struct Free {
    void operator()(void* memory) const { CHECK(cudaFree(memory)); }
};
template <class T>
using Array = std::unique_ptr<T[], Free>;

template <class T>
Array<T> allocate(const Gpu& gpu, size_t count)
{
    void* memory = nullptr;
    CHECK(cudaSetDevice(gpu.number));
    CHECK(cudaMalloc(&memory, count * sizeof(T)));
    return Array<T>(static_cast<T*>(memory));
}

// Where parts begin, and the last one ends: as even as can be, in whole grains.
inline std::vector<int> split(int total, size_t parts, int grain = 1)
{
    std::vector<int> begins;
    for (size_t part = 0; part <= parts; ++part)
        begins.push_back(static_cast<int>(static_cast<size_t>(total / grain) * part / parts) * grain);
    begins.back() = total;
    return begins;
}

// Every GPU has computed its part of an array that all have a copy of, and fetches the parts of
// all others; `begins` counts rows of `width` elements. What its stream does afterwards comes after all of that, on all GPUs, so that no
// part is overwritten that another GPU has still to fetch.
template <class T>
void all_gather(const std::vector<Gpu>& gpus, const std::vector<T*>& copies, const std::vector<int>& begins,
                size_t width = 1)
{
    if (gpus.size() < 2) return;
    for (const Gpu& gpu : gpus) CHECK(cudaEventRecord(gpu.computed, gpu.stream));
    for (const Gpu& to : gpus) {
        for (const Gpu& from : gpus) {
            if (from.number == to.number) continue;
            const size_t begin = begins[from.number] * width, end = begins[from.number + 1] * width;
            CHECK(cudaStreamWaitEvent(to.stream, from.computed, 0));
            CHECK(cudaMemcpyPeerAsync(copies[to.number] + begin, to.number, copies[from.number] + begin,
                                      from.number, (end - begin) * sizeof(T), to.stream));
        }
        CHECK(cudaEventRecord(to.fetched, to.stream));
    }
    for (const Gpu& gpu : gpus)
        for (const Gpu& other : gpus)
            if (other.number != gpu.number) CHECK(cudaStreamWaitEvent(gpu.stream, other.fetched, 0));
}

// Seconds that all steps but the first `warm_up` take. `step` gets the step's number, from 0.
inline double timed(const std::vector<Gpu>& gpus, const Options& options, const std::function<void(int)>& step)
{
    const int warm_up = options.number("warm-up"), steps = options.number("steps");
    for (int number = 0; number < warm_up; ++number) step(number);
    synchronise(gpus);
    const auto start = std::chrono::steady_clock::now();
    for (int number = warm_up; number < steps; ++number) step(number);
    synchronise(gpus);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Integers, mixed until every bit depends on every other (`splitmix64`).
BOTH uint64_t mix(uint64_t word)
{
    word += 0x9e3779b97f4a7c15;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
}

// A number from 0 to below 1 that looks random.
BOTH float unit(uint64_t word)
{
    return static_cast<float>(mix(word) >> 40) / static_cast<float>(1 << 24);
}

constexpr uint64_t CHECKSUM_OF_NOTHING = 0xcbf29ce484222325;

// FNV-1a of the bytes, going on from an earlier checksum.
template <class T>
uint64_t checksum(const std::vector<T>& values, uint64_t sum = CHECKSUM_OF_NOTHING)
{
    const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (size_t at = 0; at < values.size() * sizeof(T); ++at) sum = (sum ^ bytes[at]) * 0x100000001b3;
    return sum;
}

// Compares with the sequential program: bit for bit if products and sums are not fused (built
// with -fmad=false -DSTRICT), else within `tolerance` of the largest number.
template <class T>
void compare(const std::vector<T>& actual, const std::vector<T>& expected, double tolerance)
{
    double largest = 0;
    for (T number : expected) largest = std::max(largest, std::abs(static_cast<double>(number)));
    for (size_t at = 0; at < expected.size(); ++at) {
#ifdef STRICT
        const bool same = std::memcmp(&actual[at], &expected[at], sizeof(T)) == 0;
#else
        const double off = std::abs(static_cast<double>(actual[at]) - static_cast<double>(expected[at]));
        const bool same = off <= tolerance * largest;
#endif
        if (same) continue;
        std::fprintf(stderr, "verification failed: number %zu of %zu is %.9g instead of %.9g\n", at,
                     expected.size(), static_cast<double>(actual[at]), static_cast<double>(expected[at]));
        std::exit(EXIT_FAILURE);
    }
#ifdef STRICT
    (void)tolerance;
    std::printf("verified: every number equals that of the sequential program, bit for bit\n");
#else
    std::printf("verified: every number is within %.0e of the sequential program's\n", tolerance);
#endif
}

// The line that scripts read. `work` is what a step does, in `what`; `sum` is left out if 0.
inline void report(const char* program, const Options& options, int size, double seconds, double work,
                   const char* what, uint64_t sum)
{
    const int steps = options.number("steps") - options.number("warm-up");
    std::printf("RESULT %s gpus=%d size=%d steps=%d seconds=%.6f rate=%.6e unit=%s/s", program,
                options.number("gpus"), size, steps, seconds, work * steps / seconds, what);
    if (sum != 0) std::printf(" checksum=%016llx", static_cast<unsigned long long>(sum));
    std::printf("\n");
}

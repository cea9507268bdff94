// How fast GPUs of one process gather all parts of an array: each has written one, and all have all of them
// afterwards. By NCCL's all-gather in place, and by copies from GPU to GPU.

#include <nccl.h>

#include "common.cuh"

// Ends the program if a call of NCCL's fails.
#define CHECK_NCCL(call) check_nccl((call), #call, __FILE__, __LINE__)

inline void check_nccl(ncclResult_t result, const char* call, const char* file, int line)
{
    if (result == ncclSuccess) return;
    std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, ncclGetErrorString(result));
    std::exit(EXIT_FAILURE);
}

// A communicator for each GPU, ended with the list.
struct Communicators {
    explicit Communicators(size_t count) : all(count)
    {
        CHECK_NCCL(ncclCommInitAll(all.data(), static_cast<int>(count), nullptr));
    }
    ~Communicators()
    {
        for (ncclComm_t one : all) ncclCommDestroy(one);
    }
    std::vector<ncclComm_t> all;
};

// All elements, as every GPU must have them.
std::vector<uint32_t> expected(int count)
{
    std::vector<uint32_t> all(count);
    for (int at = 0; at < count; ++at) all[at] = static_cast<uint32_t>(mix(at));
    return all;
}

// Gives each GPU its part, and nothing of the others'.
void reset(const std::vector<Gpu>& gpus, const std::vector<uint32_t*>& copies, const std::vector<int>& begins,
           const std::vector<uint32_t>& all)
{
    for (const Gpu& gpu : gpus) {
        const int begin = begins[gpu.number], end = begins[gpu.number + 1];
        CHECK(cudaSetDevice(gpu.number));
        CHECK(cudaMemset(copies[gpu.number], 0, all.size() * sizeof(uint32_t)));
        CHECK(cudaMemcpy(copies[gpu.number] + begin, all.data() + begin, (end - begin) * sizeof(uint32_t),
                         cudaMemcpyHostToDevice));
    }
}

// Whether every GPU has everything.
void verify(const std::vector<Gpu>& gpus, const std::vector<uint32_t*>& copies, const std::vector<uint32_t>& all)
{
    std::vector<uint32_t> found(all.size());
    for (const Gpu& gpu : gpus) {
        CHECK(cudaSetDevice(gpu.number));
        CHECK(cudaMemcpy(found.data(), copies[gpu.number], all.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost));
        if (found != all) fail("GPU " + std::to_string(gpu.number) + " has not got everything");
    }
    std::printf("verified: every GPU has everything\n");
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"size", "16777216"}, {"steps", "60"}});
    const int size = options.number("size", 1);
    std::vector<Gpu> gpus = open_gpus(options.number("gpus", 1));
    if (size % static_cast<int>(gpus.size()) != 0) fail("--size must be a multiple of --gpus");
    const std::vector<int> begins = split(size, gpus.size());
    std::vector<Array<uint32_t>> memory;
    std::vector<uint32_t*> copies;
    for (const Gpu& gpu : gpus) {
        memory.push_back(allocate<uint32_t>(gpu, size));
        copies.push_back(memory.back().get());
    }
    const Communicators communicators(gpus.size());
    const std::vector<uint32_t> all = expected(size);
    const double work = static_cast<double>(size) * sizeof(uint32_t);
    const auto measure = [&](const char* name, const std::function<void(int)>& step) {
        reset(gpus, copies, begins, all);
        const double seconds = timed(gpus, options, step);
        report(name, options, size, seconds, work, "bytes", 0);
        if (options.verify) verify(gpus, copies, all);
    };
    measure("all_gather_by_nccl", [&](int) {
        CHECK_NCCL(ncclGroupStart());
        for (const Gpu& gpu : gpus) {
            uint32_t* own = copies[gpu.number] + begins[gpu.number];
            CHECK_NCCL(ncclAllGather(own, copies[gpu.number], static_cast<size_t>(size) / gpus.size(), ncclUint32,
                                     communicators.all[gpu.number], gpu.stream));
        }
        CHECK_NCCL(ncclGroupEnd());
    });
    measure("all_gather_by_copies", [&](int) { all_gather(gpus, copies, begins); });
}

// How often each byte, and each pair of neighbouring bytes, occurs: what the example histogram counts of bytes that
// are made up. Pairs are counted, and say how often each byte occurs. Each GPU has a part of the bytes, and its
// first neighbour's first one; counts are summed in the last step.

#include "common.cuh"

constexpr int VALUES = 256, PAIRS = VALUES * VALUES;

// Bytes that a thread loads at once.
constexpr int WIDE = 16;

constexpr int THREADS = 1024;

// A block has counts of 16 bits for all pairs, two in a word.
constexpr int SHARED_WORDS = PAIRS / 2;

// A count that has come so far is handed on. Until it had no room, each thread of the block would have to count the
// same pair 63 times more, in the time that one takes for it.
constexpr uint32_t MUCH = 1 << 10;

// Bytes of which small ones are frequent, and neighbours alike.
std::vector<uint8_t> made_up(size_t count)
{
    uint64_t state = 0x9e3779b97f4a7c15;
    uint8_t last = 0;
    std::vector<uint8_t> text(count);
    for (uint8_t& byte : text) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        const int zeros = (state & 0xff) == 0 ? 8 : __builtin_ctzll(state);
        byte = last = static_cast<uint8_t>(last / 2 + zeros * 20);
    }
    return text;
}

// In memory, the first byte of a pair is the low one of its 16 bits.
__device__ int index_of(uint32_t pair)
{
    return static_cast<int>((pair & 0xff) * VALUES + (pair >> 8));
}

// Counts that blocks have for themselves, in shared memory.
struct Shared {
    uint32_t* own;
    unsigned long long* all;

    // Counts the low 16 bits. Only one thread sees that a count becomes much, and takes as much from it.
    __device__ void count(uint32_t pair)
    {
        pair &= 0xffff;
        const uint32_t shift = pair % 2 * 16;
        const uint32_t before = atomicAdd(own + pair / 2, 1u << shift) >> shift & 0xffff;
        // Others may count on before this is taken off.
        if ((before & (MUCH - 1)) != MUCH - 1) return;
        atomicSub(own + pair / 2, MUCH << shift);
        atomicAdd(all + index_of(pair), static_cast<unsigned long long>(MUCH));
    }
};

// Counts in global memory, which all blocks share.
struct Global {
    unsigned long long* all;

    __device__ void count(uint32_t pair) { atomicAdd(all + index_of(pair & 0xffff), 1ull); }
};

// Counts the pairs that begin with the first `pairs` bytes, 16 at a time.
template <class Counts>
__device__ void count_all(Counts counts, const uint8_t* __restrict__ text, size_t pairs)
{
    const size_t first = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x, groups = pairs / WIDE;
    for (size_t group = first; group < groups; group += static_cast<size_t>(gridDim.x) * THREADS) {
        const uint4 wide = reinterpret_cast<const uint4*>(text)[group];
        const uint32_t words[5] = {wide.x, wide.y, wide.z, wide.w, text[(group + 1) * WIDE]};
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            counts.count(words[word]);
            counts.count(words[word] >> 8);
            counts.count(words[word] >> 16);
            counts.count(__funnelshift_r(words[word], words[word + 1], 24));
        }
    }
    const size_t at = groups * WIDE + first;
    if (at < pairs) counts.count(text[at] + (static_cast<uint32_t>(text[at + 1]) << 8));
}

__global__ void __launch_bounds__(THREADS) count_in_shared(unsigned long long* __restrict__ all,
                                                           const uint8_t* __restrict__ text, size_t pairs)
{
    extern __shared__ uint32_t own[];
    for (int word = threadIdx.x; word < SHARED_WORDS; word += THREADS) own[word] = 0;
    __syncthreads();
    count_all(Shared{own, all}, text, pairs);
    __syncthreads();
    for (int word = threadIdx.x; word < SHARED_WORDS; word += THREADS) {
        const uint32_t low = own[word] & 0xffff, high = own[word] >> 16;
        if (low != 0) atomicAdd(all + index_of(2 * word), static_cast<unsigned long long>(low));
        if (high != 0) atomicAdd(all + index_of(2 * word + 1), static_cast<unsigned long long>(high));
    }
}

__global__ void __launch_bounds__(THREADS) count_in_global(unsigned long long* __restrict__ all,
                                                           const uint8_t* __restrict__ text, size_t pairs)
{
    count_all(Global{all}, text, pairs);
}

// Adds the counts of another GPU.
__global__ void add(unsigned long long* __restrict__ counts, const unsigned long long* __restrict__ others)
{
    const int at = blockIdx.x * VALUES + threadIdx.x;
    counts[at] += others[at];
}

// How often a byte occurs is how often it is the first of a pair, and once more if it is the last of all. The
// block counts one byte.
__global__ void count_bytes(unsigned long long* __restrict__ bytes, const unsigned long long* __restrict__ pairs,
                            int last)
{
    __shared__ unsigned long long sum;
    const int byte = blockIdx.x;
    if (threadIdx.x == 0) sum = byte == last;
    __syncthreads();
    atomicAdd(&sum, pairs[byte * VALUES + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) bytes[byte] = sum;
}

// What a GPU has: its bytes and one more, of which `pairs` begin pairs, the counts, and room for those of another.
struct Part {
    Gpu gpu;
    int blocks;
    size_t pairs;
    Array<uint8_t> text;
    Array<unsigned long long> counts, others;
};

std::vector<Part> divide(const std::vector<Gpu>& gpus, const std::vector<uint8_t>& text)
{
    const std::vector<int> begins = split(static_cast<int>(text.size()), gpus.size(), WIDE);
    std::vector<Part> parts;
    for (const Gpu& gpu : gpus) {
        const size_t begin = begins[gpu.number], end = std::min<size_t>(begins[gpu.number + 1] + 1, text.size());
        Array<uint8_t> own = allocate<uint8_t>(gpu, std::max<size_t>(1, end - begin));
        CHECK(cudaMemcpy(own.get(), text.data() + begin, end - begin, cudaMemcpyHostToDevice));
        int processors = 0;
        CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu.number));
        CHECK(cudaFuncSetAttribute(count_in_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   SHARED_WORDS * sizeof(uint32_t)));
        const size_t pairs = end > begin ? end - begin - 1 : 0;
        parts.push_back({gpu, processors, pairs, std::move(own), allocate<unsigned long long>(gpu, PAIRS),
                         allocate<unsigned long long>(gpu, PAIRS)});
    }
    return parts;
}

void count(const std::vector<Part>& parts, bool is_shared)
{
    for (const Part& part : parts) {
        const cudaStream_t stream = part.gpu.stream;
        CHECK(cudaSetDevice(part.gpu.number));
        CHECK(cudaMemsetAsync(part.counts.get(), 0, PAIRS * sizeof(unsigned long long), stream));
        unsigned long long* const counts = part.counts.get();
        const uint8_t* const text = part.text.get();
        if (is_shared) {
            const size_t bytes = SHARED_WORDS * sizeof(uint32_t);
            count_in_shared<<<part.blocks, THREADS, bytes, stream>>>(counts, text, part.pairs);
        } else {
            count_in_global<<<2 * part.blocks, THREADS, 0, stream>>>(counts, text, part.pairs);
        }
        CHECK(cudaGetLastError());
    }
}

// Puts together, on the first GPU, what all have counted.
void sum(const std::vector<Part>& parts, unsigned long long* bytes, int last)
{
    const Part& first = parts[0];
    for (const Part& part : parts) {
        if (part.gpu.number == first.gpu.number) continue;
        CHECK(cudaSetDevice(part.gpu.number));
        CHECK(cudaEventRecord(part.gpu.computed, part.gpu.stream));
        CHECK(cudaSetDevice(first.gpu.number));
        CHECK(cudaStreamWaitEvent(first.gpu.stream, part.gpu.computed, 0));
        CHECK(cudaMemcpyPeerAsync(first.others.get(), first.gpu.number, part.counts.get(), part.gpu.number,
                                  PAIRS * sizeof(unsigned long long), first.gpu.stream));
        add<<<VALUES, VALUES, 0, first.gpu.stream>>>(first.counts.get(), first.others.get());
        CHECK(cudaGetLastError());
    }
    CHECK(cudaSetDevice(first.gpu.number));
    count_bytes<<<VALUES, VALUES, 0, first.gpu.stream>>>(bytes, first.counts.get(), last);
    CHECK(cudaGetLastError());
}

// The counts of bytes, then those of pairs, of which the first byte is the row.
std::vector<uint64_t> gather(const Array<unsigned long long>& bytes, const Part& first)
{
    std::vector<uint64_t> counts(VALUES + PAIRS);
    CHECK(cudaMemcpy(counts.data(), bytes.get(), VALUES * sizeof(uint64_t), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(counts.data() + VALUES, first.counts.get(), PAIRS * sizeof(uint64_t), cudaMemcpyDeviceToHost));
    return counts;
}

// The same by plain loops.
std::vector<uint64_t> reference(const std::vector<uint8_t>& text)
{
    std::vector<uint64_t> counts(VALUES + PAIRS);
    for (const uint8_t byte : text) ++counts[byte];
    for (size_t at = 0; at + 1 < text.size(); ++at) ++counts[VALUES + text[at] * VALUES + text[at + 1]];
    return counts;
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"random", "1000000"}, {"steps", "1"}, {"form", "shared"}});
    const int total = options.number("random", 1), steps = options.number("steps", 1);
    const std::string form = options.text("form");
    if (form != "shared" && form != "global") fail("--form is shared or global, not \"" + form + "\"");
    const std::vector<Gpu> gpus = open_gpus(options.number("gpus", 1));
    const std::vector<uint8_t> text = made_up(total);
    const std::vector<Part> parts = divide(gpus, text);
    const Array<unsigned long long> bytes = allocate<unsigned long long>(gpus[0], VALUES);
    synchronise(gpus);
    const double seconds = timed(gpus, options, [&](int number) {
        count(parts, form == "shared");
        if (number + 1 == steps) sum(parts, bytes.get(), text.back());
    });

    uint64_t checked = 0;
    if (options.verify || options.checksum) {
        const std::vector<uint64_t> counts = gather(bytes, parts[0]);
        if (options.verify) compare(counts, reference(text), 0);
        if (options.checksum) checked = checksum(counts);
    }
    report("histogram", options, total, seconds, total, "bytes", checked);
}

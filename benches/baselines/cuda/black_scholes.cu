// European options by the formula of Black and Scholes, day after day: what the example
// black_scholes computes. Each GPU has its part of the options; nothing is exchanged.

#include "common.cuh"
#include "musl.cuh"

constexpr float RATE = 0.02f, VOLATILITY = 0.3f;

constexpr int THREADS = 256;

// The price of the share, the price at which it may be bought or sold, and the years until then.
struct Contract {
    float share, strike, years;
};

// What the right to buy is worth, and the right to sell.
struct Prices {
    float buy, sell;
};

// The probability that a normally distributed number is at most `x`.
BOTH float normal(float x)
{
    return 0.5f * musl::erfc(-x * 0.707106781186547524f);
}

BOTH Prices prices(Contract contract, float rate, float volatility)
{
    const auto [share, price, years] = contract;
    const float deviation = volatility * sqrtf(years);
    const float drift = (rate + 0.5f * volatility * volatility) * years;
    const float d1 = (musl::log(share / price) + drift) / deviation;
    const float d2 = d1 - deviation;
    const float strike = price * musl::exp(-rate * years);
    return {share * normal(d1) - strike * normal(d2), strike * normal(-d2) - share * normal(-d1)};
}

// One of many contracts that look random.
BOTH Contract contract(int number)
{
    const auto random = [&](int which) { return unit(4 * static_cast<uint64_t>(number) + which); };
    return {5.0f + 25.0f * random(0), 1.0f + 99.0f * random(1), 0.25f + 9.75f * random(2)};
}

__global__ void draw(Contract* contracts, int first, int count)
{
    const int at = blockIdx.x * THREADS + threadIdx.x;
    if (at < count) contracts[at] = contract(first + at);
}

// The prices when `elapsed` years have passed.
__global__ void price(Prices* __restrict__ out, const Contract* __restrict__ contracts, int count, float elapsed,
                      float rate, float volatility)
{
    const int at = blockIdx.x * THREADS + threadIdx.x;
    if (at >= count) return;
    const Contract contract = contracts[at];
    out[at] = prices({contract.share, contract.strike, contract.years - elapsed}, rate, volatility);
}

BOTH float years(int days)
{
    return static_cast<float>(days) / 365.0f;
}

// What a GPU has.
struct Part {
    Gpu gpu;
    int first, count;
    Array<Contract> contracts;
    Array<Prices> prices;
};

std::vector<Part> divide(const std::vector<Gpu>& gpus, int total)
{
    const std::vector<int> begins = split(total, gpus.size());
    std::vector<Part> parts;
    for (const Gpu& gpu : gpus) {
        const int first = begins[gpu.number], count = begins[gpu.number + 1] - first;
        Part part{gpu, first, count, allocate<Contract>(gpu, count), allocate<Prices>(gpu, count)};
        draw<<<(count + THREADS - 1) / THREADS, THREADS, 0, gpu.stream>>>(part.contracts.get(), first, count);
        CHECK(cudaGetLastError());
        parts.push_back(std::move(part));
    }
    return parts;
}

void step(const std::vector<Part>& parts, int day)
{
    for (const Part& part : parts) {
        CHECK(cudaSetDevice(part.gpu.number));
        price<<<(part.count + THREADS - 1) / THREADS, THREADS, 0, part.gpu.stream>>>(
            part.prices.get(), part.contracts.get(), part.count, years(day), RATE, VOLATILITY);
        CHECK(cudaGetLastError());
    }
}

// Both prices of all options, one after the other.
std::vector<float> gather(const std::vector<Part>& parts, int total)
{
    std::vector<float> numbers(2 * static_cast<size_t>(total));
    for (const Part& part : parts)
        CHECK(cudaMemcpy(numbers.data() + 2 * static_cast<size_t>(part.first), part.prices.get(),
                         part.count * sizeof(Prices), cudaMemcpyDeviceToHost));
    return numbers;
}

// The same by a plain loop, for the last day.
std::vector<float> reference(int total, int day)
{
    std::vector<float> numbers;
    for (int number = 0; number < total; ++number) {
        const auto [share, strike, left] = contract(number);
        const Prices of = prices({share, strike, left - years(day)}, RATE, VOLATILITY);
        numbers.insert(numbers.end(), {of.buy, of.sell});
    }
    return numbers;
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"options", "1000000"}, {"steps", "10"}});
    const int total = options.number("options", 1), days = options.number("steps", 1);
    if (days > 90) fail("the first options run out after 91 days: --steps must be at most 90");
    const std::vector<Gpu> gpus = open_gpus(options.number("gpus", 1));
    if (static_cast<int>(gpus.size()) > total) fail("there must be an option for each GPU");
    const std::vector<Part> parts = divide(gpus, total);
    synchronise(gpus);
    const double seconds = timed(gpus, options, [&](int number) { step(parts, number + 1); });

    uint64_t sum = 0;
    if (options.verify || options.checksum) {
        const std::vector<float> numbers = gather(parts, total);
        if (options.verify) compare(numbers, reference(total, days), 2e-6);
        if (options.checksum) sum = checksum(numbers);
    }
    report("black_scholes", options, total, seconds, total, "options", sum);
}

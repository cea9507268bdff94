// Many bodies that attract each other: what the example nbody computes in groups, of as many
// random stars. All GPUs know all places; each has the velocities of its part of the bodies.
// In double precision numbers are SI units. In single precision, which SI units of this size leave,
// they are in units of the cluster's radius and of the time in which a star crosses it.
// Without STRICT, bodies are --own to a thread (1, 2 or 4), and sums are in another order; `--form registers` does as
// many of its operations on bodies that stay in registers, to see what arithmetic can reach on one GPU.

#include "common.cuh"

constexpr double NEWTON = 6.674'30e-11;
constexpr double SOLAR_MASS = 1.988'41e30;
constexpr uint64_t SEED = 1;

// Bodies of a block, which bring as many of those that attract into shared memory at a time.
constexpr int CREW = 128;

// Where a body is, and its mass times Newton's constant; aligned for loads of 16 bytes.
template <class T>
struct alignas(16) Place {
    T x, y, z, mass;
};

template <class T>
struct Vector {
    T x, y, z;
};

// Adds the pull of one body on another. A body does not pull itself.
template <class T>
BOTH void add_pull(Vector<T>& pull, const Place<T>& own, const Place<T>& other, T softening)
{
    const T dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
    const T distance2 = dx * dx + dy * dy + dz * dz;
    const T softened2 = distance2 + softening * softening;
    const T strength = distance2 > 0 ? other.mass / (softened2 * sqrt(softened2)) : 0;
    pull.x += strength * dx;
    pull.y += strength * dy;
    pull.z += strength * dz;
}

template <class T, class U>
BOTH void advance(T& numbers, const U& by, decltype(T::x) dt)
{
    numbers.x += dt * by.x;
    numbers.y += dt * by.y;
    numbers.z += dt * by.z;
}

// The change of velocities in a time; `velocities` begin with body `first`.
template <class T>
__global__ void kick(Vector<T>* velocities, const Place<T>* __restrict__ places, int first, int count, T softening,
                     T dt)
{
    __shared__ Place<T> near[CREW];
    const int at = blockIdx.x * CREW + threadIdx.x;
    const Place<T> own = places[first + at];
    Vector<T> pull = {0, 0, 0};
    for (int tile = 0; tile < count; tile += CREW) {
        near[threadIdx.x] = places[tile + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < CREW; ++i) add_pull(pull, own, near[i], softening);
        __syncthreads();
    }
    advance(velocities[at], pull, dt);
}

#ifndef STRICT
// One divided by the square root, by the instruction that there is for it, and for double by CUDA's function.
__device__ float inverse_root(float x)
{
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

__device__ double inverse_root(double x)
{
    return rsqrt(x);
}

// As add_pull, where a body may pull itself: by nothing, as the softening is not 0.
template <class T>
__device__ void add_softened_pull(Vector<T>& pull, const Place<T>& own, const Place<T>& other, T softening2)
{
    const T dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
    const T inverse = inverse_root(dz * dz + (dy * dy + (dx * dx + softening2)));
    const T strength = other.mass * inverse * (inverse * inverse);
    pull.x += strength * dx;
    pull.y += strength * dy;
    pull.z += strength * dz;
}

// As fast as it can be: each thread sums the pulls of a part of all bodies on OWN bodies of its block, so that one
// that attracts is loaded once for OWN; the warps have a part each, and put the parts together at the end.
// What a body pulls itself is 0, as the softening is not.
template <class T, int OWN>
__global__ void __launch_bounds__(CREW) kick_split(Vector<T>* velocities, const Place<T>* __restrict__ places, int first,
                                                   int count, T softening, T dt)
{
    constexpr int WIDTH = CREW / OWN;
    __shared__ Place<T> near[CREW];
    __shared__ Vector<T> partial[OWN][CREW];
    const int start = blockIdx.x * CREW, part = threadIdx.x / WIDTH, lane = threadIdx.x % WIDTH;
    const T softening2 = softening * softening;
    Place<T> own[OWN];
    Vector<T> pull[OWN] = {};
#pragma unroll
    for (int which = 0; which < OWN; ++which) own[which] = places[first + start + which * WIDTH + lane];
    for (int tile = 0; tile < count; tile += CREW) {
        near[threadIdx.x] = places[tile + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int i = 0; i < WIDTH; ++i) {
            const Place<T> other = near[part * WIDTH + i];
#pragma unroll
            for (int which = 0; which < OWN; ++which) add_softened_pull(pull[which], own[which], other, softening2);
        }
        __syncthreads();
    }
#pragma unroll
    for (int which = 0; which < OWN; ++which) partial[part][which * WIDTH + lane] = pull[which];
    __syncthreads();
    Vector<T> sum = {0, 0, 0};
    for (int from = 0; from < OWN; ++from) {
        const Vector<T> pull = partial[from][threadIdx.x];
        sum.x += pull.x, sum.y += pull.y, sum.z += pull.z;
    }
    advance(velocities[start + threadIdx.x], sum, dt);
}

// The same operations on bodies that stay in registers: what arithmetic can reach at most. Bodies move a little after each
// round, so that no round is like the one before.
constexpr int RESIDENTS = 8;

template <class T, int OWN>
__global__ void __launch_bounds__(CREW) kick_in_registers(Vector<T>* out, T softening2, int rounds)
{
    Place<T> own[OWN], other[RESIDENTS];
    Vector<T> pull[OWN] = {};
#pragma unroll
    for (int which = 0; which < OWN; ++which) own[which] = {T(threadIdx.x), T(which), T(blockIdx.x), T(1)};
#pragma unroll
    for (int i = 0; i < RESIDENTS; ++i) other[i] = {T(i), T(threadIdx.x + i * i), T(3 * i + 1), T(i + 1)};
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int i = 0; i < RESIDENTS; ++i) {
#pragma unroll
            for (int which = 0; which < OWN; ++which) add_softened_pull(pull[which], own[which], other[i], softening2);
        }
#pragma unroll
        for (int which = 0; which < OWN; ++which) {
            own[which].x += pull[which].x;
            own[which].y += pull[which].y;
            own[which].z += pull[which].z;
        }
    }
    Vector<T> sum = {0, 0, 0};
#pragma unroll
    for (int which = 0; which < OWN; ++which) sum.x += pull[which].x + pull[which].y + pull[which].z;
    if (sum.x == T(-1)) *out = sum;
}

// Rates of pairs in registers, as many as a step of so many bodies has.
template <class T, int OWN>
double in_registers(const Options& options, const std::vector<Gpu>& gpus, int bodies)
{
    const Array<Vector<T>> out = allocate<Vector<T>>(gpus[0], 1);
    const int blocks = bodies / CREW, rounds = bodies / OWN / RESIDENTS;
    return timed(gpus, options, [&](int) {
        kick_in_registers<T, OWN><<<blocks, CREW, 0, gpus[0].stream>>>(out.get(), T(0.01), rounds);
        CHECK(cudaGetLastError());
    });
}
#endif

// The change of places in a time.
template <class T>
__global__ void drift(Place<T>* places, const Vector<T>* velocities, int first, T dt)
{
    const int at = blockIdx.x * CREW + threadIdx.x;
    advance(places[first + at], velocities[at], dt);
}

// The bodies at the start, and what the steps need.
template <class T>
struct Problem {
    std::vector<Place<T>> places;
    std::vector<Vector<T>> velocities;
    T softening, dt;
};

// A point of a ball, uniformly.
Vector<double> in_ball(uint64_t& state, double radius)
{
    const auto signed_unit = [&] {
        const uint64_t word = mix(state);
        state += 0x9e3779b97f4a7c15;
        return static_cast<double>(word >> 11) / static_cast<double>(1ull << 52) - 1.0;
    };
    while (true) {
        const double x = signed_unit(), y = signed_unit(), z = signed_unit();
        if (x * x + y * y + z * z <= 1.0) return {x * radius, y * radius, z * radius};
    }
}

// Rounded once, as Rust's; that of C++ may be off by a unit in the last place.
double cube_root(double x)
{
    return static_cast<double>(cbrtl(x));
}

// A ball of stars, as the example draws it; in its own units for `float`.
template <class T>
Problem<T> pose(int count)
{
    const double radius = 1e16 * cube_root(count / 1000.0);
    const double speed = std::sqrt(0.6 * NEWTON * SOLAR_MASS * count / radius) * std::sqrt(5.0 / 3.0);
    double mass = 0;
    for (int body = 0; body < count; ++body) mass += SOLAR_MASS;
    const double crossing = std::sqrt(radius * radius * radius / (NEWTON * mass));
    const bool is_si = sizeof(T) == sizeof(double);
    const double length = is_si ? 1 : radius, time = is_si ? 1 : crossing;
    const double star = NEWTON * SOLAR_MASS / (length * length * length) * (time * time);

    Problem<T> problem;
    uint64_t random = SEED;
    for (int body = 0; body < count; ++body) {
        const Vector<double> p = in_ball(random, radius), v = in_ball(random, speed);
        problem.places.push_back({T(p.x / length), T(p.y / length), T(p.z / length), T(star)});
        problem.velocities.push_back({T(v.x / length * time), T(v.y / length * time), T(v.z / length * time)});
    }
    problem.softening = T(0.1 * radius / cube_root(count) / length);
    problem.dt = T(crossing / 1000.0 / time);
    return problem;
}

// What the GPUs have.
template <class T>
struct System {
    std::vector<Gpu> gpus;
    std::vector<int> begins;
    std::vector<Array<Place<T>>> places;
    std::vector<Array<Vector<T>>> velocities;
    int count;
    T softening;
    // Bodies of a thread, where it is not strict.
    int own;

    System(const std::vector<Gpu>& gpus, const Problem<T>& problem, int own)
        : gpus(gpus), begins(split(static_cast<int>(problem.places.size()), gpus.size(), CREW)),
          count(static_cast<int>(problem.places.size())), softening(problem.softening), own(own)
    {
        for (const Gpu& gpu : gpus) {
            const int begin = begins[gpu.number], part = begins[gpu.number + 1] - begin;
            places.push_back(allocate<Place<T>>(gpu, count));
            velocities.push_back(allocate<Vector<T>>(gpu, part));
            CHECK(cudaMemcpy(places.back().get(), problem.places.data(), count * sizeof(Place<T>),
                             cudaMemcpyHostToDevice));
            CHECK(cudaMemcpy(velocities.back().get(), problem.velocities.data() + begin, part * sizeof(Vector<T>),
                             cudaMemcpyHostToDevice));
        }
        // A copy may return before it has arrived, and streams do not wait for it.
        synchronise(gpus);
    }

    void kick_all(T dt) const
    {
        for (const Gpu& gpu : gpus) {
            const int begin = begins[gpu.number], blocks = (begins[gpu.number + 1] - begin) / CREW;
            CHECK(cudaSetDevice(gpu.number));
#ifdef STRICT
            const auto kernel = kick<T>;
#else
            const auto kernel = own == 1 ? kick_split<T, 1> : own == 2 ? kick_split<T, 2> : kick_split<T, 4>;
#endif
            kernel<<<blocks, CREW, 0, gpu.stream>>>(velocities[gpu.number].get(), places[gpu.number].get(), begin,
                                                    count, softening, dt);
            CHECK(cudaGetLastError());
        }
    }

    void drift_all(T dt) const
    {
        std::vector<Place<T>*> copies;
        for (const Gpu& gpu : gpus) {
            const int begin = begins[gpu.number], blocks = (begins[gpu.number + 1] - begin) / CREW;
            copies.push_back(places[gpu.number].get());
            CHECK(cudaSetDevice(gpu.number));
            drift<T><<<blocks, CREW, 0, gpu.stream>>>(copies.back(), velocities[gpu.number].get(), begin, dt);
            CHECK(cudaGetLastError());
        }
        all_gather(gpus, copies, begins);
    }

    // Places and velocities of all bodies.
    void read(Problem<T>& state) const
    {
        synchronise(gpus);
        CHECK(cudaMemcpy(state.places.data(), places[0].get(), count * sizeof(Place<T>), cudaMemcpyDeviceToHost));
        for (const Gpu& gpu : gpus) {
            const int begin = begins[gpu.number], part = begins[gpu.number + 1] - begin;
            CHECK(cudaMemcpy(state.velocities.data() + begin, velocities[gpu.number].get(),
                             part * sizeof(Vector<T>), cudaMemcpyDeviceToHost));
        }
    }
};

template <class T>
void kick_sequentially(Problem<T>& state, T dt)
{
    for (size_t body = 0; body < state.places.size(); ++body) {
        Vector<T> pull = {0, 0, 0};
        for (const Place<T>& other : state.places) add_pull(pull, state.places[body], other, state.softening);
        advance(state.velocities[body], pull, dt);
    }
}

// The same by plain loops.
template <class T>
Problem<T> reference(Problem<T> state, int steps)
{
    for (int number = 0; number < steps; ++number) {
        kick_sequentially(state, number == 0 ? state.dt / 2 : state.dt);
        for (size_t body = 0; body < state.places.size(); ++body)
            advance(state.places[body], state.velocities[body], state.dt);
    }
    kick_sequentially(state, state.dt / 2);
    return state;
}

// The numbers of an array of structures.
template <class T, class S>
std::vector<T> numbers(const std::vector<S>& values)
{
    std::vector<T> numbers(values.size() * sizeof(S) / sizeof(T));
    std::memcpy(static_cast<void*>(numbers.data()), values.data(), values.size() * sizeof(S));
    return numbers;
}

template <class T>
void run(const Options& options, const char* name)
{
    const int bodies = options.number("bodies", CREW), steps = options.number("steps", 1);
    if (bodies % CREW != 0) fail("--bodies must be a multiple of " + std::to_string(CREW));
    const std::vector<Gpu> gpus = open_gpus(options.number("gpus", 1));
#ifndef STRICT
    if (options.text("form") == "registers") {
        const double seconds = options.number("own", 1) == 2 ? in_registers<T, 2>(options, gpus, bodies)
                                                             : in_registers<T, 4>(options, gpus, bodies);
        const std::string title = std::string(name) + "-registers";
        return report(title.c_str(), options, bodies, seconds, static_cast<double>(bodies) * bodies, "pairs", 0);
    }
#endif
    if (static_cast<int>(gpus.size()) > bodies / CREW) fail("--bodies must be at least 128 per GPU");
    const Problem<T> problem = pose<T>(bodies);
    const System<T> system(gpus, problem, options.number("own", 1));
    const double seconds = timed(gpus, options, [&](int number) {
        system.kick_all(number == 0 ? problem.dt / 2 : problem.dt);
        system.drift_all(problem.dt);
    });
    system.kick_all(problem.dt / 2);

    uint64_t sum = 0;
    if (options.verify || options.checksum) {
        Problem<T> state = problem;
        system.read(state);
        if (options.verify) {
            const Problem<T> expected = reference(problem, steps);
            const double tolerance = sizeof(T) == sizeof(double) ? 1e-12 : 1e-4;
            compare(numbers<T>(state.places), numbers<T>(expected.places), tolerance);
            compare(numbers<T>(state.velocities), numbers<T>(expected.velocities), tolerance);
        }
        if (options.checksum) sum = checksum(state.velocities, checksum(state.places));
    }
    report(name, options, bodies, seconds, static_cast<double>(bodies) * bodies, "pairs", sum);
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"bodies", "16384"}, {"steps", "10"}, {"precision", "double"}, {"own", "4"},
                                     {"form", "split"}});
    if (options.text("precision") == "double") run<double>(options, "nbody");
    else if (options.text("precision") == "single") run<float>(options, "nbody_single");
    else fail("--precision takes single or double, not \"" + options.text("precision") + "\"");
}

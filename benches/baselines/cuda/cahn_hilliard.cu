// An alloy of two metals that separates, in a box whose opposite faces meet: what the example
// cahn_hilliard computes, by three kernels per step. Each GPU has a slab of planes and copies of its
// neighbours' nearest planes. Forms: a thread for each cell (`plain`), for two of a row, which are 16 bytes
// (`pair`), for four (`row`), and for two that goes through planes and keeps three of them in registers
// (`march`); and `fused`, which is `pair` with the energies computed by the kernel that computes the next
// step's potentials, of the same numbers. Of several shapes of blocks the fastest counts.

#include "stencil.cuh"

constexpr double GAMMA = 0.5, RATE = 0.015, MEAN = 0.0;
constexpr float NOISE = 0.1f;
constexpr uint64_t SEED = 1;

// The mixture in a cell at the start.
BOTH double initial(int z, int y, int x)
{
    const uint64_t place =
        static_cast<uint64_t>(z) << 42 | static_cast<uint64_t>(y) << 21 | static_cast<uint64_t>(x);
    return MEAN + static_cast<double>((2.0f * unit(mix(place) ^ mix(SEED)) - 1.0f) * NOISE);
}

// What the neighbours of a cell have.
struct SixSides {
    double above, below, north, south, west, east;
};

BOTH double sum(const SixSides& s)
{
    return (s.above + s.below) + (s.north + s.south) + (s.west + s.east);
}

BOTH double laplacian(double centre, const SixSides& sides)
{
    return sum(sides) - 6.0 * centre;
}

// What the kernels compute of a cell, from what it had before, if that is read, and from another field.
struct Potential {
    static constexpr bool reads = false;
    BOTH static double of(double, double centre, const SixSides& sides)
    {
        return centre * centre * centre - centre - GAMMA * laplacian(centre, sides);
    }
};

struct Evolved {
    static constexpr bool reads = true;
    BOTH static double of(double mixture, double centre, const SixSides& sides)
    {
        return mixture + RATE * laplacian(centre, sides);
    }
};

struct Energy {
    static constexpr bool reads = false;
    BOTH static double of(double, double centre, const SixSides& s)
    {
        const double apart = 1.0 - centre * centre;
        const auto square = [&](double side) { return (side - centre) * (side - centre); };
        const SixSides squares = {square(s.above), square(s.below), square(s.north),
                               square(s.south), square(s.west),  square(s.east)};
        return 0.25 * (apart * apart + GAMMA * sum(squares));
    }
};

// A slab: planes 1 to `planes` are the GPU's own, 0 and `planes + 1` its neighbours', but if it is the
// `whole` box, which is its own neighbour.
struct Slab {
    int size, first_plane, planes;
    bool whole;

    __device__ int above(int z) const { return whole && z == 1 ? planes : z - 1; }
    __device__ int below(int z) const { return whole && z == planes ? 1 : z + 1; }
    __device__ size_t at(int z, int y, int x) const { return (static_cast<size_t>(z) * size + y) * size + x; }
};

// Planes of a slab: `first`, `first + stride` and so on.
struct Planes {
    int first, stride, count;
};

// Cells side by side, at a multiple of 16 bytes if there are several.
template <int N>
struct alignas(N == 1 ? 8 : 16) Run {
    double cell[N];
};

template <int N>
__device__ Run<N>& run(double* at)
{
    return *reinterpret_cast<Run<N>*>(at);
}

template <int N>
__device__ const Run<N>& run(const double* at)
{
    return *reinterpret_cast<const Run<N>*>(at);
}

// What a run of cells sees of a field.
template <int N>
struct Around {
    Run<N> above, centre, below, north, south;
    double west, east;

    template <class Rule>
    __device__ Run<N> next(const Run<N>& before) const
    {
        Run<N> after;
#pragma unroll
        for (int i = 0; i < N; ++i)
            after.cell[i] = Rule::of(before.cell[i], centre.cell[i],
                                     {above.cell[i], below.cell[i], north.cell[i], south.cell[i],
                                      i > 0 ? centre.cell[i - 1] : west, i + 1 < N ? centre.cell[i + 1] : east});
        return after;
    }
};

// The same plane's part of it, where row y and column x begin at `here`.
template <int N>
__device__ void look(Around<N>& around, const double* __restrict__ here, int y, int x, int size)
{
    const ptrdiff_t rows = static_cast<ptrdiff_t>(size) * (size - 1);
    around.north = run<N>(here + (y > 0 ? -size : rows));
    around.south = run<N>(here + (y + 1 < size ? size : -rows));
    around.west = here[x > 0 ? -1 : size - 1];
    around.east = here[x + N < size ? N : N - size];
}

template <int N>
__device__ Around<N> around(const double* __restrict__ in, const Slab& slab, int z, int y, int x)
{
    Around<N> a;
    a.centre = run<N>(in + slab.at(z, y, x));
    a.above = run<N>(in + slab.at(slab.above(z), y, x));
    a.below = run<N>(in + slab.at(slab.below(z), y, x));
    look(a, in + slab.at(z, y, x), y, x, slab.size);
    return a;
}

template <class Rule, int N>
__global__ void row(double* __restrict__ out, const double* __restrict__ in, Slab slab, Planes planes)
{
    const int x = N * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
    const int index = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= slab.size || y >= slab.size || index >= planes.count) return;
    const int z = planes.first + planes.stride * index;
    Run<N>& cells = run<N>(out + slab.at(z, y, x));
    const Around<N> a = around<N>(in, slab, z, y, x);
    cells = a.template next<Rule>(Rule::reads ? cells : a.centre);
}

// Two rules at once that read nothing but the same field.
template <class First, class Second, int N>
__global__ void both(double* __restrict__ out, double* __restrict__ second, const double* __restrict__ in, Slab slab,
                     Planes planes)
{
    const int x = N * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
    const int index = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= slab.size || y >= slab.size || index >= planes.count) return;
    const int z = planes.first + planes.stride * index;
    const Around<N> a = around<N>(in, slab, z, y, x);
    run<N>(out + slab.at(z, y, x)) = a.template next<First>(a.centre);
    run<N>(second + slab.at(z, y, x)) = a.template next<Second>(a.centre);
}

// For planes without gaps, `depth` of them to a thread.
template <class Rule, int N>
__global__ void march(double* __restrict__ out, const double* __restrict__ in, Slab slab, Planes planes, int depth)
{
    const int x = N * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= slab.size || y >= slab.size) return;
    const int begin = blockIdx.z * depth, end = min(begin + depth, planes.count);
    const size_t plane = static_cast<size_t>(slab.size) * slab.size;
    int z = planes.first + begin;
    const double* here = in + slab.at(z, y, x);
    double* there = out + slab.at(z, y, x);
    Around<N> a;
    a.above = run<N>(in + slab.at(slab.above(z), y, x));
    a.centre = run<N>(here);
    for (const int after = planes.first + end; z < after; ++z, here += plane, there += plane) {
        a.below = run<N>(in + slab.at(slab.below(z), y, x));
        look(a, here, y, x, slab.size);
        Run<N>& cells = run<N>(there);
        cells = a.template next<Rule>(Rule::reads ? cells : a.centre);
        a.above = a.centre;
        a.centre = a.below;
    }
}

// Neighbours' planes as well.
__global__ void fill(double* c, Slab slab)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, plane = blockIdx.z;
    if (x < slab.size)
        c[slab.at(plane, y, x)] = initial((slab.first_plane + plane - 1 + slab.size) % slab.size, y, x);
}

// What a GPU has of the fields, and a second stream for the planes that its neighbours wait for.
struct Part {
    Gpu gpu;
    Slab slab;
    Array<double> c, mu, energy;
    cudaStream_t border;
    cudaEvent_t inside_done, border_done;
};

std::vector<Part> divide(const std::vector<Gpu>& gpus, int size)
{
    const std::vector<int> begins = split(size, gpus.size());
    std::vector<Part> parts;
    for (const Gpu& gpu : gpus) {
        const int begin = begins[gpu.number], planes = begins[gpu.number + 1] - begin;
        const size_t cells = static_cast<size_t>(planes + 2) * size * size;
        Array<double> c = allocate<double>(gpu, cells), mu = allocate<double>(gpu, cells);
        Array<double> energy = allocate<double>(gpu, cells);
        parts.push_back({gpu, {size, begin, planes, gpus.size() == 1}, std::move(c), std::move(mu),
                         std::move(energy), new_stream(), new_event(), new_event()});
    }
    return parts;
}

// What is launched, how.
struct Plan {
    std::string form;
    Shape shape;

    // Cells of a thread, along a row.
    int run() const { return form == "plain" ? 1 : form == "row" ? 4 : 2; }

    // Blocks for so many planes, of which a block has so many.
    dim3 grid(int size, int planes, int of) const
    {
        return dim3(blocks(size / run(), shape.threads.x), blocks(size, shape.threads.y), blocks(planes, of));
    }
};

template <class Rule>
void launch(const Plan& plan, cudaStream_t stream, double* out, const double* in, const Slab& slab,
            const Planes& planes)
{
    const dim3 threads = plan.shape.threads;
    if (plan.form == "march" && planes.stride == 1) {
        const int depth = plan.shape.planes;
        march<Rule, 2><<<plan.grid(slab.size, planes.count, depth), threads, 0, stream>>>(out, in, slab, planes, depth);
    } else {
        const auto kernel = plan.run() == 1 ? row<Rule, 1> : plan.run() == 2 ? row<Rule, 2> : row<Rule, 4>;
        kernel<<<plan.grid(slab.size, planes.count, threads.z), threads, 0, stream>>>(out, in, slab, planes);
    }
    CHECK(cudaGetLastError());
}

// Fetches a plane of a neighbour's new field.
void fetch(Array<double> Part::*field, const Part& to, int to_plane, const Part& from, int from_plane)
{
    const size_t plane = static_cast<size_t>(to.slab.size) * to.slab.size;
    CHECK(cudaStreamWaitEvent(to.border, from.border_done, 0));
    CHECK(cudaMemcpyPeerAsync((to.*field).get() + to_plane * plane, to.gpu.number,
                              (from.*field).get() + from_plane * plane, from.gpu.number, plane * sizeof(double),
                              to.border));
}

// Border planes come first, and travel, if they are of a field that neighbours read, while the others are
// computed. Each stream waits for what the other one did in the kernel before, which is what it reads and
// overwrites. A plane that neighbours fetch is overwritten two kernels later; in between, neighbours
// have fetched theirs, and those wait for what this one's stream did before.
template <class Launch>
void everywhere(const std::vector<Part>& parts, Array<double> Part::*fetched, const Launch& launch)
{
    if (parts.size() == 1) {
        launch(parts[0], parts[0].gpu.stream, Planes{1, 1, parts[0].slab.planes});
        return;
    }
    for (const Part& part : parts) {
        const int planes = part.slab.planes;
        CHECK(cudaSetDevice(part.gpu.number));
        CHECK(cudaStreamWaitEvent(part.gpu.stream, part.border_done, 0));
        CHECK(cudaStreamWaitEvent(part.border, part.inside_done, 0));
        launch(part, part.border, Planes{1, planes - 1, 2});
        CHECK(cudaEventRecord(part.border_done, part.border));
        launch(part, part.gpu.stream, Planes{2, 1, planes - 2});
        CHECK(cudaEventRecord(part.inside_done, part.gpu.stream));
    }
    if (fetched == nullptr) return;
    for (size_t at = 0; at < parts.size(); ++at) {
        const Part &part = parts[at], &next = parts[(at + 1) % parts.size()];
        fetch(fetched, part, part.slab.planes + 1, next, 1);
        fetch(fetched, next, 0, part, part.slab.planes);
    }
}

void potentials(const std::vector<Part>& parts, const Plan& plan)
{
    everywhere(parts, &Part::mu, [&](const Part& part, cudaStream_t stream, const Planes& planes) {
        launch<Potential>(plan, stream, part.mu.get(), part.c.get(), part.slab, planes);
    });
}

void evolve(const std::vector<Part>& parts, const Plan& plan)
{
    everywhere(parts, &Part::c, [&](const Part& part, cudaStream_t stream, const Planes& planes) {
        launch<Evolved>(plan, stream, part.c.get(), part.mu.get(), part.slab, planes);
    });
}

void energies(const std::vector<Part>& parts, const Plan& plan)
{
    everywhere(parts, nullptr, [&](const Part& part, cudaStream_t stream, const Planes& planes) {
        launch<Energy>(plan, stream, part.energy.get(), part.c.get(), part.slab, planes);
    });
}

// The energies, and the next step's potentials.
void energies_and_potentials(const std::vector<Part>& parts, const Plan& plan)
{
    everywhere(parts, &Part::mu, [&](const Part& part, cudaStream_t stream, const Planes& planes) {
        const dim3 threads = plan.shape.threads;
        both<Potential, Energy, 2><<<plan.grid(part.slab.size, planes.count, threads.z), threads, 0, stream>>>(
            part.mu.get(), part.energy.get(), part.c.get(), part.slab, planes);
        CHECK(cudaGetLastError());
    });
}

void start(const std::vector<Part>& parts, const std::vector<Gpu>& gpus, const Plan& plan)
{
    for (const Part& part : parts) {
        const dim3 grid(blocks(part.slab.size, 256), part.slab.size, part.slab.planes + 2);
        CHECK(cudaSetDevice(part.gpu.number));
        fill<<<grid, 256, 0, part.gpu.stream>>>(part.c.get(), part.slab);
        CHECK(cudaGetLastError());
    }
    synchronise(gpus);
    if (plan.form == "fused") energies_and_potentials(parts, plan);
    else energies(parts, plan);
}

void step(const std::vector<Part>& parts, const Plan& plan)
{
    if (plan.form != "fused") potentials(parts, plan);
    evolve(parts, plan);
    if (plan.form == "fused") energies_and_potentials(parts, plan);
    else energies(parts, plan);
}

std::vector<double> gather(const std::vector<Part>& parts, Array<double> Part::*which)
{
    const size_t size = parts[0].slab.size, plane = size * size;
    std::vector<double> field(size * plane);
    for (const Part& part : parts)
        CHECK(cudaMemcpy(field.data() + part.slab.first_plane * plane, (part.*which).get() + plane,
                         part.slab.planes * plane * sizeof(double), cudaMemcpyDeviceToHost));
    return field;
}

// The same by plain loops: the mixture, then the energies.
std::vector<double> reference(int size, int steps)
{
    const auto at = [&](int z, int y, int x) {
        const auto around = [&](int index) { return static_cast<size_t>((index + size) % size); };
        return (around(z) * size + around(y)) * size + around(x);
    };
    std::vector<double> c(static_cast<size_t>(size) * size * size), mu(c.size()), energy(c.size());
    const auto each = [&](std::vector<double>& field, auto cell) {
        for (int z = 0; z < size; ++z)
            for (int y = 0; y < size; ++y)
                for (int x = 0; x < size; ++x) field[at(z, y, x)] = cell(z, y, x);
    };
    const auto sides = [&](const std::vector<double>& field, int z, int y, int x) {
        return SixSides{field[at(z - 1, y, x)], field[at(z + 1, y, x)], field[at(z, y - 1, x)],
                     field[at(z, y + 1, x)], field[at(z, y, x - 1)], field[at(z, y, x + 1)]};
    };
    const auto compute = [&](auto rule, std::vector<double>& out, const std::vector<double>& in) {
        each(out, [&](int z, int y, int x) {
            return rule.of(out[at(z, y, x)], in[at(z, y, x)], sides(in, z, y, x));
        });
    };
    each(c, initial);
    for (int number = 0; number < steps; ++number) {
        compute(Potential(), mu, c);
        compute(Evolved(), c, mu);
    }
    compute(Energy(), energy, c);
    c.insert(c.end(), energy.begin(), energy.end());
    return c;
}

// Shapes that are tried.
std::vector<Shape> shapes(const std::string& form)
{
    if (form == "plain") return {{{32, 8, 1}, 0}, {{64, 4, 1}, 0}, {{128, 2, 1}, 0}, {{32, 4, 4}, 0}};
    if (form == "march") return {{{32, 4, 1}, 8}, {{32, 8, 1}, 8}, {{64, 4, 1}, 8}, {{32, 4, 1}, 32}, {{32, 8, 1}, 32}};
    return {{{32, 4, 1}, 0}, {{32, 8, 1}, 0}, {{64, 4, 1}, 0}, {{16, 8, 2}, 0}, {{32, 4, 2}, 0}};
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"size", "96"}, {"steps", "1000"}, {"form", "march"}});
    const int size = options.number("size", 1);
    const std::string form = options.text("form");
    if (form != "plain" && form != "pair" && form != "row" && form != "march" && form != "fused")
        fail("--form is plain, pair, row, march or fused, not \"" + form + "\"");
    const int run = Plan{form, {}}.run();
    if (size % run != 0) fail("--size must be a multiple of " + std::to_string(run) + " for --form " + form);
    const std::vector<Gpu> gpus = open_gpus(options.number("gpus", 1));
    if (gpus.size() > 1 && size / static_cast<int>(gpus.size()) < 3) fail("--size must be at least three planes per GPU");

    const std::vector<Part> parts = divide(gpus, size);
    const double seconds = fastest(
        gpus, options, shapes(form), [&] { start(parts, gpus, {form, shapes(form).front()}); },
        [&](const Shape& shape, int) { step(parts, {form, shape}); });

    uint64_t sum = 0;
    if (options.verify || options.checksum) {
        std::vector<double> c = gather(parts, &Part::c);
        const std::vector<double> energy = gather(parts, &Part::energy);
        if (options.checksum) sum = checksum(energy, checksum(c));
        c.insert(c.end(), energy.begin(), energy.end());
        if (options.verify) compare(c, reference(size, options.number("steps")), 1e-9);
    }
    report(("cahn_hilliard-" + form).c_str(), options, size, seconds, std::pow(size, 3), "cells", sum);
}

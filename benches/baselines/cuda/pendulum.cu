// A pendulum over a board with magnets, let go from each point of the board: what the example
// pendulum computes, in as many rounds. Rows are dealt out to GPUs in turn, since those in the middle
// take less time; nothing is exchanged. Points take different numbers of steps: in the form `queue` a
// thread that is done with a point takes the next one that nobody has, so that no thread of a warp
// waits for the slowest; in the form `plain` there is a thread for each point.

#include "normal.cuh"

constexpr float REACH = 2.0f, FRICTION = 0.2f, GRAVITY = 0.5f, HEIGHT = 0.25f, STEP = 0.02f, SLOW = 0.05f;
constexpr float TAU = 6.28318530717958648f;

constexpr int THREADS = 128, MOST_MAGNETS = 64;

// Down, to the right.
struct Vector {
    float y, x;
};

struct Magnets {
    Vector place[MOST_MAGNETS];
    int count;
};

// The magnet over which a pendulum comes to rest, and after how many steps.
struct Rest {
    uint32_t magnet, steps;
};

// A pendulum on its way.
struct Pendulum {
    Vector at, speed;
    uint32_t steps;
};

// At rest over point `[y, x]` of a board of `size`² points.
BOTH Pendulum pendulum(int y, int x, int size)
{
    const auto along = [&](int at) {
        return (2.0f * (static_cast<float>(at) + 0.5f) / static_cast<float>(size) - 1.0f) * REACH;
    };
    return {{along(y), along(x)}, {0.0f, 0.0f}, 0};
}

// Whether it has come to rest, or has done all steps; else it does another one. `nearest` is the magnet
// that is nearest. COUNT is how many magnets there are, if not 0.
template <int COUNT>
BOTH bool is_done(Pendulum& p, const Magnets& magnets, uint32_t steps, uint32_t& nearest)
{
    float ay = -GRAVITY * p.at.y - FRICTION * p.speed.y;
    float ax = -GRAVITY * p.at.x - FRICTION * p.speed.x;
    float least = 3.40282347e+38f;
    nearest = 0;
    const int count = COUNT > 0 ? COUNT : magnets.count;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int i = 0; i < count; ++i) {
        const float dy = magnets.place[i].y - p.at.y, dx = magnets.place[i].x - p.at.x;
        const float flat = dy * dy + dx * dx;
        const float square = flat + HEIGHT * HEIGHT;
        const float pull = inverse(square * root(square));
        ay += pull * dy;
        ax += pull * dx;
        if (flat < least) {
            nearest = i;
            least = flat;
        }
    }
    const float speed = p.speed.y * p.speed.y + p.speed.x * p.speed.x;
    if (p.steps == steps || (speed < SLOW * SLOW && least < SLOW * SLOW)) return true;
    p.speed.y += STEP * ay;
    p.speed.x += STEP * ax;
    p.at.y += STEP * p.speed.y;
    p.at.x += STEP * p.speed.x;
    ++p.steps;
    return false;
}

// The rows of a board that a GPU has: `first`, `first + stride` and so on.
struct Rows {
    int size, first, stride, count;
};

// Of points that are counted through a GPU's rows.
BOTH Pendulum pendulum(unsigned point, const Rows& rows)
{
    const int row = point / rows.size, x = point - row * rows.size;
    return pendulum(rows.first + row * rows.stride, x, rows.size);
}

template <int COUNT>
__global__ void __launch_bounds__(THREADS) plain(Rest* __restrict__ board, Rows rows, Magnets magnets, uint32_t steps)
{
    const unsigned point = blockIdx.x * THREADS + threadIdx.x;
    if (point >= static_cast<unsigned>(rows.count) * rows.size) return;
    Pendulum one = pendulum(point, rows);
    uint32_t nearest;
    while (!is_done<COUNT>(one, magnets, steps, nearest)) continue;
    board[point] = {nearest, one.steps};
}

// `taken` is how many points somebody has taken.
template <int COUNT>
__global__ void __launch_bounds__(THREADS) queue(Rest* __restrict__ board, unsigned* taken, Rows rows, Magnets magnets,
                                                 uint32_t steps)
{
    const unsigned points = static_cast<unsigned>(rows.count) * rows.size;
    unsigned point = atomicAdd(taken, 1u);
    Pendulum one = pendulum(point, rows);
    while (point < points) {
        uint32_t nearest;
        if (!is_done<COUNT>(one, magnets, steps, nearest)) continue;
        board[point] = {nearest, one.steps};
        point = atomicAdd(taken, 1u);
        one = pendulum(point, rows);
    }
}

// The kernels for so many magnets, from a few on the ones for any number.
struct Kernels {
    decltype(&plain<0>) plain;
    decltype(&queue<0>) queue;
};

template <int COUNT = 8>
Kernels kernels(int magnets)
{
    if constexpr (COUNT > 0)
        if (magnets != COUNT) return kernels<COUNT - 1>(magnets);
    return {plain<COUNT>, queue<COUNT>};
}

// Magnets, evenly on a circle around the centre.
Magnets circle(int count)
{
    Magnets magnets = {};
    magnets.count = count;
    for (int number = 0; number < count; ++number) {
        const float angle = TAU * static_cast<float>(number) / static_cast<float>(count);
        magnets.place[number] = {std::sin(angle), std::cos(angle)};
    }
    return magnets;
}

// What a GPU has.
struct Part {
    Gpu gpu;
    Rows rows;
    Array<Rest> board;
    Array<unsigned> taken;
    // Of the form `queue`, as many as run at a time.
    int blocks;
};

std::vector<Part> divide(const std::vector<Gpu>& gpus, int size, const Kernels& kernels)
{
    const int stride = static_cast<int>(gpus.size());
    std::vector<Part> parts;
    for (const Gpu& gpu : gpus) {
        const Rows rows{size, gpu.number, stride, (size - gpu.number + stride - 1) / stride};
        Array<Rest> board = allocate<Rest>(gpu, static_cast<size_t>(rows.count) * size);
        int processors = 0, blocks = 0;
        CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu.number));
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernels.queue, THREADS, 0));
        parts.push_back({gpu, rows, std::move(board), allocate<unsigned>(gpu, 1), processors * blocks});
    }
    return parts;
}

void compute(const std::vector<Part>& parts, const Kernels& kernels, bool is_plain, const Magnets& magnets,
             uint32_t steps)
{
    for (const Part& part : parts) {
        const unsigned points = static_cast<unsigned>(part.rows.count) * part.rows.size;
        const cudaStream_t stream = part.gpu.stream;
        CHECK(cudaSetDevice(part.gpu.number));
        if (is_plain) {
            kernels.plain<<<(points + THREADS - 1) / THREADS, THREADS, 0, stream>>>(part.board.get(), part.rows,
                                                                                    magnets, steps);
        } else {
            CHECK(cudaMemsetAsync(part.taken.get(), 0, sizeof(unsigned), stream));
            kernels.queue<<<part.blocks, THREADS, 0, stream>>>(part.board.get(), part.taken.get(), part.rows, magnets,
                                                               steps);
        }
        CHECK(cudaGetLastError());
    }
}

std::vector<Rest> gather(const std::vector<Part>& parts)
{
    const size_t size = parts[0].rows.size, width = size * sizeof(Rest);
    std::vector<Rest> board(size * size);
    for (const Part& part : parts)
        CHECK(cudaMemcpy2D(board.data() + part.rows.first * size, part.rows.stride * width, part.board.get(), width,
                           width, part.rows.count, cudaMemcpyDeviceToHost));
    return board;
}

// The same by plain loops.
std::vector<Rest> reference(int size, const Magnets& magnets, uint32_t steps)
{
    std::vector<Rest> board;
    for (int y = 0; y < size; ++y)
        for (int x = 0; x < size; ++x) {
            Pendulum one = pendulum(y, x, size);
            uint32_t nearest;
            while (!is_done<0>(one, magnets, steps, nearest)) continue;
            board.push_back({nearest, one.steps});
        }
    return board;
}

// What is compared. Whatever rounds otherwise ends elsewhere from some points: then only the share of
// each magnet is, and the average of steps.
auto comparable(const std::vector<Rest>& board, int magnets, uint32_t steps)
{
#ifdef STRICT
    (void)magnets, (void)steps;
    std::vector<uint32_t> numbers;
    for (const Rest& rest : board) numbers.insert(numbers.end(), {rest.magnet, rest.steps});
#else
    std::vector<double> numbers(magnets + 1);
    for (const Rest& rest : board) {
        numbers[rest.magnet] += 1.0 / static_cast<double>(board.size());
        numbers.back() += static_cast<double>(rest.steps) / steps / static_cast<double>(board.size());
    }
#endif
    return numbers;
}

// What `timed` and `report` count as steps are rounds here.
Options rounds_as_steps(const Options& options)
{
    std::vector<std::string> words{"pendulum", "--steps", options.text("rounds"), "--warm-up",
                                   options.text("warm-up"), "--gpus", options.text("gpus")};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    return Options(static_cast<int>(words.size()), arguments.data(), {{"steps", ""}});
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"size", "256"}, {"steps", "4000"}, {"magnets", "3"}, {"rounds", "1"},
                                       {"form", "queue"}});
    const Options rounds = rounds_as_steps(options);
    const int size = options.number("size", 1), steps = options.number("steps");
    const std::string form = options.text("form");
    if (size > 32768) fail("--size must be at most 32768");
    if (options.number("magnets", 1) > MOST_MAGNETS) fail("--magnets must be at most " + std::to_string(MOST_MAGNETS));
    if (form != "plain" && form != "queue") fail("--form is plain or queue, not \"" + form + "\"");
    const std::vector<Gpu> gpus = open_gpus(options.number("gpus", 1));
    if (static_cast<int>(gpus.size()) > size) fail("there must be a row for each GPU");

    const Magnets magnets = circle(options.number("magnets", 1));
    const Kernels chosen = kernels(magnets.count);
    const std::vector<Part> parts = divide(gpus, size, chosen);
    const double seconds =
        timed(gpus, rounds, [&](int) { compute(parts, chosen, form == "plain", magnets, steps); });

    const std::vector<Rest> board = gather(parts);
    double swings = 0;
    uint64_t sum = CHECKSUM_OF_NOTHING;
    for (const Rest& rest : board) swings += rest.steps;
    if (options.verify)
        compare(comparable(board, magnets.count, steps),
                comparable(reference(size, magnets, steps), magnets.count, steps), 1e-2);
    if (options.checksum) sum = checksum(board);
    report(("pendulum-" + form).c_str(), rounds, size, seconds, swings, "swings", options.checksum ? sum : 0);
}

// A flash of light in a closed room: what the example rsim computes. Each step reads what all
// patches have sent in all steps before, and appends a row to it. All GPUs have the whole history;
// each computes its part of a row.

#include "normal.cuh"

constexpr float REFLECTED = 0.8f;
constexpr float PI = 3.14159274101257324f;

constexpr int THREADS = 256;

// A patch of a wall: the place of its middle, and the direction that it faces. Aligned for loads of 8 bytes.
struct alignas(8) Patch {
    float place[3], direction[3];
};

// A patch of a room with `edge` along each edge, by its number: wall by wall, row by row.
BOTH Patch patch(int number, int edge)
{
    const int wall = number / (edge * edge), inside = number % (edge * edge);
    const auto along = [&](int index) { return (static_cast<float>(index) + 0.5f) / static_cast<float>(edge); };
    const int axis = wall / 2;
    const bool is_far = wall % 2 == 1;
    Patch patch = {};
    patch.place[axis] = is_far ? 1.0f : 0.0f;
    patch.place[(axis + 1) % 3] = along(inside / edge);
    patch.place[(axis + 2) % 3] = along(inside % edge);
    patch.direction[axis] = is_far ? -1.0f : 1.0f;
    return patch;
}

// What a patch sends in the first step.
BOTH float flash(int number, int edge)
{
    return number == edge / 2 * edge + edge / 2 ? 1.0f : 0.0f;
}

BOTH float facing(const Patch& patch, const float (&way)[3])
{
    return patch.direction[0] * way[0] + patch.direction[1] * way[1] + patch.direction[2] * way[2];
}

// Adds what arrives from N patches, from `first` on. What they have sent is asked for before anything of it is used.
template <int N>
BOTH void add_light(float& light, const Patch& here, const Patch* room, int patches, const float* history, int first,
                    int step, int edge)
{
    const float area = 1.0f / static_cast<float>(edge * edge);
    float distance2[N], slant[N], sent[N];
    bool arrives[N];
    for (int lane = 0; lane < N; ++lane) {
        const Patch& there = room[first + lane];
        const float way[3] = {there.place[0] - here.place[0], there.place[1] - here.place[1],
                              there.place[2] - here.place[2]};
        distance2[lane] = way[0] * way[0] + way[1] * way[1] + way[2] * way[2];
        slant[lane] = facing(here, way) * -facing(there, way);
    }
    for (int lane = 0; lane < N; ++lane) {
        // Of a step, light crosses one patch. The distance of a patch from itself does not matter.
        const float distance = root(fmaxf(distance2[lane], 1e-16f));
        const int steps = 1 + static_cast<int>(distance * static_cast<float>(edge));
        arrives[lane] = slant[lane] > 0.0f && steps <= step;
        sent[lane] = 0.0f;
        if (arrives[lane]) sent[lane] = history[static_cast<size_t>(step - steps) * patches + first + lane];
    }
    for (int lane = 0; lane < N; ++lane)
        if (arrives[lane])
            light += quotient(area * slant[lane], distance2[lane] * (PI * distance2[lane] + area)) * sent[lane];
}

// What a patch sends in a step, of all that has arrived.
BOTH float arriving(const Patch& here, const Patch* room, int patches, const float* history, int step, int edge)
{
    float light = 0.0f;
    int first = 0;
    for (; first + 4 <= patches; first += 4) add_light<4>(light, here, room, patches, history, first, step, edge);
    for (; first < patches; ++first) add_light<1>(light, here, room, patches, history, first, step, edge);
    return REFLECTED * light;
}

__global__ void build_room(Patch* room, float* history, int patches, int edge)
{
    const int number = blockIdx.x * THREADS + threadIdx.x;
    if (number >= patches) return;
    room[number] = patch(number, edge);
    history[number] = flash(number, edge);
}

// Row `step` of the history, from column `first` to before `end`.
__global__ void radiosity(float* __restrict__ row, const Patch* __restrict__ room, const float* __restrict__ history,
                          int first, int end, int patches, int step, int edge)
{
    const int number = first + blockIdx.x * THREADS + threadIdx.x;
    if (number < end) row[number] = arriving(room[number], room, patches, history, step, edge);
}

// The copies that GPUs have.
struct Room {
    std::vector<Gpu> gpus;
    int edge, patches;
    std::vector<int> begins;
    std::vector<Array<Patch>> rooms;
    std::vector<Array<float>> histories;

    Room(const std::vector<Gpu>& gpus, int edge, int steps)
        : gpus(gpus), edge(edge), patches(6 * edge * edge), begins(split(patches, gpus.size()))
    {
        for (const Gpu& gpu : gpus) {
            rooms.push_back(allocate<Patch>(gpu, patches));
            histories.push_back(allocate<float>(gpu, static_cast<size_t>(steps + 1) * patches));
            build_room<<<(patches + THREADS - 1) / THREADS, THREADS, 0, gpu.stream>>>(
                rooms.back().get(), histories.back().get(), patches, edge);
            CHECK(cudaGetLastError());
        }
    }

    void step(int number) const
    {
        std::vector<float*> rows;
        for (const Gpu& gpu : gpus) {
            const int first = begins[gpu.number], end = begins[gpu.number + 1];
            const float* history = histories[gpu.number].get();
            rows.push_back(histories[gpu.number].get() + static_cast<size_t>(number) * patches);
            CHECK(cudaSetDevice(gpu.number));
            radiosity<<<(end - first + THREADS - 1) / THREADS, THREADS, 0, gpu.stream>>>(
                rows.back(), rooms[gpu.number].get(), history, first, end, patches, number, edge);
            CHECK(cudaGetLastError());
        }
        all_gather(gpus, rows, begins);
    }
};

// The same by plain loops.
std::vector<float> reference(int edge, int steps)
{
    const int patches = 6 * edge * edge;
    std::vector<Patch> room;
    std::vector<float> history(static_cast<size_t>(steps + 1) * patches);
    for (int number = 0; number < patches; ++number) {
        room.push_back(patch(number, edge));
        history[number] = flash(number, edge);
    }
    for (int step = 1; step <= steps; ++step)
        for (int number = 0; number < patches; ++number)
            history[static_cast<size_t>(step) * patches + number] =
                arriving(room[number], room.data(), patches, history.data(), step, edge);
    return history;
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"edge", "10"}, {"steps", "50"}});
    const int edge = options.number("edge", 1), steps = options.number("steps", 1);
    const std::vector<Gpu> gpus = open_gpus(options.number("gpus", 1));
    if (edge > 256 || static_cast<int>(gpus.size()) > 6 * edge * edge)
        fail("--edge must be at most 256, and there must be a patch for each GPU");
    const Room room(gpus, edge, steps);
    synchronise(gpus);
    const double seconds = timed(gpus, options, [&](int number) { room.step(number + 1); });

    uint64_t sum = 0;
    if (options.verify || options.checksum) {
        std::vector<float> history(static_cast<size_t>(steps + 1) * room.patches);
        CHECK(cudaMemcpy(history.data(), room.histories[0].get(), history.size() * sizeof(float),
                         cudaMemcpyDeviceToHost));
        // Rounding may decide in which step light arrives.
        if (options.verify) compare(history, reference(edge, steps), 1e-3);
        if (options.checksum) sum = checksum(history);
    }
    report("rsim", options, room.patches, seconds, std::pow(room.patches, 2), "pairs", sum);
}

// Heat on a sphere of triangles: what the example mesh computes with --sphere. Triangles keep the order in
// which they are cut, in which what is near on the sphere is near in memory; each GPU has a range of it.
// Those that other GPUs need come first there, are computed first, and travel while the others are
// computed. A thread computes one triangle (`plain`) or four (`four`), of arrays by side.

#include <array>

#include "stencil.cuh"

struct Corner {
    float x, y, z;
};

float distance(const Corner& a, const Corner& b)
{
    const float x = a.x - b.x, y = a.y - b.y, z = a.z - b.z;
    return std::sqrt(x * x + y * y + z * z);
}

Corner unit(const Corner& a)
{
    const float length = distance(a, {0.0f, 0.0f, 0.0f});
    return {a.x / length, a.y / length, a.z / length};
}

using Three = std::array<int, 3>;

// A sphere of triangles by their corners, and the triangle beside each side: from the first corner to
// the second, and so on.
struct Mesh {
    std::vector<Corner> corners;
    std::vector<Three> triangles, beside;

    Corner corner(size_t triangle, int which) const { return corners[triangles[triangle][which % 3]]; }

    Corner centre(size_t triangle) const
    {
        const Corner a = corner(triangle, 0), b = corner(triangle, 1), c = corner(triangle, 2);
        return {(a.x + b.x + c.x) / 3.0f, (a.y + b.y + c.y) / 3.0f, (a.z + b.z + c.z) / 3.0f};
    }

    float area(size_t triangle) const
    {
        const Corner a = corner(triangle, 0), b = corner(triangle, 1), c = corner(triangle, 2);
        const Corner u{b.x - a.x, b.y - a.y, b.z - a.z}, v{c.x - a.x, c.y - a.y, c.z - a.z};
        const float x = u.y * v.z - u.z * v.y, y = u.z * v.x - u.x * v.z, z = u.x * v.y - u.y * v.x;
        return 0.5f * std::sqrt(x * x + y * y + z * z);
    }
};

// Where a number is among three.
int find(const Three& numbers, int number)
{
    return numbers[0] == number ? 0 : numbers[1] == number ? 1 : 2;
}

Mesh icosahedron()
{
    const float golden = 1.618034f;
    const float signs[4][2] = {{-1.0f, golden}, {1.0f, golden}, {-1.0f, -golden}, {1.0f, -golden}};
    Mesh mesh;
    for (const auto& [a, b] : signs)
        for (const Corner& corner : {Corner{a, b, 0.0f}, Corner{0.0f, a, b}, Corner{b, 0.0f, a}})
            mesh.corners.push_back(unit(corner));
    const auto near = [&](int a, int b) { return distance(mesh.corners[a], mesh.corners[b]) < 1.1f; };
    for (int a = 0; a < 12; ++a)
        for (int b = a + 1; b < 12; ++b)
            for (int c = b + 1; c < 12; ++c)
                if (near(a, b) && near(a, c) && near(b, c)) mesh.triangles.push_back({a, b, c});
    const auto has = [&](int triangle, int corner) {
        const Three& of = mesh.triangles[triangle];
        return of[find(of, corner)] == corner;
    };
    for (int at = 0; at < 20; ++at) {
        Three& beside = mesh.beside.emplace_back();
        for (int side = 0; side < 3; ++side)
            for (int other = 0; other < 20; ++other)
                if (other != at && has(other, mesh.triangles[at][side]) && has(other, mesh.triangles[at][(side + 1) % 3]))
                    beside[side] = other;
    }
    return mesh;
}

// Cuts each triangle into four: one at each corner, in the order of corners, and the one in the middle.
Mesh refine(Mesh&& mesh)
{
    Mesh fine;
    fine.corners = std::move(mesh.corners);
    fine.triangles.reserve(4 * mesh.triangles.size());
    fine.beside.reserve(4 * mesh.triangles.size());
    // Of each side; two triangles share it.
    std::vector<Three> middles(mesh.triangles.size());
    for (int at = 0; at < static_cast<int>(mesh.triangles.size()); ++at) {
        const auto& [a, b, c] = mesh.triangles[at];
        const Three& beside = mesh.beside[at];
        for (int side = 0; side < 3; ++side) {
            const int other = beside[side];
            if (other < at) {
                middles[at][side] = middles[other][find(mesh.beside[other], at)];
                continue;
            }
            const Corner p = fine.corners[mesh.triangles[at][side]], q = fine.corners[mesh.triangles[at][(side + 1) % 3]];
            middles[at][side] = static_cast<int>(fine.corners.size());
            fine.corners.push_back(unit({p.x + q.x, p.y + q.y, p.z + q.z}));
        }
        const auto [ab, bc, ca] = middles[at];
        for (const Three& corners : {Three{a, ab, ca}, Three{ab, b, bc}, Three{ca, bc, c}, Three{ab, bc, ca}})
            fine.triangles.push_back(corners);
        // Across a side of the old triangle, the one at the same corner.
        const auto across = [&](int side, int corner) {
            return 4 * beside[side] + find(mesh.triangles[beside[side]], corner);
        };
        const int middle = 4 * at + 3;
        for (const Three& others : {Three{across(0, a), middle, across(2, a)}, Three{across(0, b), across(1, b), middle},
                                    Three{middle, across(1, c), across(2, c)}, Three{4 * at + 1, 4 * at + 2, 4 * at}})
            fine.beside.push_back(others);
    }
    return fine;
}

using Flows = std::array<float, 3>;

// What a step needs of a mesh: how much flows through each side, and temperatures at the start.
struct Surface {
    std::vector<Three> beside;
    std::vector<Flows> conductances;
    std::vector<float> initial;
};

// Temperature 1 in the last fifth along the axis along which triangles reach farthest, and 0 elsewhere.
std::vector<float> warm_end(const std::vector<Corner>& centres)
{
    using Axis = float Corner::*;
    Axis axis = nullptr;
    float from = 0.0f, to = 0.0f;
    for (const Axis candidate : {&Corner::x, &Corner::y, &Corner::z}) {
        float least = 3.40282347e+38f, most = -3.40282347e+38f;
        for (const Corner& centre : centres) {
            least = std::min(least, centre.*candidate);
            most = std::max(most, centre.*candidate);
        }
        if (axis != nullptr && most - least <= to - from) continue;
        axis = candidate;
        from = least;
        to = most;
    }
    std::vector<float> initial;
    for (const Corner& centre : centres) initial.push_back(centre.*axis >= to - 0.2f * (to - from) ? 1.0f : 0.0f);
    return initial;
}

Surface sphere(int levels)
{
    Mesh mesh = icosahedron();
    for (int level = 0; level < levels; ++level) mesh = refine(std::move(mesh));
    const size_t count = mesh.triangles.size();
    std::vector<Corner> centres;
    for (size_t at = 0; at < count; ++at) centres.push_back(mesh.centre(at));
    Surface surface{{}, std::vector<Flows>(count), warm_end(centres)};
    float fastest = 1.17549435e-38f;
    for (size_t at = 0; at < count; ++at) {
        Flows& flows = surface.conductances[at];
        const float area = mesh.area(at);
        for (int side = 0; side < 3; ++side) {
            const float length = distance(mesh.corner(at, side), mesh.corner(at, side + 1));
            const float apart = distance(centres[at], centres[mesh.beside[at][side]]);
            flows[side] = length / std::max(apart, 1.17549435e-38f) / area;
        }
        fastest = std::max(fastest, flows[0] + flows[1] + flows[2]);
    }
    // A step may at most exchange all of what a triangle has.
    const float step = 0.9f / fastest;
    for (Flows& flows : surface.conductances)
        for (float& flow : flows) flow *= step;
    surface.beside = std::move(mesh.beside);
    return surface;
}

// The temperature of a triangle after a step.
BOTH float next(float here, float a, float b, float c, float to_a, float to_b, float to_c)
{
    return here + (to_a * (a - here) + to_b * (b - here) + to_c * (c - here));
}

// Triangles of a GPU, by side: those beside them, and what flows.
struct Elements {
    const int* __restrict__ beside[3];
    const float* __restrict__ conductances[3];
};

__global__ void plain(float* __restrict__ after, const float* __restrict__ u, Elements e, int begin, int end)
{
    const int at = begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= end) return;
    after[at] = next(u[at], u[e.beside[0][at]], u[e.beside[1][at]], u[e.beside[2][at]], e.conductances[0][at],
                     e.conductances[1][at], e.conductances[2][at]);
}

// `begin` and `end` are multiples of four.
__global__ void by_four(float* __restrict__ after, const float* __restrict__ u, Elements e, int begin, int end)
{
    const int at = begin + 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= end) return;
    const Four<int> a = four(e.beside[0] + at), b = four(e.beside[1] + at), c = four(e.beside[2] + at);
    const Four<float> here = four(u + at), to_a = four(e.conductances[0] + at);
    const Four<float> to_b = four(e.conductances[1] + at), to_c = four(e.conductances[2] + at);
    put(after + at, {next(here.x, u[a.x], u[b.x], u[c.x], to_a.x, to_b.x, to_c.x),
                     next(here.y, u[a.y], u[b.y], u[c.y], to_a.y, to_b.y, to_c.y),
                     next(here.z, u[a.z], u[b.z], u[c.z], to_a.z, to_b.z, to_c.z),
                     next(here.w, u[a.w], u[b.w], u[c.w], to_a.w, to_b.w, to_c.w)});
}

// Where things are in a GPU's arrays: first the triangles that other GPUs need, then the others, both in
// whole fours, then copies of those that other GPUs have first.
struct Layout {
    // The triangle in each place of the GPU's own, -1 for none.
    std::vector<int> triangles;
    int border;
    // Where the copies of each GPU's border begin, -1 for those that are not needed.
    std::vector<int> copies;
    // All places.
    int places;
};

void fill_up(std::vector<int>& triangles)
{
    while (triangles.size() % 4 != 0) triangles.push_back(-1);
}

std::vector<Layout> lay_out(const Surface& surface, size_t gpus)
{
    const std::vector<int> begins = split(static_cast<int>(surface.beside.size()), gpus);
    const auto owner = [&](int triangle) {
        return static_cast<int>(std::upper_bound(begins.begin(), begins.end(), triangle) - begins.begin()) - 1;
    };
    std::vector<Layout> layouts(gpus);
    for (int gpu = 0; gpu < static_cast<int>(gpus); ++gpu) {
        Layout& layout = layouts[gpu];
        layout.copies.assign(gpus, -1);
        std::vector<int> inside;
        for (int at = begins[gpu]; at < begins[gpu + 1]; ++at) {
            bool is_border = false;
            for (const int other : surface.beside[at])
                if (owner(other) != gpu) is_border = true, layout.copies[owner(other)] = 0;
            (is_border ? layout.triangles : inside).push_back(at);
        }
        fill_up(layout.triangles);
        layout.border = static_cast<int>(layout.triangles.size());
        layout.triangles.insert(layout.triangles.end(), inside.begin(), inside.end());
        fill_up(layout.triangles);
    }
    for (Layout& layout : layouts) {
        layout.places = static_cast<int>(layout.triangles.size());
        for (size_t gpu = 0; gpu < gpus; ++gpu) {
            if (layout.copies[gpu] < 0) continue;
            layout.copies[gpu] = layout.places;
            layout.places += layouts[gpu].border;
        }
    }
    return layouts;
}

// What a GPU has, and a second stream for the triangles that others wait for.
struct Part {
    Gpu gpu;
    Layout layout;
    Array<int> beside;
    Array<float> conductances;
    Array<float> current, other;
    cudaStream_t border;
    cudaEvent_t inside_done, border_done;

    int own() const { return static_cast<int>(layout.triangles.size()); }

    Elements elements() const
    {
        const size_t count = own();
        const int* b = beside.get();
        const float* c = conductances.get();
        return {{b, b + count, b + 2 * count}, {c, c + count, c + 2 * count}};
    }
};

template <class T>
void upload(const Array<T>& array, const std::vector<T>& values)
{
    CHECK(cudaMemcpy(array.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
}

std::vector<Part> divide(const std::vector<Gpu>& gpus, const Surface& surface)
{
    std::vector<Layout> layouts = lay_out(surface, gpus.size());
    // Where each triangle is: its GPU, and its place there.
    std::vector<std::pair<int, int>> places(surface.beside.size());
    for (const Gpu& gpu : gpus) {
        const std::vector<int>& triangles = layouts[gpu.number].triangles;
        for (int at = 0; at < static_cast<int>(triangles.size()); ++at)
            if (triangles[at] >= 0) places[triangles[at]] = {gpu.number, at};
    }
    std::vector<Part> parts;
    for (const Gpu& gpu : gpus) {
        Layout& layout = layouts[gpu.number];
        const size_t own = layout.triangles.size();
        // Places without a triangle are beside themselves, and nothing flows.
        std::vector<int> beside(3 * own);
        std::vector<float> conductances(3 * own);
        for (size_t at = 0; at < own; ++at)
            for (int side = 0; side < 3; ++side) {
                const int triangle = layout.triangles[at];
                int& place = beside[side * own + at] = static_cast<int>(at);
                if (triangle < 0) continue;
                const auto [of, there] = places[surface.beside[triangle][side]];
                place = of == gpu.number ? there : layout.copies[of] + there;
                conductances[side * own + at] = surface.conductances[triangle][side];
            }
        const size_t all = layout.places;
        Part part{gpu, std::move(layout), allocate<int>(gpu, 3 * own), allocate<float>(gpu, 3 * own),
                  allocate<float>(gpu, all), allocate<float>(gpu, all), new_stream(), new_event(), new_event()};
        upload(part.beside, beside);
        upload(part.conductances, conductances);
        parts.push_back(std::move(part));
    }
    return parts;
}

// Temperatures at the start, of copies as well.
void start(const std::vector<Part>& parts, const Surface& surface)
{
    for (const Part& part : parts) {
        std::vector<float> u(part.layout.places);
        const auto put_all = [&](const Layout& layout, int first, int count) {
            for (int at = 0; at < count; ++at)
                if (layout.triangles[at] >= 0) u[first + at] = surface.initial[layout.triangles[at]];
        };
        put_all(part.layout, 0, part.own());
        for (const Part& other : parts) {
            const int first = part.layout.copies[other.gpu.number];
            if (first >= 0) put_all(other.layout, first, other.layout.border);
        }
        CHECK(cudaSetDevice(part.gpu.number));
        upload(part.current, u);
    }
}

// What is launched, how.
struct Plan {
    bool is_plain;
    int threads;
};

void launch(const Plan& plan, const Part& part, cudaStream_t stream, int begin, int end)
{
    if (begin == end) return;
    const int of_block = plan.threads * (plan.is_plain ? 1 : 4);
    const auto kernel = plan.is_plain ? plain : by_four;
    kernel<<<(end - begin + of_block - 1) / of_block, plan.threads, 0, stream>>>(
        part.other.get(), part.current.get(), part.elements(), begin, end);
    CHECK(cudaGetLastError());
}

// Each stream waits for what the other one did in the step before, which is what it reads and overwrites.
void compute(const Plan& plan, const Part& part)
{
    CHECK(cudaSetDevice(part.gpu.number));
    CHECK(cudaStreamWaitEvent(part.gpu.stream, part.border_done, 0));
    CHECK(cudaStreamWaitEvent(part.border, part.inside_done, 0));
    launch(plan, part, part.border, 0, part.layout.border);
    CHECK(cudaEventRecord(part.border_done, part.border));
    launch(plan, part, part.gpu.stream, part.layout.border, part.own());
    CHECK(cudaEventRecord(part.inside_done, part.gpu.stream));
}

// Fetches what is needed of another GPU's new temperatures.
void fetch(const Part& to, const Part& from)
{
    const int first = to.layout.copies[from.gpu.number];
    if (first < 0) return;
    CHECK(cudaStreamWaitEvent(to.border, from.border_done, 0));
    CHECK(cudaMemcpyPeerAsync(to.other.get() + first, to.gpu.number, from.other.get(), from.gpu.number,
                              from.layout.border * sizeof(float), to.border));
}

void step(const Plan& plan, std::vector<Part>& parts)
{
    if (parts.size() == 1) {
        launch(plan, parts[0], parts[0].gpu.stream, 0, parts[0].own());
    } else {
        for (const Part& part : parts) compute(plan, part);
        for (const Part& to : parts)
            for (const Part& from : parts) fetch(to, from);
    }
    for (Part& part : parts) std::swap(part.current, part.other);
}

std::vector<float> gather(const std::vector<Part>& parts, size_t triangles)
{
    std::vector<float> temperatures(triangles);
    for (const Part& part : parts) {
        std::vector<float> u(part.own());
        CHECK(cudaMemcpy(u.data(), part.current.get(), u.size() * sizeof(float), cudaMemcpyDeviceToHost));
        for (int at = 0; at < part.own(); ++at)
            if (part.layout.triangles[at] >= 0) temperatures[part.layout.triangles[at]] = u[at];
    }
    return temperatures;
}

// The same by plain loops.
std::vector<float> reference(const Surface& surface, int steps)
{
    std::vector<float> u = surface.initial, after(u.size());
    for (int number = 0; number < steps; ++number) {
        for (size_t at = 0; at < u.size(); ++at) {
            const auto [a, b, c] = surface.beside[at];
            const auto [to_a, to_b, to_c] = surface.conductances[at];
            after[at] = next(u[at], u[a], u[b], u[c], to_a, to_b, to_c);
        }
        std::swap(u, after);
    }
    return u;
}

int main(int argc, char** argv)
{
    const Options options(argc, argv, {{"sphere", "5"}, {"steps", "500"}, {"form", "four"}});
    const int levels = options.number("sphere");
    const std::string form = options.text("form");
    if (levels > 12) fail("--sphere must be at most 12");
    if (form != "plain" && form != "four") fail("--form is plain or four, not \"" + form + "\"");
    const std::vector<Gpu> gpus = open_gpus(options.number("gpus", 1));
    if (gpus.size() > 20) fail("there must be one of 20 triangles for each GPU");

    const Surface surface = sphere(levels);
    std::vector<Part> parts = divide(gpus, surface);
    const double seconds = fastest(
        gpus, options, {{{128, 1, 1}, 0}, {{256, 1, 1}, 0}, {{512, 1, 1}, 0}}, [&] { start(parts, surface); },
        [&](const Shape& shape, int) { step({form == "plain", static_cast<int>(shape.threads.x)}, parts); });

    const size_t triangles = surface.initial.size();
    uint64_t sum = 0;
    if (options.verify || options.checksum) {
        const std::vector<float> temperatures = gather(parts, triangles);
        if (options.verify) compare(temperatures, reference(surface, options.number("steps")), 1e-5);
        if (options.checksum) sum = checksum(temperatures);
    }
    report(("mesh-" + form).c_str(), options, static_cast<int>(triangles), seconds, static_cast<double>(triangles),
           "triangles", sum);
}

// Heat in a rod with Kokkos: one process, one device.
#include <Kokkos_Core.hpp>
#include <cstdio>
#include <utility>

int main(int argc, char** argv) {
    Kokkos::ScopeGuard guard(argc, argv);
    const int cells = 1000, steps = 100;
    Kokkos::View<float*> u("u", cells), v("v", cells);
    Kokkos::parallel_for("fill", cells, KOKKOS_LAMBDA(int i) { u(i) = i == 0 ? 1.0f : 0.0f; });
    for (int s = 0; s < steps; ++s) {
        Kokkos::parallel_for("step", cells, KOKKOS_LAMBDA(int i) {
            const float here = u(i);
            const float left = i == 0 ? here : u(i - 1);
            const float right = i == cells - 1 ? here : u(i + 1);
            v(i) = here + 0.25f * (left - 2.0f * here + right);
        });
        std::swap(u, v);
    }
    auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), u);
    std::printf("%.6f\n", host(0));
}

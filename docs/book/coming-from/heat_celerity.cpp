// Heat in a rod with Celerity for C++ (SYCL): all devices of all nodes.
#include <celerity.h>
#include <cstdio>
#include <utility>

int main() {
    const size_t cells = 1000;
    const int steps = 100;
    celerity::queue queue;
    celerity::buffer<float, 1> u{cells}, v{cells};
    queue.submit([&](celerity::handler& cgh) {
        celerity::accessor a{u, cgh, celerity::access::one_to_one{}, celerity::write_only, celerity::no_init};
        cgh.parallel_for(celerity::range{cells}, [=](celerity::item<1> item) { a[item] = item[0] == 0 ? 1.f : 0.f; });
    });
    for (int s = 0; s < steps; ++s) {
        queue.submit([&](celerity::handler& cgh) {
            celerity::accessor from{u, cgh, celerity::access::neighborhood{1}, celerity::read_only};
            celerity::accessor to{v, cgh, celerity::access::one_to_one{}, celerity::write_only, celerity::no_init};
            cgh.parallel_for(celerity::range{cells}, [=](celerity::item<1> item) {
                const size_t i = item[0];
                const float here = from[i];
                const float left = i == 0 ? here : from[i - 1];
                const float right = i == cells - 1 ? here : from[i + 1];
                to[i] = here + 0.25f * (left - 2.f * here + right);
            });
        });
        std::swap(u, v);
    }
    const auto rod = queue.fence(u).get();
    std::printf("%.6f\n", rod[0]);
}

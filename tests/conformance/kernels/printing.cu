// Kernels that print, or could: what a printf costs where it is executed and where it only stands. Lines that they print
// begin with "printed".
#include "conformance.hpp"

using conformance::blocks_for;

template <int wanted>
__global__ void print_at(const float* x, float* y, int n, float limit) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float value = x[i] * 2 + 1;
    if (wanted == 0 && value > limit) printf("printed %d\n", i);
    if (wanted == 1 && value > limit) printf("printed %d %f %d\n", i, value, blockIdx.x);
    if (wanted == 2 && value > limit) printf("printed %s %d %lld %g %x\n", "a line", i, static_cast<long long>(i) << 20, value, i);
    y[i] = value;
}

template <int wanted>
void print_case(conformance::Run& run, int n, float limit) {
    const auto x = run.upload<float>(n, [](size_t i) { return i % 1024 == 0 ? 4.0f : i % 32 == 0 ? 2.0f : 1.0f; });
    const auto y = run.empty<float>(n);
    run.call([=] { print_at<wanted><<<blocks_for(n, 256), 256>>>(x, y, n, limit); });
    run.output("y", y, n);
}

CASE(print_never) { print_case<0>(run, 1 << 20, 100.0f); }
CASE(print_one_lane_in_1024) { print_case<0>(run, 1 << 15, 8.0f); }
CASE(print_one_lane_of_a_warp) { print_case<1>(run, 1 << 11, 4.0f); }
CASE(print_every_lane) { print_case<1>(run, 128, 0.0f); }
CASE(print_much) { print_case<2>(run, 128, 0.0f); }

CONFORMANCE_MAIN

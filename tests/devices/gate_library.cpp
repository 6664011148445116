// What gate_program.cpp calls.
#include <cstdint>
#include <stdexcept>

static double constructed = 0;
__attribute__((constructor)) static void construct() { constructed = 0.25; }

void launch_gpu_implementation(double* sum, const float* one, int64_t a, int b, int64_t c, bool d, int64_t e, int64_t f,
                               int64_t g, float h, double i, float j, float k, float l, float m, float n, float o, float p,
                               double q, int64_t r) {
    if (*sum == -1) throw std::runtime_error("a sum of -1");
    if (*sum == -2) return;
    *sum = constructed + *one + double(a + b + c + int64_t(d) + e + f + g) + h + i + j + k + l + m + n + o + p + q + double(r);
}

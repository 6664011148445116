// Calls a shared object through the gate, as a harness program does: `PROGRAM LIBRARY CALLS` prints the sum that the
// library makes of all its arguments, what it has thrown at a sum of -1, and the nanoseconds of a call that returns at once.
#include <kernelblaster/containment.hpp>

#include <cstdio>

extern "C" __attribute__((visibility("hidden"))) const char* kb_load_candidate(const char* path);
extern "C" __attribute__((visibility("hidden"))) void kb_initialise_candidate(size_t index);

void launch_gpu_implementation(double* sum, const float* one, int64_t a, int b, int64_t c, bool d, int64_t e, int64_t f,
                               int64_t g, float h, double i, float j, float k, float l, float m, float n, float o, float p,
                               double q, int64_t r);

// Where a candidate may look, unlike the stack.
static double sum = 0;
static const float one = 1;

static double call(double before) {
    sum = before;
    launch_gpu_implementation(&sum, &one, 2, -3, 4, true, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18.5, 1ll << 40);
    return sum;
}

static int run(void* argv_of_main) {
    auto** argv = static_cast<char**>(argv_of_main);
    const int calls = std::atoi(argv[2]);
    if (const char* failure = kb_load_candidate(argv[1])) return std::puts(failure), 2;
    kb::ProgramText text(3, argv);
    const kb::Containment done = kb::contain(STDOUT_FILENO, text);
    if (!done.memory_protected) return std::puts(done.obstacle.c_str()), 3;
    kb_initialise_candidate(0);
    const double found = call(0);
    call(-1);
    const char* thrown = kb_thrown();
    const std::string said = thrown == nullptr ? "nothing" : thrown;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call(-2);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    std::printf("%.2f\n%s\n%.0f\n", found, said.c_str(), took.count() / calls);
    std::fflush(stdout);
    return 0;
}

int main(int, char** argv) { return kb_on_own_stack(run, argv); }

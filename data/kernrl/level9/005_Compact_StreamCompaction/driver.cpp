#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* kept, void* kept_count, void* x, int64_t count, float threshold);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("kept"), d.output("kept_count"), d.input("x"), d.size("count"),
                              d.scalar("threshold"));
}

KB_DRIVER(call)

#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* origins, void* directions, void* centers, void* radii, int64_t rays,
                               int64_t spheres, float epsilon);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("origins"), d.input("directions"), d.input("centers"),
                              d.input("radii"), d.size("rays"), d.size("spheres"), d.scalar("epsilon"));
}

KB_DRIVER(call)

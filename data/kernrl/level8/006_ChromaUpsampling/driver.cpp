#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* y, void* u, void* v, int64_t chroma_height, int64_t chroma_width);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("y"), d.input("u"), d.input("v"), d.size("chroma_height"),
                              d.size("chroma_width"));
}

KB_DRIVER(call)

#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* pixel_difference, void* histogram_difference, void* first, void* second,
                               int64_t pairs, int64_t pixels);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("pixel_difference"), d.output("histogram_difference"), d.input("first"),
                              d.input("second"), d.size("pairs"), d.size("pixels"));
}

KB_DRIVER(call)

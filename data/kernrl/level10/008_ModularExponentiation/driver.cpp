#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* bases, void* exponents, void* moduli, int64_t count, int64_t limbs);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("bases"), d.input("exponents"), d.input("moduli"),
                              d.size("count"), d.size("limbs"));
}

KB_DRIVER(call)

#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* passwords, void* salts, int64_t passwords_count, int64_t rounds);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("passwords"), d.input("salts"), d.size("passwords_count"),
                              d.size("rounds"));
}

KB_DRIVER(call)

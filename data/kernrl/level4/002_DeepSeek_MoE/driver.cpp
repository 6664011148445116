#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* experts, void* shares, void* gate, void* up, void* down,
                               void* shared_gate, void* shared_up, void* shared_down, int64_t tokens, int64_t width,
                               int64_t inner, int64_t experts_count, int64_t chosen, float scale);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("experts"), d.input("shares"), d.weight("gate"),
                              d.weight("up"), d.weight("down"), d.weight("shared_gate"), d.weight("shared_up"),
                              d.weight("shared_down"), d.size("tokens"), d.size("width"), d.size("inner"),
                              d.size("experts_count"), d.size("chosen"), d.scalar("scale"));
}

KB_DRIVER(call)

// What a problem's driver.cpp includes. It is compiled for every problem; the program behind it (program.hpp), once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

namespace kb {

// Device pointers, sizes and scalars by name. What the problem does not have is refused.
class Harness {
   public:
    virtual void* input(const std::string& name) = 0;
    virtual void* weight(const std::string& name) = 0;
    virtual void* output(const std::string& name) = 0;

    // Device pointers of all weights, in the order of the problem's: for networks that have very many. The array is on
    // the host, where a candidate can read it, and the harness'; it holds until the next call.
    virtual void* const* weights() = 0;
    virtual int64_t size(const std::string& name) = 0;
    virtual float scalar(const std::string& name) = 0;

   protected:
    ~Harness() = default;
};

}  // namespace kb

extern "C" void kb_call_launcher(kb::Harness& harness);

#define KB_HARNESS(function) \
    extern "C" void kb_call_launcher(kb::Harness& harness) { function(harness); }

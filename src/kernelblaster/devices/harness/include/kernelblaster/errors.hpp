// The error type of the harness, and the check of CUDA calls.
#pragma once

#include <cuda_runtime_api.h>
#include <kernelblaster/last_word.hpp>

#include <stdexcept>
#include <string>
#include <utility>

namespace kb {

// Carries the name and message of an `error` reply.
class Error : public std::runtime_error {
   public:
    Error(std::string name, const std::string& message) : std::runtime_error(message), name_(std::move(name)) {}
    const std::string& name() const { return name_; }

   private:
    std::string name_;
};

// Ends what is being done.
[[noreturn]] inline void raise(const std::string& name, const std::string& message) {
    if (LastWord* word = kept().last_word) word->tell(name, message);
    throw Error(name, message);
}

[[noreturn]] inline void fail(const std::string& message) { raise("harness", message); }

inline void check(cudaError_t status, const char* action) {
    if (status != cudaSuccess) {
        raise(cudaGetErrorName(status), std::string(action) + ": " + cudaGetErrorString(status));
    }
}

}  // namespace kb

// Device memory that the program has allocated and not freed when it ends: kept where PTXEMU_LEAKS asks for it, and told
// in the file of the checks, one JSON object for each allocation.
#pragma once

#include <map>
#include <vector>

#include "types.hpp"

namespace ptxemu {

class Leaks {
public:
    // Tells what is left when the process exits.
    void watch();
    void allocated(u64 address, u64 bytes);
    void freed(u64 address) { left_.erase(address); }

private:
    struct Allocation {
        u64 bytes;
        std::vector<u64> callers;  // see callers.hpp
    };
    void report() const;

    bool watching_ = false;
    std::map<u64, Allocation> left_;
};

}  // namespace ptxemu

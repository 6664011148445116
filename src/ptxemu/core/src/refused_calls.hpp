// Copies, fills, allocations and frees that ended with an error, which a GPU returns, too, and a program may overlook:
// kept where PTXEMU_REFUSED asks for it, and told when the program ends without having asked for the last error since.
// Whether it has looked at what the call returned cannot be seen.
#pragma once

#include <string>
#include <vector>

#include "types.hpp"

namespace ptxemu {

class RefusedCalls {
public:
    // Tells what is left when the process exits.
    void watch();
    void note(const std::string& message);
    void forget() { calls_.clear(); }

private:
    struct Call {
        std::string message;
        std::vector<u64> callers;
        u64 count;
    };
    void report() const;

    bool watching_ = false;
    std::vector<Call> calls_;
};

}  // namespace ptxemu

// What the judge asks of a harness, and what it answers. `devices/harness/protocol.py` has the same numbers.
#pragma once

#include <cstdint>

namespace kb {

// The fields of each packet; `fds` are descriptors that come with it.
enum class HarnessRequest : uint8_t {
    job = 1,      // sizes, scalars, number of tensors
    tensors = 2,  // the next tensors; fds: files of the inputs and weights among them, in order
    load = 3,     // text path, u8 whether to contain it                              -> loaded
    call = 4,     // u8 poison; fds: files of the outputs                             -> called
    fetch = 5,    // fds: files of the outputs                                        -> called
    time = 6,     // u64 flush bytes, u32 cover fills, u64 perturbation               -> timed
    reload = 7,   // u32 index of the first input; fds: files of inputs from there on -> reloaded
    profile = 8,  // u64 perturbation                                                 -> profiled
    warm_up = 9,  // run an empty kernel between profiler marks                       -> warmed_up
    batch = 10,   // u32 calls, u64 seed of their perturbations                       -> batched
    quit = 11,
};

enum class HarnessReply : uint8_t {
    ready = 1,      // after the last tensors: they are on the device
    loaded = 2,     // u8 whether it is contained, f64 microseconds that took, text why it is not
    called = 3,     // u32 count, then for each damaged tensor: u32 index, u8 0: an input was changed, 1: bytes around it
    timed = 4,      // f64 device, host and enqueue microseconds
    reloaded = 5,
    profiled = 6,
    warmed_up = 7,
    batched = 8,    // f64 microseconds by events, u32 places that outputs lie in, u32 the place of the last call
    judged = 9,     // of a driver that judges itself: u32 exit status, u64 bytes put back, u64 bytes not, text
    error = 10,     // text name (a CUDA error, `exception`, `load`, `harness` or `driver`), text message
};

}  // namespace kb

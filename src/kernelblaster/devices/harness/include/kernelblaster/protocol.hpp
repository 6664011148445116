// What the judge asks of a harness, and what it answers. `devices/harness/protocol.py` has the same numbers.
#pragma once

#include <cstdint>

namespace kb {

// The fields of each packet; `fds` are descriptors that come with it.
enum class HarnessRequest : uint8_t {
    job = 1,      // sizes, scalars, number of tensors
    tensors = 2,  // the next tensors; fds: files of the inputs and weights among them, in order
    load = 3,     // text path, u8 whether to contain it                              -> loaded
    call = 4,     // u8 poison                                                        -> called
    fetch = 5,    // fds: files of the outputs, which are closed again                -> fetched
    time = 6,     // u64 flush bytes, u32 cover fills, u64 perturbation               -> timed
    reload = 7,   // u32 index of the first input; fds: files of inputs from there on -> reloaded
    profile = 8,  // u64 perturbation                                                 -> profiled
    warm_up = 9,  // run an empty kernel between profiler marks                       -> warmed_up
    prepare_batch = 10,  // list of u64: the perturbation of each slot               -> batch_prepared
    batch = 11,   // u32 calls, u64 flush bytes, u32 fills: a call per slot         -> issued, then batched
    select = 12,  // u32 slot, which is fetched next                                -> selected
    quit = 13,
    add = 14,     // text path of one more candidate, before `load` brings the last        -> added
    choose = 15,  // u32 which candidate is called from here on, which is tried at once  -> chosen
    key = 16,     // 32 bytes that prove replies, in the first packet of all, see seal.hpp
};

enum class HarnessReply : uint8_t {
    ready = 1,      // after the last tensors: they are on the device
    loaded = 2,     // u8 whether it is contained, u8 whether memory is protected, f64 microseconds, text why it is not
    called = 3,     // u64 bytes that an emulated GPU's runtime has reported so far, to its files
    timed = 4,      // f64 device, host and enqueue microseconds
    reloaded = 5,
    profiled = 6,   // as called
    warmed_up = 7,
    batch_prepared = 8,
    issued = 9,     // all calls of a batch are launched
    batched = 10,   // the device is idle again
    selected = 11,
    judged = 12,    // of a driver that judges itself: u32 exit status, u64 bytes put back, u64 bytes not, text
    error = 13,     // text name (a CUDA error, `exception`, `load`, `harness` or `driver`), text message
    added = 14,
    chosen = 15,    // u8 whether its call succeeded, text why not
    fetched = 16,   // u32 count, then for each damaged tensor: u32 index, u8 0: an input was changed, 1: bytes around it
};

}  // namespace kb

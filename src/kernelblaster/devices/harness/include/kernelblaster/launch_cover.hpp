// What keeps the GPU busy while a call is being launched, and the share of the L2 that a candidate sets aside.
#pragma once

#include <cuda_runtime_api.h>
#include <kernelblaster/job.hpp>

#include <algorithm>
#include <cmath>

namespace kb {

// A candidate may set part of the L2 aside for lines that persist (cudaLimitPersistingL2CacheSize). On an H200 copies and
// cover_fills of more than 8 MB then take 2.5 times as long: those of the harness would look like hidden work, and would slow
// the baseline. So the limit is the candidate's during its call alone.
class PersistingL2Limit {
   public:
    PersistingL2Limit() : usual_(limit()), candidate_(usual_) {}

    // Before a call: what the candidate last asked for. Tells whether that is not the usual.
    bool give() const {
        if (candidate_ == usual_) return false;
        set(candidate_);
        return true;
    }

    // After a call.
    void take() {
        candidate_ = limit();
        if (candidate_ != usual_) set(usual_);
    }

   private:
    static size_t limit() {
        size_t bytes = 0;
        if (cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) == cudaSuccess) return bytes;
        cudaGetLastError();  // a GPU without persisting lines; clear the sticky copy of the status
        return 0;
    }

    static void set(size_t bytes) {
        check(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, bytes), "setting L2 lines aside");
    }

    size_t usual_, candidate_;
};

// Short cover_fills that cover the launch latency of a call. With lines set aside they are as many smaller ones as take the
// same time: cover_fills that small are not slowed.
class LaunchCover {
   public:
    LaunchCover() = default;
    LaunchCover(char* memory, size_t bytes)
        : bytes_(std::min(kBytes, bytes)), tail_(memory + (bytes - bytes_)) {  // the part that L2 still holds
        if (bytes_ == 0) return;
        const double whole = time_of(bytes_), part = time_of(small());
        parts_ = part > 0 ? std::clamp(whole / part, 1.0, 1.0 * kParts) : 1.0;
    }

    void keep_busy(size_t cover_fills, bool set_aside) const {
        const size_t count = set_aside ? static_cast<size_t>(std::lround(parts_ * static_cast<double>(cover_fills))) : cover_fills;
        for (size_t i = 0; i < count && bytes_ > 0; ++i) fill(set_aside ? small() : bytes_);
    }

   private:
    static constexpr size_t kBytes = size_t{32} << 20, kParts = 4;
    static constexpr int kTimed = 8;

    size_t small() const { return std::max<size_t>(bytes_ / kParts, 1); }

    void fill(size_t bytes) const {
        check(cudaMemsetAsync(tail_, 0xA5, bytes, cudaStreamLegacy), "covering launch latency");
    }

    // Milliseconds of a fill among others.
    double time_of(size_t bytes) const {
        cudaEvent_t begin = nullptr, end = nullptr;
        check(cudaEventCreate(&begin), "creating an event");
        check(cudaEventCreate(&end), "creating an event");
        fill(bytes);
        check(cudaEventRecord(begin, cudaStreamLegacy), "recording an event");
        for (int i = 0; i < kTimed; ++i) fill(bytes);
        check(cudaEventRecord(end, cudaStreamLegacy), "recording an event");
        check(cudaDeviceSynchronize(), "timing a fill");
        float ms = 0.0f;
        check(cudaEventElapsedTime(&ms, begin, end), "reading the events");
        cudaEventDestroy(begin);
        cudaEventDestroy(end);
        return ms / kTimed;
    }

    size_t bytes_ = 0;
    char* tail_ = nullptr;
    double parts_ = 1.0;  // small cover_fills that take the time of one
};

}  // namespace kb

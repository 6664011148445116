// Times single calls by two clocks, and makes batches of calls, which the judge times.
#pragma once

#include <cuda_runtime_api.h>
#include <kernelblaster/errors.hpp>
#include <kernelblaster/launch_cover.hpp>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace kb {

constexpr double kTwinSlackUs = 3.0;  // by which two start events may disagree

// An event whose handle does not lie in memory as such, so that a scan for handles finds none.
class HiddenEvent {
   public:
    HiddenEvent() {
        // Not by the C library's getrandom, at which a thread can be cancelled.
        if (::syscall(SYS_getrandom, &mask_, sizeof mask_, 0) != sizeof mask_) fail("no random numbers");
        cudaEvent_t event = nullptr;
        check(cudaEventCreate(&event), "creating an event");
        masked_ = reinterpret_cast<uintptr_t>(event) ^ mask_;
    }
    ~HiddenEvent() { cudaEventDestroy(get()); }
    HiddenEvent(const HiddenEvent&) = delete;
    HiddenEvent& operator=(const HiddenEvent&) = delete;

    void record() const { check(cudaEventRecord(get(), cudaStreamLegacy), "recording an event"); }
    double us_until(const HiddenEvent& later) const {
        float ms = 0.0f;
        check(cudaEventElapsedTime(&ms, get(), later.get()), "reading the events");
        return ms * 1e3;
    }

   private:
    cudaEvent_t get() const { return reinterpret_cast<cudaEvent_t>(masked_ ^ mask_); }

    uintptr_t mask_ = 0, masked_ = 0;
};

// Times calls by two clocks. The flush is finished before the host clock starts, so that work a candidate puts on
// another stream cannot hide behind it; memsets of a few microseconds then cover the launch latency of the call.
// Both clocks are read after a device-wide synchronisation: work outside the default stream shows as host time.
// The start is taken by two events; one that was recorded again later disagrees with the other and is not believed.
class Timer {
   public:
    explicit Timer(PersistingL2Limit& lines) : twin_(new HiddenEvent), l2_limit_(lines) {}
    ~Timer() { cudaFree(flush_); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    struct Sample {
        double device_us, host_us, enqueue_us;
    };

    // Before each sample the caller puts the tensors in place. `call` makes the call.
    Sample sample(size_t flush_bytes, size_t cover_fills, const std::function<void()>& call) {
        flush(flush_bytes);
        const bool set_aside = l2_limit_.give();
        const auto begin = Clock::now();
        cover_.keep_busy(cover_fills, set_aside);
        twin_->record();
        start_.record();
        const auto launch = Clock::now();
        call();
        stop_.record();
        const double enqueue_us = us_since(launch);
        check(cudaDeviceSynchronize(), "running the candidate");
        const double host_us = us_since(begin);
        check(cudaGetLastError(), "launching the candidate");
        l2_limit_.take();
        const double device_us = start_.us_until(stop_), twin_us = twin_->us_until(stop_);
        return {twin_us > device_us + kTwinSlackUs ? twin_us : device_us, host_us, enqueue_us};
    }

    // Makes calls behind fills of the whole flush buffer, tells when they are launched, and waits until the device is
    // idle. The fills keep it busy meanwhile, and leave nothing of the inputs in L2.
    void run_behind(size_t flush_bytes, size_t fills, const std::function<void()>& calls,
                    const std::function<void()>& launched) {
        flush(flush_bytes);
        for (size_t i = 0; i < fills && flush_bytes > 0; ++i) {
            check(cudaMemsetAsync(flush_, 0xA5, flush_bytes, cudaStreamLegacy), "covering a batch");
        }
        l2_limit_.give();
        calls();
        launched();
        check(cudaDeviceSynchronize(), "running a batch");
        check(cudaGetLastError(), "launching a batch");
        l2_limit_.take();
    }

   private:
    using Clock = std::chrono::steady_clock;

    static double us_since(Clock::time_point from) {
        return std::chrono::duration<double, std::micro>(Clock::now() - from).count();
    }

    void flush(size_t bytes) {
        const cudaError_t reset = cudaCtxResetPersistingL2Cache();
        if (reset == cudaErrorNotSupported) {
            cudaGetLastError();  // a GPU without persisting lines; clear the sticky copy of the status
        } else {
            check(reset, "resetting persisting L2 lines");
        }
        if (bytes != flush_bytes_) make_flush(bytes);
        if (bytes > 0) check(cudaMemsetAsync(flush_, 0x5A, bytes, cudaStreamLegacy), "flushing L2");
        check(cudaDeviceSynchronize(), "flushing L2");
    }

    void make_flush(size_t bytes) {
        check(cudaFree(flush_), "freeing the flush buffer");
        flush_ = nullptr;
        if (bytes > 0) check(cudaMalloc(&flush_, bytes), "cudaMalloc of the flush buffer");
        cover_ = LaunchCover(static_cast<char*>(flush_), bytes);
        flush_bytes_ = bytes;
    }

    HiddenEvent start_, stop_;
    std::unique_ptr<HiddenEvent> twin_;
    size_t flush_bytes_ = 0;
    void* flush_ = nullptr;
    LaunchCover cover_;
    PersistingL2Limit& l2_limit_;
};

}  // namespace kb

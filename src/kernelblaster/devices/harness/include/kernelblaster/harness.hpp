// The harness program: the host side of one candidate. It reads tensors, calls, times and writes bytes; it never
// sees an expected value and never judges. Host code only: compiled by the host compiler against the CUDA runtime.
//
//   PROGRAM JOBFILE REPLYPATH [COMMAND...]
//
// With COMMANDs each argument is one command line; without, they are read from stdin until `quit`. Replies go to
// REPLYPATH as lines that begin with the job's nonce, so that nothing a candidate prints can pass for a reply.
//
//   call BYTE                        fill outputs with BYTE, call, synchronise, write outputs  -> called FOUND...
//   time FLUSH COVER_FILLS PERTURBATION...      time one call per perturbation, each with cold caches
//                                                              -> timed N device_us host_us enqueue_us ...
//   fetch                            write outputs as the last call left them                  -> called FOUND...
//   reload                           copy the input files to the device again                  -> reloaded
//   profile [PERTURBATION]                one warm-up call, then one call between profiler marks    -> profiled
//   warm_up                          run an empty kernel between profiler marks                -> warmed_up
//   load PATH                        load the candidate, in a program that was linked without  -> loaded
//   quit                             end
//
// FOUND names what a call must not have written: an input, or `around:NAME` for the bytes next to a tensor. Calls are
// made on the values of the files but for timed ones and a profiled one with a PERTURBATION: those find other values at other
// addresses, as perturbation.hpp says. A failure is answered with `error NAME MESSAGE` (NAME is a CUDA error name,
// `exception`, `load` or `harness`) and exit status 3.
#pragma once

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <kernelblaster/buffer.hpp>
#include <kernelblaster/launch_cover.hpp>
#include <kernelblaster/job.hpp>
#include <kernelblaster/profiler_warmup.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

// Of deferred.cpp, which is linked into programs without a candidate alone.
extern "C" __attribute__((weak, visibility("hidden"))) const char* kb_load_candidate(const char* path);

namespace kb {

constexpr double kTwinSlackUs = 3.0;              // by which two start events may disagree
constexpr int kPoison = 0xFF, kOtherPoison = 0x5B;
constexpr int kExitError = 3;

// What a problem's driver.cpp sees: device pointers, sizes and scalars by name.
class Harness {
   public:
    explicit Harness(const Job& job) : sizes_(job.sizes), scalars_(job.scalars) {
        for (const Tensor& tensor : job.tensors) buffers_.emplace_back(tensor, buffers_.size());
        load_inputs();
    }
    virtual ~Harness() = default;

    void* input(const std::string& name) { return find("input", name); }
    void* weight(const std::string& name) { return find("weight", name); }
    void* output(const std::string& name) { return find("output", name); }
    int64_t size(const std::string& name) { return lookup(sizes_, "size", name); }
    float scalar(const std::string& name) { return lookup(scalars_, "scalar", name); }

    void load_inputs() {
        for (Buffer& buffer : buffers_) buffer.load();
    }

    // Puts all tensors where and how the perturbation has them, outputs poisoned.
    virtual void install(uint64_t perturbation) {
        for (Buffer& buffer : buffers_) buffer.install(perturbation);
        poison_outputs(perturbation % 2 == 0 ? kPoison : kOtherPoison);
    }

    void poison_outputs(int byte) const {
        for (const Buffer& buffer : buffers_) {
            if (buffer.output()) buffer.poison(byte);
        }
    }

    void write_outputs() {
        for (const Buffer& buffer : buffers_) {
            if (buffer.output()) buffer.write_file(staging_);
        }
    }

    // Inputs and weights whose device bytes changed, and tensors next to which something was written.
    std::vector<std::string> damage() {
        std::vector<std::string> names;
        for (const Buffer& buffer : buffers_) {
            if (!buffer.output() && buffer.mutated(staging_)) names.push_back(buffer.tensor().name);
            if (buffer.overrun()) names.push_back("around:" + buffer.tensor().name);
        }
        return names;
    }

    // Why the job cannot serve driver.cpp; empty when nothing was asked for in vain.
    const std::string& refusal() const { return refusal_; }

   private:
    [[noreturn]] void refuse(const std::string& what, const std::string& name) {
        refusal_ = "the job has no " + what + " named " + name;
        fail(refusal_);
    }

    void* find(const std::string& role, const std::string& name) {
        for (const Buffer& buffer : buffers_) {
            if (buffer.tensor().role == role && buffer.tensor().name == name) return buffer.device();
        }
        refuse(role, name);
    }

    template <typename T>
    T lookup(const std::map<std::string, T>& table, const char* what, const std::string& name) {
        const auto found = table.find(name);
        if (found == table.end()) refuse(what, name);
        return found->second;
    }

    Staging staging_;
    std::vector<Buffer> buffers_;
    std::map<std::string, int64_t> sizes_;
    std::map<std::string, float> scalars_;
    std::string refusal_;
};

using Call = void (*)(Harness&);

// Runs the candidate. What it throws is never taken for an error of the harness, whatever its type and text.
inline void run_candidate(Harness& harness, Call call) {
    try {
        call(harness);
    } catch (const std::exception& error) {
        if (!harness.refusal().empty()) fail(harness.refusal());
        throw Error("exception", error.what());
    } catch (...) {
        throw Error("exception", "the candidate threw something");
    }
}

inline void call_and_sync(Harness& harness, Call call) {
    run_candidate(harness, call);
    check(cudaGetLastError(), "launching the candidate");
    check(cudaDeviceSynchronize(), "running the candidate");
}

// An event whose handle does not lie in memory as such, so that a scan for handles finds none.
class HiddenEvent {
   public:
    HiddenEvent() : mask_(std::random_device{}()) {
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

    uintptr_t mask_, masked_ = 0;
};

// Times calls by two clocks. The flush is finished before the host clock starts, so that work a candidate puts on
// another stream cannot hide behind it; memsets of a few microseconds then cover the launch latency of the call.
// Both clocks are read after a device-wide synchronisation: work outside the default stream shows as host time.
// The start is taken by two events; one that was recorded again later disagrees with the other and is not believed.
class Timer {
   public:
    Timer(size_t flush_bytes, PersistingL2Limit& lines)
        : twin_(new HiddenEvent), flush_bytes_(flush_bytes), l2_limit_(lines) {
        if (flush_bytes_ > 0) check(cudaMalloc(&flush_, flush_bytes_), "cudaMalloc of the flush buffer");
        cover_ = LaunchCover(static_cast<char*>(flush_), flush_bytes_);
    }
    ~Timer() { cudaFree(flush_); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    size_t flush_bytes() const { return flush_bytes_; }

    struct Sample {
        double device_us, host_us, enqueue_us;
    };

    Sample sample(Harness& harness, Call call, uint64_t perturbation, size_t cover_fills) {
        harness.install(perturbation);
        flush();
        const bool set_aside = l2_limit_.give();
        const auto begin = Clock::now();
        cover_.keep_busy(cover_fills, set_aside);
        twin_->record();
        start_.record();
        const auto launch = Clock::now();
        run_candidate(harness, call);
        stop_.record();
        const double enqueue_us = us_since(launch);
        check(cudaDeviceSynchronize(), "running the candidate");
        const double host_us = us_since(begin);
        check(cudaGetLastError(), "launching the candidate");
        l2_limit_.take();
        const double device_us = start_.us_until(stop_), twin_us = twin_->us_until(stop_);
        return {twin_us > device_us + kTwinSlackUs ? twin_us : device_us, host_us, enqueue_us};
    }

   private:
    using Clock = std::chrono::steady_clock;

    static double us_since(Clock::time_point from) {
        return std::chrono::duration<double, std::micro>(Clock::now() - from).count();
    }

    void flush() {
        const cudaError_t reset = cudaCtxResetPersistingL2Cache();
        if (reset == cudaErrorNotSupported) {
            cudaGetLastError();  // a GPU without persisting lines; clear the sticky copy of the status
        } else {
            check(reset, "resetting persisting L2 lines");
        }
        if (flush_bytes_ > 0) check(cudaMemsetAsync(flush_, 0x5A, flush_bytes_, cudaStreamLegacy), "flushing L2");
        check(cudaDeviceSynchronize(), "flushing L2");
    }

    HiddenEvent start_, stop_;
    std::unique_ptr<HiddenEvent> twin_;
    size_t flush_bytes_;
    void* flush_ = nullptr;
    LaunchCover cover_;
    PersistingL2Limit& l2_limit_;
};

// Lets the pool behind cudaMallocAsync keep what a call frees. Otherwise it is unmapped when the device is next waited
// for: after the call, where the host clock still runs, and mapped again in the next one.
inline void keep_freed_memory() {
    cudaMemPool_t pool = nullptr;
    uint64_t all = UINT64_MAX;
    if (cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess &&
        cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all) == cudaSuccess) {
        return;
    }
    cudaGetLastError();  // a GPU without pools; clear the sticky copy of the status
}

// Runs command lines; returns the reply without the nonce.
class Commands {
   public:
    Commands(Harness& harness, Call call) : harness_(harness), call_(call) {}

    std::string run(const std::string& line) {
        std::istringstream words(line);
        std::string command;
        words >> command;
        if (command == "call") return call(argument<int>(words, line));
        if (command == "fetch") return fetch();
        if (command == "time") {
            const auto flush_bytes = argument<size_t>(words, line);
            const auto cover_fills = argument<size_t>(words, line);
            return time(flush_bytes, cover_fills, perturbations(words));
        }
        if (command == "profile") return profile(perturbations(words));
        if (command == "warm_up") {
            ProfilerWarmup().run();
            return "warmed_up";
        }
        if (command == "reload") {
            harness_.load_inputs();
            return "reloaded";
        }
        if (command == "load") return load(line.substr(command.size() + 1));
        fail("unknown command: " + line);
    }

   private:
    template <typename T>
    static T argument(std::istringstream& words, const std::string& line) {
        T value{};
        if (!(words >> value)) fail("malformed command: " + line);
        return value;
    }

    static std::vector<uint64_t> perturbations(std::istringstream& words) {
        return {std::istream_iterator<uint64_t>(words), std::istream_iterator<uint64_t>()};
    }

    // What runs while it is loaded may throw; that is never taken for an error of the harness.
    static std::string load(const std::string& path) {
        if (kb_load_candidate == nullptr) fail("this program has its candidate");
        const char* failure = nullptr;
        try {
            failure = kb_load_candidate(path.c_str());
        } catch (...) {
            throw Error("exception", "the candidate threw something while it was loaded");
        }
        if (failure != nullptr) throw Error("load", failure);
        return "loaded";
    }

    std::string call(int poison) {
        harness_.install(0);
        harness_.poison_outputs(poison);
        l2_limit_.give();
        call_and_sync(harness_, call_);
        l2_limit_.take();
        return fetch();
    }

    std::string fetch() {
        harness_.write_outputs();
        std::string reply = "called";
        for (const std::string& name : harness_.damage()) reply += " " + name;
        return reply;
    }

    std::string time(size_t flush_bytes, size_t cover_fills, const std::vector<uint64_t>& perturbations) {
        if (!timer_ || timer_->flush_bytes() != flush_bytes) timer_ = std::make_unique<Timer>(flush_bytes, l2_limit_);
        std::ostringstream reply;
        reply << std::fixed;
        reply.precision(4);
        reply << "timed " << perturbations.size();
        for (const uint64_t perturbation : perturbations) {
            const Timer::Sample sample = timer_->sample(harness_, call_, perturbation, cover_fills);
            reply << ' ' << sample.device_us << ' ' << sample.host_us << ' ' << sample.enqueue_us;
        }
        return reply.str();
    }

    std::string profile(const std::vector<uint64_t>& perturbations) {
        harness_.install(0);
        call_and_sync(harness_, call_);
        harness_.install(perturbations.empty() ? 0 : perturbations.front());
        check(cudaDeviceSynchronize(), "preparing the profiled call");
        check(cudaProfilerStart(), "starting the profiler");
        call_and_sync(harness_, call_);
        check(cudaProfilerStop(), "stopping the profiler");
        return "profiled";
    }

    PersistingL2Limit l2_limit_;
    std::unique_ptr<Timer> timer_;
    Harness& harness_;
    Call call_;
};

// The reply channel: whole lines, each with the nonce, written with one system call.
class Replies {
   public:
    explicit Replies(int file) : file_(file) {}
    void set_nonce(const std::string& nonce) { prefix_ = nonce + " "; }

    void send(std::string text) const {
        std::replace(text.begin(), text.end(), '\n', ' ');
        const std::string line = prefix_ + text + "\n";
        for (size_t at = 0; at < line.size();) {
            const ssize_t count = ::write(file_, line.data() + at, line.size() - at);
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) ::_exit(kExitError);  // the judge is gone
            at += static_cast<size_t>(count);
        }
    }

   private:
    int file_;
    std::string prefix_;
};

inline void serve(int argc, char** argv, Call call, Replies& replies) {
    const Job job = parse_job(argv[1]);
    replies.set_nonce(job.nonce);
    Harness harness(job);
    keep_freed_memory();
    replies.send("ready");
    Commands commands(harness, call);
    for (int i = 3; i < argc; ++i) replies.send(commands.run(argv[i]));
    if (argc > 3) return;
    for (std::string line; std::getline(std::cin, line) && line != "quit";) replies.send(commands.run(line));
}

inline int run(int argc, char** argv, Call call) {
    const int file = argc > 2 ? ::open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (file < 0) {
        std::fprintf(stderr, "usage: %s JOBFILE REPLYPATH [COMMAND...]\n", argc > 0 ? argv[0] : "harness");
        return 2;
    }
    Replies replies(file);
    try {
        serve(argc, argv, call, replies);
    } catch (const Error& error) {
        replies.send("error " + error.name() + " " + error.what());
        ::_exit(kExitError);  // a broken context must not hang in destructors
    } catch (const std::exception& error) {
        replies.send(std::string("error exception ") + error.what());
        ::_exit(kExitError);
    }
    return 0;
}

}  // namespace kb

#define KB_HARNESS(function) \
    int main(int argc, char** argv) { return kb::run(argc, argv, function); }

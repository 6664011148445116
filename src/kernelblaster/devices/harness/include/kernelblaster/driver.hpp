// The driver program: the host side of one candidate. It reads tensors, calls, times and writes bytes; it never
// sees an expected value and never judges. Host code only: compiled by the host compiler against the CUDA runtime.
//
//   PROGRAM JOBFILE REPLYPATH [COMMAND...]
//
// With COMMANDs each argument is one command line; without, they are read from stdin until `quit`. Replies go to
// REPLYPATH as lines that begin with the job's nonce, so that nothing a candidate prints can pass for a reply.
//
//   call BYTE       fill outputs with BYTE, call, synchronise, write outputs   -> called MUTATED_INPUTS...
//   time N FLUSH    time N calls, each with cold caches                        -> timed N device_us host_us ...
//   fetch           write outputs as the last call left them                   -> called MUTATED_INPUTS...
//   reload          copy the input files to the device again                   -> reloaded
//   profile         one warm-up call, then one call between profiler marks     -> profiled
//   quit            end
//
// A failure is answered with `error NAME MESSAGE` (NAME is a CUDA error name, or `driver`) and exit status 3.
#pragma once

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <kernelblaster/job.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

// Declared here because some CUDA distributions ship the runtime without cuda_profiler_api.h.
extern "C" cudaError_t CUDARTAPI cudaProfilerStart(void);
extern "C" cudaError_t CUDARTAPI cudaProfilerStop(void);

namespace kb {

constexpr size_t kChunkBytes = size_t{64} << 20;  // host memory used to compare or copy one piece of a tensor
constexpr size_t kGateBytes = size_t{32} << 20;   // memset that keeps the GPU busy while the call is being launched
constexpr int kExitError = 3;

// What a problem's driver.cpp sees: device pointers, sizes and scalars by name.
class Driver {
   public:
    explicit Driver(Job job) : job_(std::move(job)) {
        for (Tensor& tensor : job_.tensors) {
            check(cudaMalloc(&tensor.device, std::max<size_t>(tensor.bytes, 1)), "cudaMalloc of a tensor");
        }
        load_inputs();
    }

    void* input(const std::string& name) const { return find("input", name); }
    void* weight(const std::string& name) const { return find("weight", name); }
    void* output(const std::string& name) const { return find("output", name); }
    int64_t size(const std::string& name) const { return lookup(job_.sizes, "size", name); }
    float scalar(const std::string& name) const { return lookup(job_.scalars, "scalar", name); }

    void load_inputs() const {
        for (const Tensor& tensor : job_.tensors) {
            if (tensor.role == "output") continue;
            const MappedFile file(tensor.path, tensor.bytes, MappedFile::Mode::kRead);
            for (size_t at = 0; at < tensor.bytes; at += kChunkBytes) {
                const size_t count = std::min(kChunkBytes, tensor.bytes - at);
                check(cudaMemcpy(static_cast<char*>(tensor.device) + at, file.data() + at, count,
                                 cudaMemcpyHostToDevice),
                      "copying an input to the device");
            }
        }
    }

    void poison_outputs(int byte) const {
        for (const Tensor& tensor : job_.tensors) {
            if (tensor.role == "output" && tensor.bytes > 0) {
                check(cudaMemset(tensor.device, byte, tensor.bytes), "poisoning an output");
            }
        }
    }

    void write_outputs() const {
        for (const Tensor& tensor : job_.tensors) {
            if (tensor.role != "output") continue;
            const MappedFile file(tensor.path, tensor.bytes, MappedFile::Mode::kWrite);
            for (size_t at = 0; at < tensor.bytes; at += kChunkBytes) {
                const size_t count = std::min(kChunkBytes, tensor.bytes - at);
                check(cudaMemcpy(file.data() + at, static_cast<char*>(tensor.device) + at, count,
                                 cudaMemcpyDeviceToHost),
                      "copying an output from the device");
            }
        }
    }

    // Names of inputs and weights whose device bytes differ from their files.
    std::vector<std::string> mutated_inputs() const {
        std::vector<std::string> names;
        std::vector<char> chunk;
        for (const Tensor& tensor : job_.tensors) {
            if (tensor.role != "output" && differs(tensor, chunk)) names.push_back(tensor.name);
        }
        return names;
    }

   private:
    void* find(const char* role, const std::string& name) const {
        for (const Tensor& tensor : job_.tensors) {
            if (tensor.role == role && tensor.name == name) return tensor.device;
        }
        fail(std::string("the job has no ") + role + " named " + name);
    }

    template <typename T>
    static T lookup(const std::map<std::string, T>& table, const char* what, const std::string& name) {
        const auto found = table.find(name);
        if (found == table.end()) fail(std::string("the job has no ") + what + " named " + name);
        return found->second;
    }

    static bool differs(const Tensor& tensor, std::vector<char>& chunk) {
        const MappedFile file(tensor.path, tensor.bytes, MappedFile::Mode::kRead);
        chunk.resize(std::max(chunk.size(), std::min(kChunkBytes, tensor.bytes)));
        for (size_t at = 0; at < tensor.bytes; at += kChunkBytes) {
            const size_t count = std::min(kChunkBytes, tensor.bytes - at);
            check(cudaMemcpy(chunk.data(), static_cast<char*>(tensor.device) + at, count, cudaMemcpyDeviceToHost),
                  "copying an input from the device");
            if (std::memcmp(chunk.data(), file.data() + at, count) != 0) return true;
        }
        return false;
    }

    Job job_;
};

using Call = void (*)(Driver&);

inline void call_and_sync(Driver& driver, Call call) {
    call(driver);
    check(cudaGetLastError(), "launching the candidate");
    check(cudaDeviceSynchronize(), "running the candidate");
}

// Times calls by two clocks. The flush is finished before the host clock starts, so that work a candidate puts on
// another stream cannot hide behind it; a memset of a few microseconds then covers the launch latency of the call.
// Both clocks are read after a device-wide synchronisation: work outside the default stream shows as host time.
class Timer {
   public:
    explicit Timer(size_t flush_bytes) : flush_bytes_(flush_bytes) {
        check(cudaEventCreate(&start_), "creating an event");
        check(cudaEventCreate(&stop_), "creating an event");
        if (flush_bytes_ > 0) check(cudaMalloc(&flush_, flush_bytes_), "cudaMalloc of the flush buffer");
    }
    ~Timer() {
        cudaFree(flush_);
        cudaEventDestroy(start_);
        cudaEventDestroy(stop_);
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    struct Sample {
        double device_us, host_us;
    };

    Sample sample(Driver& driver, Call call) {
        using Clock = std::chrono::steady_clock;
        driver.poison_outputs(0xFF);
        flush();
        const auto begin = Clock::now();
        gate();
        check(cudaEventRecord(start_, cudaStreamLegacy), "recording the start");
        call(driver);
        check(cudaEventRecord(stop_, cudaStreamLegacy), "recording the end");
        check(cudaDeviceSynchronize(), "running the candidate");
        const std::chrono::duration<double, std::micro> host = Clock::now() - begin;
        check(cudaGetLastError(), "launching the candidate");
        float device_ms = 0.0f;
        check(cudaEventElapsedTime(&device_ms, start_, stop_), "reading the events");
        return {device_ms * 1e3, host.count()};
    }

   private:
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

    void gate() {
        if (flush_bytes_ == 0) return;
        const size_t bytes = std::min(kGateBytes, flush_bytes_);
        char* tail = static_cast<char*>(flush_) + (flush_bytes_ - bytes);  // the part that L2 still holds
        check(cudaMemsetAsync(tail, 0xA5, bytes, cudaStreamLegacy), "covering launch latency");
    }

    size_t flush_bytes_;
    void* flush_ = nullptr;
    cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

// Runs command lines; returns the reply without the nonce.
class Commands {
   public:
    Commands(Driver& driver, Call call) : driver_(driver), call_(call) {}

    std::string run(const std::string& line) {
        std::istringstream words(line);
        std::string command;
        words >> command;
        if (command == "call") return call(argument<int>(words, line));
        if (command == "fetch") return fetch();
        if (command == "time") {
            const auto count = argument<size_t>(words, line);
            return time(count, argument<size_t>(words, line));
        }
        if (command == "profile") return profile();
        if (command == "reload") {
            driver_.load_inputs();
            return "reloaded";
        }
        fail("unknown command: " + line);
    }

   private:
    template <typename T>
    static T argument(std::istringstream& words, const std::string& line) {
        T value{};
        if (!(words >> value)) fail("malformed command: " + line);
        return value;
    }

    std::string call(int poison) {
        driver_.poison_outputs(poison);
        call_and_sync(driver_, call_);
        return fetch();
    }

    std::string fetch() {
        driver_.write_outputs();
        std::string reply = "called";
        for (const std::string& name : driver_.mutated_inputs()) reply += " " + name;
        return reply;
    }

    std::string time(size_t count, size_t flush_bytes) {
        Timer timer(flush_bytes);
        std::ostringstream reply;
        reply << std::fixed;
        reply.precision(4);
        reply << "timed " << count;
        for (size_t i = 0; i < count; ++i) {
            const Timer::Sample sample = timer.sample(driver_, call_);
            reply << ' ' << sample.device_us << ' ' << sample.host_us;
        }
        return reply.str();
    }

    std::string profile() {
        call_and_sync(driver_, call_);
        check(cudaProfilerStart(), "starting the profiler");
        call_and_sync(driver_, call_);
        check(cudaProfilerStop(), "stopping the profiler");
        return "profiled";
    }

    Driver& driver_;
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
    Job job = parse_job(argv[1]);
    replies.set_nonce(job.nonce);
    Driver driver(std::move(job));
    replies.send("ready");
    Commands commands(driver, call);
    for (int i = 3; i < argc; ++i) replies.send(commands.run(argv[i]));
    if (argc > 3) return;
    for (std::string line; std::getline(std::cin, line) && line != "quit";) replies.send(commands.run(line));
}

inline int run(int argc, char** argv, Call call) {
    const int file = argc > 2 ? ::open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (file < 0) {
        std::fprintf(stderr, "usage: %s JOBFILE REPLYPATH [COMMAND...]\n", argc > 0 ? argv[0] : "driver");
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

#define KB_DRIVER(function) \
    int main(int argc, char** argv) { return kb::run(argc, argv, function); }

// The harness program: the host side of one candidate. It copies tensors to the device, loads the candidate, calls it,
// times it and writes bytes; it never sees an expected value and never judges. Host code only: compiled by the host
// compiler against the CUDA runtime, with a C++ library of its own that a candidate does not share.
//
//   PROGRAM < SOCKET
//
// Its standard input is a socket (SOCK_SEQPACKET) to the judge; protocol.hpp says what goes over it. What is opened,
// is opened before a candidate's first instruction; from then on the process is contained (containment.hpp), and files
// come as descriptors. Each timed call is asked for by itself: nothing tells how many are to come.
//
// Calls are made on the values of the files but for timed ones and those of a profile or a batch: these find other
// values at other addresses, as perturbation.hpp says. The calls of a batch have a slot each: values, addresses and
// outputs that are theirs alone, so that no call of it can be left out unseen.
#pragma once

#include <cuda_runtime_api.h>
#include <kernelblaster/buffer.hpp>
#include <kernelblaster/containment.hpp>
#include <kernelblaster/harness.hpp>
#include <kernelblaster/job.hpp>
#include <kernelblaster/profiler_warmup.hpp>
#include <kernelblaster/protected_memory.hpp>
#include <kernelblaster/timer.hpp>
#include <pthread.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

// Of deferred.cpp. The first loads one more shared object without running anything of it, and tells why it cannot, or
// null; the third runs the initialisers of one. The one that was initialised or chosen last is called.
extern "C" __attribute__((weak, visibility("hidden"))) const char* kb_load_candidate(const char* path);
extern "C" __attribute__((weak, visibility("hidden"))) size_t kb_candidates();
extern "C" __attribute__((weak, visibility("hidden"))) void kb_initialise_candidate(size_t index);
extern "C" __attribute__((weak, visibility("hidden"))) void kb_choose_candidate(size_t index);

namespace kb {

constexpr int kPoison = 0xFF, kOtherPoison = 0x5B;
constexpr size_t kMostMessage = 2000;  // characters of an error
constexpr size_t kShareOfTurn = 16;    // of free memory, what one more arena for all tensors takes at most

// The tensors of a job on the device, and what a driver is given of them.
class LoadedJob : public Harness {
   public:
    explicit LoadedJob(Job job)
        : weights_(static_cast<void**>(std::calloc(job.tensors.size() + 1, sizeof(void*))), &std::free),
          sizes_(std::move(job.sizes)), scalars_(std::move(job.scalars)) {
        for (size_t i = 0; i < job.tensors.size(); ++i) {
            buffers_.emplace_back(std::move(job.tensors[i]), std::move(job.files[i]), i);
        }
        if (!weights_) fail("no memory for the pointers of the weights");
        load_inputs();
    }
    virtual ~LoadedJob() = default;

    void* input(const std::string& name) override { return find("input", name); }
    void* weight(const std::string& name) override { return find("weight", name); }
    void* output(const std::string& name) override { return find("output", name); }
    void* const* weights() override {
        size_t count = 0;
        for (const Buffer& buffer : buffers_) {
            if (buffer.tensor().role == "weight") weights_.get()[count++] = buffer.device();
        }
        return weights_.get();
    }
    int64_t size(const std::string& name) override { return lookup(sizes_, "size", name); }
    float scalar(const std::string& name) override { return lookup(scalars_, "scalar", name); }

    // The values that a process is given first lie at no better address than the contract says, the next at good ones,
    // and so on in turns: what a candidate does at good addresses alone is judged with other sizes and parameters, too.
    void load_inputs() {
        for (Buffer& buffer : buffers_) buffer.load(exchanges_ % 2 == 1);
    }

    // Other files for inputs and weights, from the tensor `first` on; a set of many files comes in ascending parts.
    void exchange(size_t first, Descriptors& files) {
        if (first <= last_) ++exchanges_;
        last_ = first;
        size_t used = 0;
        for (size_t i = first; i < buffers_.size() && used < files.size(); ++i) {
            if (!buffers_[i].output()) buffers_[i].exchange(File(files.release(used++)));
        }
    }

    // Puts all tensors where and how the perturbation has them, outputs poisoned.
    virtual void install(uint64_t perturbation, size_t slot = 0) {
        for (Buffer& buffer : buffers_) buffer.install(perturbation, slot);
        poison_outputs(perturbation % 2 == 0 ? kPoison : kOtherPoison);
    }

    // Slots in which timed calls find their tensors in turns, so that what a call leaves in L2 by a policy that outlives the
    // flush is not what the next one reads: two where memory is plenty.
    size_t turns() const {
        size_t bytes = 0, free = 0, total = 0;
        for (const Buffer& buffer : buffers_) bytes += buffer.arena_bytes();
        check(cudaMemGetInfo(&free, &total), "asking for free memory");
        return bytes <= free / kShareOfTurn ? 2 : 1;
    }

    // Calls find what was installed in a slot.
    void select(uint64_t perturbation, size_t slot) {
        for (Buffer& buffer : buffers_) buffer.select(perturbation, slot);
    }

    void poison_outputs(int byte) const {
        for (const Buffer& buffer : buffers_) {
            if (buffer.output()) buffer.poison(byte);
        }
    }

    void write_outputs(const Descriptors& files) {
        size_t used = 0;
        for (const Buffer& buffer : buffers_) {
            if (buffer.output()) buffer.write(files[used++], staging_);
        }
    }

    // Appends the inputs and weights whose device bytes changed, and tensors next to which something was written.
    void report_damage(PacketBuilder& reply) {
        std::vector<std::pair<uint32_t, uint8_t>> found;
        for (size_t i = 0; i < buffers_.size(); ++i) {
            const auto index = static_cast<uint32_t>(i);
            if (!buffers_[i].output() && buffers_[i].mutated(staging_)) found.emplace_back(index, 0);
            if (buffers_[i].overrun()) found.emplace_back(index, 1);
        }
        reply.put(static_cast<uint32_t>(found.size()));
        for (const auto& [index, around] : found) reply.put(index).put(around);
    }

    // Why the job cannot serve driver.cpp; empty when nothing was asked for in vain.
    const std::string& refusal() const { return refusal_; }

   private:
    [[noreturn]] void refuse(const std::string& what, const std::string& name) {
        refusal_ = "driver.cpp asks for a " + what + " named " + name + ", which the problem does not have";
        raise("driver", refusal_);
    }

    void* find(const char* role, const std::string& name) {
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
    size_t exchanges_ = 0, last_ = SIZE_MAX;
    // For a candidate to read, and so not from operator new: see protected_memory.hpp.
    std::unique_ptr<void*, decltype(&std::free)> weights_;
    std::map<std::string, int64_t> sizes_;
    std::map<std::string, float> scalars_;
    std::string refusal_;
};

using Call = void (*)(Harness&);

// The first characters of a message that a candidate may have written.
inline std::string beginning(const char* text) { return std::string(text, ::strnlen(text, kMostMessage)); }

// How a candidate failed, in the words of an `error` reply.
struct Failure {
    std::string name, message;
    bool happened() const { return !name.empty(); }
};

inline void require_success(const Failure& failure) {
    if (failure.happened()) raise(failure.name, failure.message);
}

// Runs the candidate. What it throws is never taken for an error of the harness, whatever its type and text.
template <typename Part>
Failure run_candidate(LoadedJob& job, Part call) {
    try {
        call(job);
        // It may have asked for an end of this thread, which the C library grants in the middle of many calls.
        ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    } catch (const std::exception& error) {
        if (!job.refusal().empty()) throw Error("driver", job.refusal());
        return {"exception", beginning(error.what())};
    } catch (...) {
        return {"exception", "the candidate threw something"};
    }
    const char* thrown = kb_thrown != nullptr ? kb_thrown() : nullptr;
    return thrown == nullptr ? Failure{} : Failure{"exception", beginning(thrown)};
}

inline Failure failure_of(cudaError_t status, const char* action) {
    if (status == cudaSuccess) return {};
    return {cudaGetErrorName(status), std::string(action) + ": " + cudaGetErrorString(status)};
}

inline Failure call_and_sync(LoadedJob& job, Call call) {
    if (Failure failure = run_candidate(job, call); failure.happened()) return failure;
    if (Failure failure = failure_of(cudaGetLastError(), "launching the candidate"); failure.happened()) return failure;
    return failure_of(cudaDeviceSynchronize(), "running the candidate");
}

// What the runtime and the driver open at their first use: nothing can be opened later. The pool behind
// cudaMallocAsync keeps what a call frees; otherwise it is unmapped when the device is next waited for: after the call,
// where the host clock still runs, and mapped again in the next one.
inline void prepare_runtime() {
    Helpers::get();
    cudaMemPool_t pool = nullptr;
    uint64_t all = UINT64_MAX;
    void* memory = nullptr;
    const bool pooled = cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess &&
                        cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all) == cudaSuccess &&
                        cudaMallocAsync(&memory, size_t{1} << 20, cudaStreamLegacy) == cudaSuccess &&
                        cudaFreeAsync(memory, cudaStreamLegacy) == cudaSuccess;
    if (!pooled) cudaGetLastError();  // a GPU without pools; clear the sticky copy of the status
    check(cudaDeviceSynchronize(), "preparing the runtime");
}

}  // namespace kb

#include <kernelblaster/server.hpp>

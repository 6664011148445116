// Device memory of one tensor: its pristine values, and an arena in which every timed call finds them anew.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <kernelblaster/job.hpp>
#include <kernelblaster/parts.hpp>
#include <kernelblaster/perturbation.hpp>
#include <utility>
#include <vector>

namespace kb {

constexpr size_t kChunkBytes = size_t{16} << 20; // of a tensor that are copied or compared at a time
constexpr size_t kAlteredBytes = size_t{64} << 10; // that are altered at a time to be compared
constexpr size_t kGuardBytes = 512;               // before and after a tensor in its arena; nobody may write there

// Page-locked host memory through which tensors leave the device: a copy into it runs at the link's full speed, and it
// is used again and again, while fresh memory costs a page fault for every 4 KiB. Two halves: one is read by the host
// while the device fills the other. Where the system has none to lock at the moment, ordinary memory serves, slower.
class Staging {
   public:
    Staging() {
        if (cudaMallocHost(&memory_, 2 * kChunkBytes) != cudaSuccess) {
            cudaGetLastError(); // it is dealt with, and no later call's
            memory_ = std::malloc(2 * kChunkBytes);
            check(memory_ == nullptr ? cudaErrorMemoryAllocation : cudaSuccess, "staging memory");
        }
        for (cudaEvent_t& event : filled_) check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
    }
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    // Calls use(at, bytes_at, count) for the pieces of device memory in order, until it returns false.
    template <typename Use>
    void each(const char* device, size_t bytes, Use use) {
        const size_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
        for (size_t i = 0; i <= chunks; ++i) {
            if (i < chunks) fill(i % 2, device + i * kChunkBytes, std::min(kChunkBytes, bytes - i * kChunkBytes));
            if (i == 0) continue;
            const size_t at = (i - 1) * kChunkBytes;
            check(cudaEventSynchronize(filled_[(i - 1) % 2]), "copying from the device");
            if (!use(at, half((i - 1) % 2), std::min(kChunkBytes, bytes - at))) break;
        }
        check(cudaStreamSynchronize(cudaStreamLegacy), "copying from the device");
    }

   private:
    char* half(size_t index) const { return static_cast<char*>(memory_) + index * kChunkBytes; }

    void fill(size_t index, const char* from, size_t count) {
        check(cudaMemcpyAsync(half(index), from, count, cudaMemcpyDeviceToHost, cudaStreamLegacy),
              "copying from the device");
        check(cudaEventRecord(filled_[index], cudaStreamLegacy), "recording an event");
    }

    void* memory_ = nullptr;
    cudaEvent_t filled_[2] = {};
};

class Buffer {
   public:
    // `file` holds the values of an input or weight; outputs have none.
    Buffer(Tensor tensor, File file, size_t index) : tensor_(std::move(tensor)), file_(std::move(file)), index_(index) {
        make_room(lead_of(index));
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    Buffer(Buffer&&) = default;

    const Tensor& tensor() const { return tensor_; }
    void* device() const { return device_; }
    bool output() const { return tensor_.output(); }
    size_t arena_bytes() const { return tensor_.bytes + slack_for(tensor_.bytes) + 2 * kGuardBytes; }

    // Other values from now on; `load` brings them to the device.
    void exchange(File file) { file_ = std::move(file); }

    // Copies the file to the device, and stands for perturbation 0 again: at a multiple of 512 bytes, or where the
    // contract allows it and no better.
    void load(bool aligned) {
        perturbation_ = 0;
        make_room(aligned ? kMostLead : lead_of(index_));
        if (output()) return;
        const MappedFile file = values();
        for (size_t at = 0; at < tensor_.bytes; at += kChunkBytes) {
            upload(base_ + at, file.data() + at, std::min(kChunkBytes, tensor_.bytes - at));
        }
        if (altered_ != nullptr) load_altered(file);
    }

    // Puts the tensor, as the perturbation has it, at the perturbation's place in the arena of a slot; asynchronous, on
    // the legacy stream.
    void install(uint64_t perturbation, size_t slot = 0) {
        perturbation_ = perturbation;
        device_ = base_;
        if (perturbation == 0) {
            set(memory_, guard(), lead_);
            return;
        }
        while (arenas_.size() <= slot) arenas_.push_back(make_arena());
        device_ = arenas_[slot] + kGuardBytes + place(index_, perturbation, slack_for(tensor_.bytes));
        set(device_ - kGuardBytes, guard(), kGuardBytes);
        set(device_ + tensor_.bytes, guard(), kGuardBytes);
        if (output()) return;
        for (const Piece& piece : pieces(tensor_, index_, perturbation)) {
            if (piece.altered && altered_ == nullptr) {
                altered_ = allocate(tensor_.bytes, "cudaMalloc of altered values");
                load_altered(values());
            }
            const char* from = (piece.altered ? altered_ : base_) + piece.from;
            check(cudaMemcpyAsync(device_ + piece.to, from, piece.bytes, cudaMemcpyDeviceToDevice, cudaStreamLegacy),
                  "preparing an input");
        }
    }

    // Stands for what was installed in a slot again.
    void select(uint64_t perturbation, size_t slot) {
        perturbation_ = perturbation;
        device_ = arenas_.at(slot) + kGuardBytes + place(index_, perturbation, slack_for(tensor_.bytes));
    }

    void poison(int byte) const { set(device_, byte, tensor_.bytes); }

    // Writes the device's bytes to a file that has the tensor's size.
    void write(int to, Staging& staging) const {
        const MappedFile file(to, tensor_.bytes, MappedFile::Mode::kWrite);
        staging.each(device_, tensor_.bytes, [&](size_t at, const char* held, size_t count) {
            in_parts(count, [&](size_t from, size_t part) { std::memcpy(file.data() + at + from, held + from, part); });
            return true;
        });
    }

    // Whether the device bytes of an input differ from what was put there.
    bool mutated(Staging& staging) const {
        const MappedFile file = values();
        std::atomic<bool> same{true};
        for (const Piece& piece : pieces(tensor_, index_, perturbation_)) {
            staging.each(device_ + piece.to, piece.bytes, [&](size_t at, const char* held, size_t count) {
                const char* wanted = file.data() + piece.from + at;
                in_parts(count, [&](size_t from, size_t part) {
                    if (!holds(held + from, wanted + from, part, piece.altered)) same = false;
                });
                return same.load();
            });
        }
        return !same;
    }

    // Whether bytes around the tensor were written to; beyond its end only known in the arena.
    bool overrun() const {
        const size_t before = perturbation_ == 0 ? lead_ : kGuardBytes;
        const size_t behind = perturbation_ == 0 ? 0 : kGuardBytes;
        char bytes[kMostLead + kGuardBytes];
        download(bytes, device_ - before, before);
        download(bytes + before, device_ + tensor_.bytes, behind);
        return std::any_of(bytes, bytes + before + behind,
                           [this](char byte) { return static_cast<unsigned char>(byte) != guard(); });
    }

   private:
    MappedFile values() const { return MappedFile(file_.get(), tensor_.bytes, MappedFile::Mode::kRead); }

    static char* allocate(size_t bytes, const char* what) {
        void* memory = nullptr;
        check(cudaMalloc(&memory, bytes), what);
        return static_cast<char*>(memory);
    }

    static void set(char* to, int byte, size_t bytes) {
        if (bytes > 0) check(cudaMemsetAsync(to, byte, bytes, cudaStreamLegacy), "filling memory");
    }

    static void download(char* to, const char* from, size_t bytes) {
        if (bytes > 0) check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copying from the device");
    }

    static void upload(char* to, const char* from, size_t bytes) {
        if (bytes > 0) check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copying an input to the device");
    }

    void load_altered(const MappedFile& file) const {
        std::vector<char> values(std::min(kChunkBytes, tensor_.bytes));
        for (size_t at = 0; at < tensor_.bytes; at += kChunkBytes) {
            const size_t count = std::min(kChunkBytes, tensor_.bytes - at);
            in_parts(count, [&](size_t from, size_t part) {
                std::memcpy(values.data() + from, file.data() + at + from, part);
                alter(values.data() + from, part, tensor_);
            });
            upload(altered_ + at, values.data(), count);
        }
    }

    // Whether `held` is what the file has, or altered as a perturbation does.
    bool holds(const char* held, const char* wanted, size_t count, bool altered) const {
        if (!altered) return std::memcmp(held, wanted, count) == 0;
        std::vector<char> values(std::min(count, kAlteredBytes));
        for (size_t at = 0; at < count; at += kAlteredBytes) {
            const size_t part = std::min(kAlteredBytes, count - at);
            std::memcpy(values.data(), wanted + at, part);
            alter(values.data(), part, tensor_);
            if (std::memcmp(held + at, values.data(), part) != 0) return false;
        }
        return true;
    }

    // Has the tensor lie so many bytes into memory of its own, which ends with it: what is written behind it is seen.
    void make_room(size_t lead) {
        if (memory_ == nullptr || lead != lead_) {
            check(cudaFree(memory_), "cudaFree of a tensor");
            memory_ = allocate(lead + std::max<size_t>(tensor_.bytes, 1), "cudaMalloc of a tensor");
            lead_ = lead;
        }
        device_ = base_ = memory_ + lead_;
    }

    char* make_arena() const {
        return allocate(arena_bytes(), "cudaMalloc of an arena");
    }

    int guard() const { return static_cast<int>(draw(perturbation_, index_, Draw::kGuard) & 0xFF); }

    Tensor tensor_;
    File file_;
    size_t index_;
    size_t lead_ = 0;
    uint64_t perturbation_ = 0;
    char *memory_ = nullptr, *base_ = nullptr, *altered_ = nullptr, *device_ = nullptr;
    std::vector<char*> arenas_;
};

}  // namespace kb

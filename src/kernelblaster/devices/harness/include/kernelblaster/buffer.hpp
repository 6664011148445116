// Device memory of one tensor: its pristine values, and an arena in which every timed call finds them anew.
#pragma once

#include <cuda_runtime_api.h>

#include <kernelblaster/job.hpp>
#include <kernelblaster/variant.hpp>
#include <utility>
#include <vector>

namespace kb {

constexpr size_t kChunkBytes = size_t{64} << 20;  // host memory used to compare or copy one piece of a tensor
constexpr size_t kGuardBytes = 512;               // before and after a tensor in its arena; nobody may write there

class Buffer {
   public:
    Buffer(Tensor tensor, size_t index) : tensor_(std::move(tensor)), index_(index) {
        base_ = allocate(std::max<size_t>(tensor_.bytes, 1), "cudaMalloc of a tensor");
        device_ = base_;
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    Buffer(Buffer&&) = default;

    const Tensor& tensor() const { return tensor_; }
    void* device() const { return device_; }
    bool output() const { return tensor_.role == "output"; }

    // Copies the file to the device, and stands for variant 0 again.
    void load() {
        variant_ = 0;
        device_ = base_;
        if (output()) return;
        const MappedFile file(tensor_.path, tensor_.bytes, MappedFile::Mode::kRead);
        upload(base_, file.data());
        if (halves_ != nullptr) load_halves(file);
    }

    // Puts the tensor, as the variant has it, at the variant's place; asynchronous, on the legacy stream.
    void install(uint64_t variant) {
        variant_ = variant;
        device_ = base_;
        if (variant == 0) return;
        if (arena_ == nullptr) make_arena();
        device_ = arena_ + kGuardBytes + place(index_, variant, slack_for(tensor_.bytes));
        set(device_ - kGuardBytes, guard(), kGuardBytes);
        set(device_ + tensor_.bytes, guard(), kGuardBytes);
        if (output()) return;
        for (const Piece& piece : pieces(tensor_, index_, variant)) {
            if (piece.halved && halves_ == nullptr) {
                halves_ = allocate(tensor_.bytes, "cudaMalloc of halved values");
                load_halves(MappedFile(tensor_.path, tensor_.bytes, MappedFile::Mode::kRead));
            }
            const char* from = (piece.halved ? halves_ : base_) + piece.from;
            check(cudaMemcpyAsync(device_ + piece.to, from, piece.bytes, cudaMemcpyDeviceToDevice, cudaStreamLegacy),
                  "preparing an input");
        }
    }

    void poison(int byte) const { set(device_, byte, tensor_.bytes); }

    void write_file() const {
        const MappedFile file(tensor_.path, tensor_.bytes, MappedFile::Mode::kWrite);
        for (size_t at = 0; at < tensor_.bytes; at += kChunkBytes) {
            download(file.data() + at, device_ + at, std::min(kChunkBytes, tensor_.bytes - at));
        }
    }

    // Whether the device bytes of an input differ from what was put there.
    bool mutated() const {
        const MappedFile file(tensor_.path, tensor_.bytes, MappedFile::Mode::kRead);
        std::vector<char> held, expected;
        for (const Piece& piece : pieces(tensor_, index_, variant_)) {
            for (size_t at = 0; at < piece.bytes; at += kChunkBytes) {
                const size_t count = std::min(kChunkBytes, piece.bytes - at);
                held.resize(std::max(held.size(), count));
                download(held.data(), device_ + piece.to + at, count);
                const char* wanted = file.data() + piece.from + at;
                if (piece.halved) {
                    expected.assign(wanted, wanted + count);
                    halve(expected.data(), count, tensor_.dtype);
                    wanted = expected.data();
                }
                if (std::memcmp(held.data(), wanted, count) != 0) return true;
            }
        }
        return false;
    }

    // Whether bytes around the tensor were written to; only known in the arena.
    bool overrun() const {
        if (variant_ == 0) return false;
        char bytes[2 * kGuardBytes];
        download(bytes, device_ - kGuardBytes, kGuardBytes);
        download(bytes + kGuardBytes, device_ + tensor_.bytes, kGuardBytes);
        return std::any_of(std::begin(bytes), std::end(bytes),
                           [this](char byte) { return static_cast<unsigned char>(byte) != guard(); });
    }

   private:
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

    void upload(char* to, const char* from) const {
        for (size_t at = 0; at < tensor_.bytes; at += kChunkBytes) {
            check(cudaMemcpy(to + at, from + at, std::min(kChunkBytes, tensor_.bytes - at), cudaMemcpyHostToDevice),
                  "copying an input to the device");
        }
    }

    void load_halves(const MappedFile& file) const {
        std::vector<char> values(file.data(), file.data() + tensor_.bytes);
        halve(values.data(), values.size(), tensor_.dtype);
        upload(halves_, values.data());
    }

    void make_arena() {
        arena_ = allocate(tensor_.bytes + slack_for(tensor_.bytes) + 2 * kGuardBytes, "cudaMalloc of an arena");
    }

    int guard() const { return static_cast<int>(draw(variant_, index_, Draw::kGuard) & 0xFF); }

    Tensor tensor_;
    size_t index_;
    uint64_t variant_ = 0;
    char *base_ = nullptr, *halves_ = nullptr, *arena_ = nullptr, *device_ = nullptr;
};

}  // namespace kb

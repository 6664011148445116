// What the harness program is told: sizes, scalars and tensors, which come as packets with the inputs' files.
#pragma once

#include <kernelblaster/errors.hpp>
#include <kernelblaster/protocol.hpp>
#include <kernelblaster/wire.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kb {

// A tensor's file, mapped. The judge has given it the tensor's size.
class MappedFile {
   public:
    enum class Mode { kRead, kWrite };

    MappedFile(int file, size_t bytes, Mode mode) : bytes_(bytes) {
        struct stat status {};
        // Not by the C library's fstat: that is newfstatat, which could look at any path, and is refused.
        if (::syscall(SYS_fstat, file, &status) != 0 || static_cast<size_t>(status.st_size) != bytes_) {
            fail("a tensor's file does not have the tensor's size");
        }
        if (bytes_ == 0) return;
        const int protection = mode == Mode::kWrite ? PROT_READ | PROT_WRITE : PROT_READ;
        data_ = ::mmap(nullptr, bytes_, protection, MAP_SHARED, file, 0);
        if (data_ == MAP_FAILED) fail(std::string("cannot map a tensor's file: ") + std::strerror(errno));
    }
    ~MappedFile() {
        if (data_ != nullptr) ::munmap(data_, bytes_);
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    char* data() const { return static_cast<char*>(data_); }

   private:
    void* data_ = nullptr;
    size_t bytes_;
};

// A descriptor that is closed with its owner.
class File {
   public:
    explicit File(int descriptor = -1) : descriptor_(descriptor) {}
    File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    File& operator=(File&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (descriptor_ >= 0) close_file(descriptor_);
    }
    int get() const { return descriptor_; }

   private:
    int descriptor_;
};

// `change` says what a perturbation may do to its values: `fixed`, `scale`, `shift`, `rotate` or
// `mirror`, and `mirror` is the sum of the bounds between which values are mirrored (see perturbation.hpp).
struct Tensor {
    std::string role, name, dtype, change;
    int64_t mirror = 0;
    size_t element_bytes = 0, bytes = 0;
    bool output() const { return role == "output"; }
};

struct Job {
    std::map<std::string, int64_t> sizes;
    std::map<std::string, float> scalars;
    std::vector<Tensor> tensors;
    std::vector<File> files;  // of inputs and weights; outputs have none
};

inline size_t element_bytes(const std::string& dtype) {
    struct Width {
        const char* dtype;
        size_t bytes;
    };
    static constexpr Width kWidths[] = {
        {"float64", 8}, {"float32", 4}, {"float16", 2}, {"bfloat16", 2}, {"float8_e4m3fn", 1}, {"float8_e5m2", 1},
        {"int64", 8},   {"int32", 4},   {"int16", 2},   {"int8", 1},     {"uint8", 1},         {"bool", 1}};
    for (const Width& one : kWidths) {
        if (dtype == one.dtype) return one.bytes;
    }
    fail("unknown dtype " + dtype);
}

inline Tensor take_tensor(Packet& packet) {
    Tensor tensor;
    tensor.role = packet.take_text();
    tensor.name = packet.take_text();
    tensor.dtype = packet.take_text();
    tensor.change = packet.take_text();
    tensor.mirror = packet.take<int64_t>();
    tensor.bytes = tensor.element_bytes = element_bytes(tensor.dtype);
    for (const int64_t extent : packet.take_list<int64_t>()) {
        if (extent < 0) fail("a negative extent of " + tensor.name);
        tensor.bytes *= static_cast<size_t>(extent);
    }
    const bool known = tensor.change == "fixed" || tensor.change == "scale" || tensor.change == "shift" ||
                       tensor.change == "rotate" || tensor.change == "mirror";
    if (!known) fail("unknown change of " + tensor.name + ": " + tensor.change);
    return tensor;
}

// The packets that describe a job, from the one that begins it.
inline Job receive_job(Channel& channel) {
    Packet first = channel.receive();
    if (first.take<uint8_t>() != static_cast<uint8_t>(HarnessRequest::job)) fail("the first packet describes no job");
    Job job;
    for (auto left = first.take<uint32_t>(); left > 0; --left) {
        const std::string name = first.take_text();
        job.sizes[name] = first.take<int64_t>();
    }
    for (auto left = first.take<uint32_t>(); left > 0; --left) {
        const std::string name = first.take_text();
        job.scalars[name] = static_cast<float>(first.take<double>());
    }
    const auto count = first.take<uint32_t>();
    while (job.tensors.size() < count) {
        Packet packet = channel.receive();
        if (packet.take<uint8_t>() != static_cast<uint8_t>(HarnessRequest::tensors)) fail("tensors are missing");
        size_t used = 0;
        while (packet.left() > 0) {
            job.tensors.push_back(take_tensor(packet));
            const bool output = job.tensors.back().output();
            job.files.emplace_back(output ? -1 : packet.files.release(used++));
        }
    }
    return job;
}

}  // namespace kb

// What the harness program is told: the job file, its tensors and their memory-mapped files; and its error type.
#pragma once

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kb {

// Carries the NAME and MESSAGE of an `error` reply.
class Error : public std::runtime_error {
   public:
    Error(std::string name, const std::string& message) : std::runtime_error(message), name_(std::move(name)) {}
    const std::string& name() const { return name_; }

   private:
    std::string name_;
};

[[noreturn]] inline void fail(const std::string& message) { throw Error("harness", message); }

inline void check(cudaError_t status, const char* action) {
    if (status != cudaSuccess) {
        throw Error(cudaGetErrorName(status), std::string(action) + ": " + cudaGetErrorString(status));
    }
}

// A tensor's file, mapped. Inputs are mapped for reading; outputs are created with their exact size for writing.
class MappedFile {
   public:
    enum class Mode { kRead, kWrite };

    MappedFile(const std::string& path, size_t bytes, Mode mode) : bytes_(bytes) {
        const bool write = mode == Mode::kWrite;
        const int file = ::open(path.c_str(), write ? O_RDWR | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0600);
        if (file < 0) fail("cannot open " + path + ": " + std::strerror(errno));
        if (!fits(file, write)) {
            ::close(file);
            fail(path + (write ? " cannot be given" : " does not have") + " the tensor's size");
        }
        if (bytes_ > 0) {
            data_ = ::mmap(nullptr, bytes_, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
        }
        ::close(file);
        if (data_ == MAP_FAILED) fail("cannot map " + path + ": " + std::strerror(errno));
    }
    ~MappedFile() {
        if (data_ != nullptr && data_ != MAP_FAILED) ::munmap(data_, bytes_);
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    char* data() const { return static_cast<char*>(data_); }

   private:
    bool fits(int file, bool write) const {
        if (write) return ::ftruncate(file, static_cast<off_t>(bytes_)) == 0;
        struct stat info;
        return ::fstat(file, &info) == 0 && static_cast<size_t>(info.st_size) == bytes_;
    }

    void* data_ = nullptr;
    size_t bytes_;
};

// `change` says what a perturbation may do to its values: `fixed`, `scale`, `shift` or `rotate` (see perturbation.hpp).
struct Tensor {
    std::string role, name, dtype, change, path;
    size_t element_bytes = 0, bytes = 0;
};

struct Job {
    std::string nonce;
    std::map<std::string, int64_t> sizes;
    std::map<std::string, float> scalars;
    std::vector<Tensor> tensors;
};

inline size_t element_bytes(const std::string& dtype) {
    static const std::map<std::string, size_t> table = {
        {"float64", 8}, {"float32", 4}, {"float16", 2}, {"bfloat16", 2}, {"float8_e4m3fn", 1}, {"float8_e5m2", 1},
        {"int64", 8},   {"int32", 4},   {"int16", 2},   {"int8", 1},     {"uint8", 1},         {"bool", 1}};
    const auto found = table.find(dtype);
    if (found == table.end()) fail("unknown dtype " + dtype);
    return found->second;
}

inline Tensor parse_tensor(std::istringstream& words) {
    Tensor tensor;
    int dimensions = -1;
    words >> tensor.role >> tensor.name >> tensor.dtype >> tensor.change >> dimensions;
    tensor.bytes = tensor.element_bytes = element_bytes(tensor.dtype);
    for (int i = 0; i < dimensions; ++i) {
        size_t extent = 0;
        words >> extent;
        tensor.bytes *= extent;
    }
    std::getline(words >> std::ws, tensor.path);  // the rest of the line: a path may hold blanks
    const bool known = tensor.change == "fixed" || tensor.change == "scale" || tensor.change == "shift" ||
                       tensor.change == "rotate";
    if (!words || dimensions < 0 || tensor.path.empty() || !known) fail("malformed tensor line for " + tensor.name);
    return tensor;
}

inline Job parse_job(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    if (!std::getline(file, line) || line != "kernelblaster-job-3") fail(path + " is not a kernelblaster-job-3 file");
    Job job;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string key, name;
        words >> key;
        if (key == "nonce") {
            words >> job.nonce;
        } else if (key == "size") {
            words >> name;
            words >> job.sizes[name];
        } else if (key == "scalar") {
            words >> name;
            words >> job.scalars[name];
        } else if (key == "tensor") {
            job.tensors.push_back(parse_tensor(words));
        } else if (!key.empty()) {
            fail("unknown key " + key + " in the job file");
        }
        if (words.fail()) fail("malformed line in the job file: " + line);
    }
    if (job.nonce.empty()) fail("the job file has no nonce");
    return job;
}

}  // namespace kb

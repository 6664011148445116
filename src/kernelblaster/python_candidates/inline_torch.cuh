// What CUDA sources for torch.utils.cpp_extension use of PyTorch's C++ interface, without PyTorch: tensors with a shape
// and a place, allocation, checks, dispatch by type. Nothing here computes. It stands before a candidate's sources.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace inline_torch {

using Half = __half;
using BFloat16 = __nv_bfloat16;

enum class ScalarType { Byte, Char, Short, Int, Long, Half, Float, Double, BFloat16, Bool };
enum class DeviceType { CPU, CUDA };
constexpr ScalarType kByte = ScalarType::Byte, kUInt8 = kByte, kChar = ScalarType::Char, kInt8 = kChar;
constexpr ScalarType kShort = ScalarType::Short, kInt16 = kShort, kInt = ScalarType::Int, kInt32 = kInt;
constexpr ScalarType kLong = ScalarType::Long, kInt64 = kLong, kHalf = ScalarType::Half, kFloat16 = kHalf;
constexpr ScalarType kFloat = ScalarType::Float, kFloat32 = kFloat, kDouble = ScalarType::Double, kFloat64 = kDouble;
constexpr ScalarType kBFloat16 = ScalarType::BFloat16, kBool = ScalarType::Bool;
constexpr DeviceType kCUDA = DeviceType::CUDA, kCPU = DeviceType::CPU;

template <ScalarType type> struct CppType;
template <typename T> struct TypeOf;
#define INLINE_TORCH_TYPE(T, NAME)                                                    \
    template <> struct CppType<ScalarType::NAME> { using type = T; };                 \
    template <> struct TypeOf<T> { static constexpr ScalarType value = ScalarType::NAME; };
INLINE_TORCH_TYPE(uint8_t, Byte)
INLINE_TORCH_TYPE(int8_t, Char)
INLINE_TORCH_TYPE(int16_t, Short)
INLINE_TORCH_TYPE(int32_t, Int)
INLINE_TORCH_TYPE(int64_t, Long)
INLINE_TORCH_TYPE(Half, Half)
INLINE_TORCH_TYPE(float, Float)
INLINE_TORCH_TYPE(double, Double)
INLINE_TORCH_TYPE(BFloat16, BFloat16)
INLINE_TORCH_TYPE(bool, Bool)
#undef INLINE_TORCH_TYPE

inline size_t element_bytes(ScalarType type) {
    constexpr size_t bytes[] = {1, 1, 2, 4, 8, 2, 4, 8, 2, 1};
    return bytes[static_cast<int>(type)];
}

template <typename... Words> std::string told(const Words&... words) {
    std::ostringstream text;
    (text << ... << words);
    return text.str();
}

[[noreturn]] inline void refuse(const std::string& why) { throw std::runtime_error(why); }

inline void check(cudaError_t status) {
    if (status != cudaSuccess) refuse(std::string("CUDA error: ") + cudaGetErrorString(status));
}

struct Device {
    DeviceType kind = DeviceType::CUDA;
    Device() = default;
    Device(DeviceType given, int = 0) : kind(given) {}
    Device(const char*) {}
    DeviceType type() const { return kind; }
    int index() const { return 0; }
    bool is_cuda() const { return kind == DeviceType::CUDA; }
    bool operator==(const Device& other) const { return kind == other.kind; }
    bool operator!=(const Device& other) const { return kind != other.kind; }
};

class IntArrayRef {
  public:
    IntArrayRef(std::initializer_list<int64_t> values) : values_(values) {}
    IntArrayRef(std::vector<int64_t> values) : values_(std::move(values)) {}
    IntArrayRef(int64_t value) : values_{value} {}
    size_t size() const { return values_.size(); }
    int64_t operator[](size_t place) const { return values_.at(place); }
    const int64_t* data() const { return values_.data(); }
    auto begin() const { return values_.begin(); }
    auto end() const { return values_.end(); }
    std::vector<int64_t> vec() const { return values_; }
    bool operator==(const IntArrayRef& other) const { return values_ == other.values_; }
    bool operator!=(const IntArrayRef& other) const { return values_ != other.values_; }

  private:
    std::vector<int64_t> values_;
};

struct TensorOptions {
    ScalarType type = ScalarType::Float;
    TensorOptions() = default;
    TensorOptions(ScalarType given) : type(given) {}
    TensorOptions(DeviceType) {}
    TensorOptions dtype(ScalarType given) const { return TensorOptions(given); }
    template <typename Where> TensorOptions device(const Where&, int = 0) const { return *this; }
    TensorOptions requires_grad(bool) const { return *this; }
    ScalarType dtype() const { return type; }
};
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
template <typename Where> TensorOptions device(const Where&, int = 0) { return TensorOptions(); }

// Memory of a call: the same pieces in the same order at the next one, as PyTorch's allocator would have it. What is
// returned is allocated in the place of the output from the second call on.
struct Arena {
    std::vector<char*> memory;
    std::vector<size_t> bytes;
    size_t next = 0;
    long returned = -1;
    char* output = nullptr;
    size_t output_bytes = 0;
};
static Arena* arena = nullptr;

struct Call {
    Call(Arena& mine, char* output, size_t bytes) {
        arena = &mine;
        mine.next = 0;
        mine.output = output;
        mine.output_bytes = bytes;
    }
};

inline std::pair<char*, long> allocate(size_t bytes) {
    const size_t place = arena->next++;
    if (place == arena->memory.size()) {
        arena->memory.push_back(nullptr);
        arena->bytes.push_back(0);
    }
    if (static_cast<long>(place) == arena->returned && bytes == arena->output_bytes) return {arena->output, place};
    if (arena->memory[place] == nullptr || arena->bytes[place] < bytes) {
        if (arena->memory[place] != nullptr) check(cudaFree(arena->memory[place]));
        check(cudaMalloc(&arena->memory[place], bytes > 0 ? bytes : 1));
        arena->bytes[place] = bytes;
    }
    return {arena->memory[place], place};
}

template <typename T, int dimensions> class TensorAccessor {
  public:
    __host__ __device__ TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides) : data_(data) {
        for (int axis = 0; axis < dimensions; ++axis) sizes_[axis] = sizes[axis], strides_[axis] = strides[axis];
    }
    __host__ __device__ auto operator[](int64_t place) const -> decltype(auto) {
        if constexpr (dimensions == 1) {
            return (data_[place * strides_[0]]);
        } else {
            return TensorAccessor<T, dimensions - 1>(data_ + place * strides_[0], sizes_ + 1, strides_ + 1);
        }
    }
    __host__ __device__ int64_t size(int axis) const { return sizes_[axis]; }
    __host__ __device__ int64_t stride(int axis) const { return strides_[axis]; }
    __host__ __device__ T* data() const { return data_; }

  private:
    T* data_;
    int64_t sizes_[dimensions], strides_[dimensions];
};
template <typename T> struct DefaultPtrTraits {};
template <typename T> struct RestrictPtrTraits {};
template <typename T, size_t dimensions, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
using PackedTensorAccessor = TensorAccessor<T, dimensions>;
template <typename T, size_t dimensions, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = TensorAccessor<T, dimensions>;
template <typename T, size_t dimensions, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = TensorAccessor<T, dimensions>;

class Tensor {
  public:
    Tensor() = default;
    Tensor(char* data, std::vector<int64_t> sizes, ScalarType type, long place = -1)
        : data_(data), sizes_(std::move(sizes)), type_(type), place_(place) {}

    int64_t dim() const { return sizes_.size(); }
    int64_t ndimension() const { return dim(); }
    int64_t size(int64_t axis) const { return sizes_.at(axis < 0 ? axis + dim() : axis); }
    IntArrayRef sizes() const { return IntArrayRef(sizes_); }
    int64_t stride(int64_t axis) const { return strides()[axis < 0 ? axis + dim() : axis]; }
    IntArrayRef strides() const {
        std::vector<int64_t> found(sizes_.size(), 1);
        for (int64_t axis = dim() - 2; axis >= 0; --axis) found[axis] = found[axis + 1] * sizes_[axis + 1];
        return IntArrayRef(found);
    }
    int64_t numel() const {
        int64_t count = 1;
        for (int64_t size : sizes_) count *= size;
        return count;
    }
    int64_t element_size() const { return element_bytes(type_); }
    int64_t itemsize() const { return element_size(); }
    int64_t nbytes() const { return numel() * element_size(); }
    ScalarType scalar_type() const { return type_; }
    ScalarType dtype() const { return type_; }
    TensorOptions options() const { return TensorOptions(type_); }
    Device device() const { return Device(); }
    int get_device() const { return 0; }
    bool is_cuda() const { return true; }
    bool is_contiguous() const { return true; }
    bool defined() const { return data_ != nullptr; }
    bool requires_grad() const { return false; }
    bool is_floating_point() const {
        return type_ == kHalf || type_ == kBFloat16 || type_ == kFloat || type_ == kDouble;
    }
    const Tensor& contiguous() const { return *this; }
    const Tensor& detach() const { return *this; }
    const Tensor& cuda() const { return *this; }
    Tensor view(IntArrayRef shape) const {
        std::vector<int64_t> sizes = shape.vec();
        int64_t known = 1, open = -1;
        for (size_t axis = 0; axis < sizes.size(); ++axis) {
            if (sizes[axis] == -1) open = axis;
            else known *= sizes[axis];
        }
        if (open >= 0) sizes[open] = known > 0 ? numel() / known : 0, known *= sizes[open];
        if (known != numel()) refuse("a view has another number of elements");
        return Tensor(data_, sizes, type_, place_);
    }
    Tensor reshape(IntArrayRef shape) const { return view(std::move(shape)); }
    Tensor flatten() const { return view({numel()}); }
    Tensor unsqueeze(int64_t axis) const {
        std::vector<int64_t> sizes = sizes_;
        sizes.insert(sizes.begin() + (axis < 0 ? axis + dim() + 1 : axis), 1);
        return Tensor(data_, sizes, type_, place_);
    }
    Tensor squeeze(int64_t axis) const {
        std::vector<int64_t> sizes = sizes_;
        axis = axis < 0 ? axis + dim() : axis;
        if (sizes.at(axis) == 1) sizes.erase(sizes.begin() + axis);
        return Tensor(data_, sizes, type_, place_);
    }
    const Tensor& zero_() const {
        check(cudaMemsetAsync(data_, 0, nbytes(), 0));
        return *this;
    }
    void* data_ptr() const { return data_; }
    template <typename T> T* data_ptr() const {
        using Plain = std::remove_const_t<T>;
        if (TypeOf<Plain>::value != type_) refuse("data_ptr<T>(): the tensor is of another type");
        return reinterpret_cast<T*>(data_);
    }
    template <typename T> T* data() const { return data_ptr<T>(); }
    template <typename T> const T* const_data_ptr() const { return data_ptr<T>(); }
    template <typename T> T* mutable_data_ptr() const { return data_ptr<T>(); }
    template <typename T, size_t dimensions, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
    TensorAccessor<T, dimensions> packed_accessor() const {
        if (dim() != static_cast<int64_t>(dimensions)) refuse("packed_accessor: another number of dimensions");
        return TensorAccessor<T, dimensions>(data_ptr<T>(), sizes_.data(), strides().data());
    }
    template <typename T, size_t dimensions, template <typename> class Traits = DefaultPtrTraits>
    TensorAccessor<T, dimensions> packed_accessor32() const {
        return packed_accessor<T, dimensions, Traits>();
    }
    template <typename T, size_t dimensions, template <typename> class Traits = DefaultPtrTraits>
    TensorAccessor<T, dimensions> packed_accessor64() const {
        return packed_accessor<T, dimensions, Traits>();
    }
    long place() const { return place_; }

  private:
    char* data_ = nullptr;
    std::vector<int64_t> sizes_;
    ScalarType type_ = ScalarType::Float;
    long place_ = -1;
};

inline Tensor empty(IntArrayRef sizes, TensorOptions options = TensorOptions()) {
    Tensor shaped(nullptr, sizes.vec(), options.type);
    const auto [memory, place] = allocate(shaped.nbytes());
    return Tensor(memory, sizes.vec(), options.type, place);
}
inline Tensor zeros(IntArrayRef sizes, TensorOptions options = TensorOptions()) { return empty(sizes, options).zero_(); }
inline Tensor empty_like(const Tensor& other) { return empty(other.sizes(), other.options()); }
inline Tensor empty_like(const Tensor& other, TensorOptions options) { return empty(other.sizes(), options); }
inline Tensor zeros_like(const Tensor& other) { return zeros(other.sizes(), other.options()); }
inline Tensor zeros_like(const Tensor& other, TensorOptions options) { return zeros(other.sizes(), options); }

// What a function returned becomes the output.
inline void give(const Tensor& found, char* output, const std::vector<int64_t>& sizes, ScalarType type) {
    if (found.sizes() != IntArrayRef(sizes) || found.scalar_type() != type) {
        refuse("the extension returned a tensor of another shape or type than the reference");
    }
    if (found.data_ptr() == output) return;
    check(cudaMemcpyAsync(output, found.data_ptr(), found.nbytes(), cudaMemcpyDeviceToDevice, 0));
    arena->returned = found.place();
}
template <typename Other> void give(const Other&, char*, const std::vector<int64_t>&, ScalarType) {
    static_assert(sizeof(Other) == 0, "an extension's function returns one torch::Tensor");
}

struct Bindings {
    template <typename... Anything> Bindings& def(Anything&&...) { return *this; }
};

namespace cuda {
struct Stream {
    operator cudaStream_t() const { return 0; }
    cudaStream_t stream() const { return 0; }
};
inline Stream getCurrentCUDAStream(int = 0) { return {}; }
inline Stream getDefaultCUDAStream(int = 0) { return {}; }
struct CUDAGuard {
    template <typename... Anything> CUDAGuard(Anything&&...) {}
};
using OptionalCUDAGuard = CUDAGuard;
inline cudaDeviceProp* getCurrentDeviceProperties() {
    static cudaDeviceProp properties;
    static const cudaError_t status = cudaGetDeviceProperties(&properties, 0);
    check(status);
    return &properties;
}
}  // namespace cuda

template <typename T> using optional = std::optional<T>;
using std::nullopt;
inline ScalarType scalar_of(ScalarType type) { return type; }

}  // namespace inline_torch

namespace torch = inline_torch;
namespace at = inline_torch;
namespace c10 = inline_torch;

#define TORCH_CHECK(CONDITION, ...) \
    do {                            \
        if (!(CONDITION)) inline_torch::refuse(inline_torch::told("TORCH_CHECK(" #CONDITION ") ", ##__VA_ARGS__)); \
    } while (0)
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define AT_ASSERT TORCH_CHECK
#define AT_ERROR(...) inline_torch::refuse(inline_torch::told(__VA_ARGS__))
#define C10_CUDA_CHECK(...) inline_torch::check(__VA_ARGS__)
#define AT_CUDA_CHECK(...) inline_torch::check(__VA_ARGS__)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() inline_torch::check(cudaGetLastError())
#define INLINE_TORCH_CASE(NAME, ...)                                                              \
    case inline_torch::ScalarType::NAME: {                                                        \
        using scalar_t [[maybe_unused]] = inline_torch::CppType<inline_torch::ScalarType::NAME>::type; \
        return __VA_ARGS__();                                                                     \
    }
#define INLINE_TORCH_CASE_OF(TYPE, ...)                                        \
    case TYPE: {                                                               \
        using scalar_t [[maybe_unused]] = inline_torch::CppType<TYPE>::type;   \
        return __VA_ARGS__();                                                  \
    }
#define INLINE_TORCH_SWITCH(TYPE, NAME, CASES)                                                     \
    [&] {                                                                                          \
        switch (inline_torch::scalar_of(TYPE)) {                                                   \
            CASES                                                                                  \
            default: inline_torch::refuse(std::string(NAME) + ": it is not written for this type"); \
        }                                                                                          \
    }()
#define INLINE_TORCH_FLOATING(...) INLINE_TORCH_CASE(Double, __VA_ARGS__) INLINE_TORCH_CASE(Float, __VA_ARGS__)
#define INLINE_TORCH_INTEGRAL(...)                                                                \
    INLINE_TORCH_CASE(Byte, __VA_ARGS__) INLINE_TORCH_CASE(Char, __VA_ARGS__)                     \
    INLINE_TORCH_CASE(Short, __VA_ARGS__) INLINE_TORCH_CASE(Int, __VA_ARGS__) INLINE_TORCH_CASE(Long, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
    INLINE_TORCH_SWITCH(TYPE, NAME, INLINE_TORCH_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
    INLINE_TORCH_SWITCH(TYPE, NAME, INLINE_TORCH_FLOATING(__VA_ARGS__) INLINE_TORCH_CASE(Half, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(FIRST, TYPE, NAME, ...) \
    INLINE_TORCH_SWITCH(TYPE, NAME, INLINE_TORCH_FLOATING(__VA_ARGS__) INLINE_TORCH_CASE_OF(FIRST, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(FIRST, SECOND, TYPE, NAME, ...)                                               \
    INLINE_TORCH_SWITCH(TYPE, NAME, INLINE_TORCH_FLOATING(__VA_ARGS__) INLINE_TORCH_CASE_OF(FIRST, __VA_ARGS__) \
                                        INLINE_TORCH_CASE_OF(SECOND, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
    INLINE_TORCH_SWITCH(TYPE, NAME, INLINE_TORCH_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) \
    INLINE_TORCH_SWITCH(TYPE, NAME, INLINE_TORCH_FLOATING(__VA_ARGS__) INLINE_TORCH_INTEGRAL(__VA_ARGS__))
#define TORCH_EXTENSION_NAME extension
#define PYBIND11_MODULE(NAME, VARIABLE) [[maybe_unused]] static void bind_extension(inline_torch::Bindings VARIABLE)

// cudaMalloc, cudaMemcpy, cudaMemset and their relatives.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "boxes.hpp"
#include "host_clock.hpp"
#include "streams.hpp"

namespace {

using namespace ptxemu;

constexpr double kBytesPerMs = 4.0e9;
constexpr size_t kPageBytes = 4096;

// Device pointers must lie in one allocation; anything else is host memory, which the host itself checks.
bool reachable(const void* pointer, size_t bytes) {
    const u64 address = reinterpret_cast<u64>(pointer);
    return !runtime().arena.owns(address) || runtime().arena.holds(address, bytes);
}

bool on_device(const void* pointer) { return runtime().arena.owns(reinterpret_cast<u64>(pointer)); }

bool pinned(const void* pointer, size_t bytes) {
    return runtime().host_memory.holds(reinterpret_cast<u64>(pointer), bytes);
}

// Managed memory is on both sides.
bool on_host(const void* pointer) {
    return !on_device(pointer) || runtime().arena.managed(reinterpret_cast<u64>(pointer));
}

bool kind_matches(const void* to, const void* from, cudaMemcpyKind kind) {
    switch (kind) {
        case cudaMemcpyHostToHost: return on_host(to) && on_host(from);
        case cudaMemcpyHostToDevice: return on_device(to) && on_host(from);
        case cudaMemcpyDeviceToHost: return on_host(to) && on_device(from);
        case cudaMemcpyDeviceToDevice: return on_device(to) && on_device(from);
        case cudaMemcpyDefault: return true;
    }
    return false;
}

std::string bytes_of(const char* what, size_t bytes) { return what + (" of " + std::to_string(bytes)) + " bytes"; }

const char* name_of(cudaMemcpyKind kind) {
    switch (kind) {
        case cudaMemcpyHostToHost: return "cudaMemcpyHostToHost";
        case cudaMemcpyHostToDevice: return "cudaMemcpyHostToDevice";
        case cudaMemcpyDeviceToHost: return "cudaMemcpyDeviceToHost";
        case cudaMemcpyDeviceToDevice: return "cudaMemcpyDeviceToDevice";
        case cudaMemcpyDefault: return "cudaMemcpyDefault";
    }
    return "no direction";
}

// Why device memory from there on cannot be had.
std::string beyond(const std::string& what, const void* pointer) {
    const bool begins = runtime().arena.holds(reinterpret_cast<u64>(pointer), 1);
    return what + (begins ? " reaches beyond the end of its allocation" : " lies in no allocation, or in one that was freed");
}

// Why a copy is refused; empty when it is not.
std::string complaint(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    if (!reachable(to, bytes)) return beyond("its destination", to);
    if (!reachable(from, bytes)) return beyond("its source", from);
    if (kind_matches(to, from, kind)) return "";
    const auto side = [](const void* pointer) { return std::string(on_device(pointer) ? "device" : "host"); };
    return std::string(name_of(kind)) + " says otherwise than the pointers, which go from " + side(from) + " to " + side(to);
}

// Host-to-host copies take no GPU time.
void count_transfer(const char* kind, size_t bytes) {
    runtime().contents.begun();
    if (kind == nullptr || !runtime().counting()) return;
    if (std::strcmp(kind, "device_to_host") == 0) HostClock::waited();
    report_transfer(kind, bytes);
}

const char* direction(const void* to, const void* from) {
    if (on_device(to)) return on_device(from) ? "device_to_device" : "host_to_device";
    return on_device(from) ? "device_to_host" : nullptr;
}

// What the checks know of the copied bytes; those of the host all hold values.
void note_copy(void* to, const void* from, size_t bytes) {
    InitializedBytes* initialized = runtime().initialized.get();
    if (initialized == nullptr || !on_device(to)) return;
    const u64 target = reinterpret_cast<u64>(to);
    on_device(from) ? initialized->copy(target, reinterpret_cast<u64>(from), bytes) : initialized->mark(target, bytes);
}

// Copies hand on what sampled launches have left out; a copy of all of an allocation is as complete as its source.
cudaError_t note_completeness(void* to, const void* from, size_t bytes) {
    Arena& arena = runtime().arena;
    const u64 target = reinterpret_cast<u64>(to), source = reinterpret_cast<u64>(from);
    const bool missing = on_device(from) && arena.incomplete(source);
    if (missing && !on_device(to) && runtime().profiling)
        return runtime().fail_unsampled("the host reads back what a sampled launch has computed in part");
    if (on_device(to) && (missing || arena.is_all_of(target, bytes))) arena.set_incomplete(target, missing);
    return cudaSuccess;
}

cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    const HostClock::Pause pause;
    const std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
    if (runtime().sticky() != cudaSuccess) return runtime().sticky();
    if (bytes == 0) return cudaSuccess;
    if (const std::string why = complaint(to, from, bytes, kind); !why.empty())
        return runtime().refuse(cudaErrorInvalidValue, bytes_of("a copy", bytes), why);
    if (const cudaError_t error = note_completeness(to, from, bytes)) return error;
    std::memmove(bytes_at(to), bytes_at(from), bytes);
    note_copy(to, from, bytes);
    count_transfer(direction(to, from), bytes);
    runtime().clock_ms += static_cast<double>(bytes) / kBytesPerMs;
    return cudaSuccess;
}

cudaError_t fill(void* to, int value, size_t bytes) {
    const HostClock::Pause pause;
    const std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
    if (runtime().sticky() != cudaSuccess) return runtime().sticky();
    if (bytes == 0) return cudaSuccess;
    if (!(on_device(to) ? reachable(to, bytes) : pinned(to, bytes)))
        return runtime().refuse(cudaErrorInvalidValue, bytes_of("a fill", bytes),
                                on_device(to) ? beyond("its memory", to) : "its memory is the host's, and not pinned");
    const u64 target = reinterpret_cast<u64>(to);
    if (on_device(to))
        runtime().arena.fill(target, bytes, static_cast<u8>(value));
    else
        std::memset(to, value, bytes);
    if (runtime().arena.is_all_of(target, bytes)) runtime().arena.set_incomplete(target, false);
    if (runtime().initialized) runtime().initialized->mark(target, bytes);
    count_transfer("fill", bytes);
    runtime().clock_ms += static_cast<double>(bytes) / kBytesPerMs;
    return cudaSuccess;
}

cudaError_t allocate(void** pointer, size_t bytes, bool managed = false) {
    const HostClock::Pause pause;
    const std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
    if (runtime().sticky() != cudaSuccess) return runtime().sticky();
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    *pointer = reinterpret_cast<void*>(runtime().arena.allocate(bytes, managed));
    if (*pointer == nullptr)
        return runtime().refuse(cudaErrorMemoryAllocation, bytes_of("an allocation", bytes),
                                std::to_string(runtime().arena.free_bytes()) + " bytes are free");
    if (runtime().initialized) runtime().initialized->clear(reinterpret_cast<u64>(*pointer), bytes);
    runtime().leaks.allocated(reinterpret_cast<u64>(*pointer), bytes);
    return cudaSuccess;
}

cudaError_t release(void* pointer) {
    const HostClock::Pause pause;
    const std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
    runtime().leaks.freed(reinterpret_cast<u64>(pointer));
    runtime().contents.forget(reinterpret_cast<u64>(pointer));
    if (runtime().sticky() != cudaSuccess) return runtime().sticky();
    if (pointer == nullptr || runtime().arena.free(reinterpret_cast<u64>(pointer))) return cudaSuccess;
    return runtime().refuse(cudaErrorInvalidValue, "a free", "no allocation begins there, or it was freed before");
}

cudaError_t copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                      cudaMemcpyKind kind) {
    if (width > to_pitch || width > from_pitch)
        return runtime().refuse(cudaErrorInvalidPitchValue, "a copy of rows", "they are longer than a pitch");
    for (size_t row = 0; row < height; ++row)
        if (const cudaError_t error = copy(static_cast<char*>(to) + row * to_pitch,
                                           static_cast<const char*>(from) + row * from_pitch, width, kind))
            return error;
    return cudaSuccess;
}

// A fill with bytes, as a node of a graph has it.
cudaMemsetParams fill_of_rows(void* to, size_t pitch, int value, size_t width, size_t height) {
    return {to, pitch, static_cast<unsigned>(value) & 255, 1, width, height};
}

cudaError_t refuse_symbol(size_t bytes) {
    return runtime().refuse(cudaErrorInvalidSymbol, bytes_of("a copy of a variable", bytes),
                            "there is no such variable, or they reach beyond its end");
}

}  // namespace

namespace ptxemu {

void* symbol_range(const void* symbol, size_t bytes, size_t offset) {
    const Variable* variable = runtime().variable(symbol);
    if (variable == nullptr || offset + bytes > variable->size) return nullptr;
    return reinterpret_cast<void*>(variable->address + offset);
}

}  // namespace ptxemu

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) { return allocate(pointer, bytes); }
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
    if (capture_of(stream)) return runtime().lacks("an allocation in a graph");
    return allocate(pointer, bytes);
}
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t, cudaStream_t stream) {
    return cudaMallocAsync(pointer, bytes, stream);
}
cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
    const HostClock::Pause pause;
    const cudaError_t error = allocate(pointer, bytes, true);
    if (error != cudaSuccess) return error;
    runtime().contents.share(reinterpret_cast<u64>(*pointer));
    return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) { return release(pointer); }
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
    if (capture_of(stream)) return runtime().lacks("a free in a graph");
    return release(pointer);
}
// Freed memory is given back at once, whatever a pool is told to keep: nothing lies at its address.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
    static char the_pool;
    *pool = reinterpret_cast<cudaMemPool_t>(&the_pool);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
    *pitch = (width + 511) / 512 * 512;
    return allocate(pointer, *pitch * height);
}

// Pinned memory has one address for host and kernels, as everywhere on 64-bit Linux.
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
    const std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
    const size_t size = (std::max<size_t>(bytes, 1) + kPageBytes - 1) / kPageBytes * kPageBytes;
    *pointer = std::aligned_alloc(kPageBytes, size);
    if (*pointer == nullptr) return runtime().fail(cudaErrorMemoryAllocation);
    runtime().host_memory.add(reinterpret_cast<u64>(*pointer), bytes);
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) { return cudaMallocHost(pointer, bytes); }
cudaError_t cudaFreeHost(void* pointer) {
    const std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
    if (pointer == nullptr) return cudaSuccess;
    if (!runtime().host_memory.remove(reinterpret_cast<u64>(pointer))) return runtime().fail(cudaErrorInvalidValue);
    std::free(pointer);
    return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
    const std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
    *device = pinned(host, 0) ? host : nullptr;
    return *device != nullptr ? cudaSuccess : runtime().fail(cudaErrorInvalidValue);
}
cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
    const std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
    if (pointer == nullptr || bytes == 0 || on_device(pointer)) return runtime().fail(cudaErrorInvalidValue);
    if (pinned(pointer, 1)) return runtime().fail(cudaErrorHostMemoryAlreadyRegistered);
    runtime().host_memory.add(reinterpret_cast<u64>(pointer), bytes);
    return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* pointer) {
    const std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
    const bool known = runtime().host_memory.remove(reinterpret_cast<u64>(pointer));
    return known ? cudaSuccess : runtime().fail(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return copy(to, from, bytes, kind);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return submit(stream, [=] { return copy(to, from, bytes, kind); }, cudaGraphNodeTypeMemcpy,
                  box_of_bytes(to, from, bytes, kind));
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
    return copy_rows(to, to_pitch, from, from_pitch, width, height, kind);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return submit(stream, [=] { return copy_rows(to, to_pitch, from, from_pitch, width, height, kind); },
                  cudaGraphNodeTypeMemcpy, box_of_rows(to, to_pitch, from, from_pitch, width, height, kind));
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) { return fill(to, value, bytes); }
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
    return submit(stream, [=] { return fill(to, value, bytes); }, cudaGraphNodeTypeMemset,
                  fill_of_rows(to, bytes, value, bytes, 1));
}
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
    for (size_t row = 0; row < height; ++row)
        if (const cudaError_t error = fill(static_cast<char*>(to) + row * pitch, value, width)) return error;
    return cudaSuccess;
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
    return submit(stream, [=] { return cudaMemset2D(to, pitch, value, width, height); }, cudaGraphNodeTypeMemset,
                  fill_of_rows(to, pitch, value, width, height));
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    void* to = symbol_range(symbol, bytes, offset);
    return to == nullptr ? refuse_symbol(bytes) : copy(to, from, bytes, kind);
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
    return submit(stream, [=] { return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind); });
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    const void* from = symbol_range(symbol, bytes, offset);
    return from == nullptr ? refuse_symbol(bytes) : copy(to, from, bytes, kind);
}
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
    return submit(stream, [=] { return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind); });
}
cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
    *pointer = symbol_range(symbol, 0, 0);
    return *pointer == nullptr ? runtime().fail(cudaErrorInvalidSymbol) : cudaSuccess;
}
cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
    const Variable* variable = runtime().variable(symbol);
    if (variable == nullptr) return runtime().fail(cudaErrorInvalidSymbol);
    *bytes = variable->size;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
    *free_bytes = runtime().arena.free_bytes();
    *total = runtime().figures.memory_bytes;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    *attributes = {};
    const bool device = on_device(pointer), host = !device && pinned(pointer, 0);
    const bool managed = device && runtime().arena.managed(reinterpret_cast<u64>(pointer));
    attributes->type = managed  ? cudaMemoryTypeManaged
                       : device ? cudaMemoryTypeDevice
                       : host   ? cudaMemoryTypeHost
                                : cudaMemoryTypeUnregistered;
    attributes->devicePointer = device || host ? const_cast<void*>(pointer) : nullptr;
    attributes->hostPointer = device && !managed ? nullptr : const_cast<void*>(pointer);
    return cudaSuccess;
}

}  // extern "C"

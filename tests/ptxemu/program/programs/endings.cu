// How a program may end, and memory that is not what cudaMalloc gives by the page: `endings CASE` ends with 0 when all
// is as on a GPU, but for the cases that ignore what went wrong.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

__global__ void sum(const int* x, int n, int* total) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(total, x[i]);
}
__global__ void add_one(int* x, int n) {
    if (const int i = blockIdx.x * blockDim.x + threadIdx.x; i < n) x[i] += 1;
}
__global__ void beyond(int* x) { x[1 << 20] = 1; }  // FAULT

constexpr int kCount = 1000;

bool summed(int* memory) {
    int* total;
    for (int i = 0; i < kCount; ++i) memory[i] = i;
    if (cudaMallocManaged(&total, sizeof(int))) return false;
    *total = 0;
    sum<<<1, 64>>>(memory, kCount, total);
    add_one<<<8, 128>>>(memory, kCount);
    return cudaDeviceSynchronize() == cudaSuccess && *total == kCount * (kCount - 1) / 2 && memory[kCount - 1] == kCount;
}

bool pinned() {
    int *memory, *seen;
    if (cudaMallocHost(&memory, kCount * sizeof(int)) || !summed(memory)) return false;
    cudaPointerAttributes attributes;
    if (cudaHostGetDevicePointer(&seen, memory, 0) || seen != memory) return false;
    if (cudaPointerGetAttributes(&attributes, memory + 1) || attributes.type != cudaMemoryTypeHost) return false;
    return cudaMemset(memory, 0, 4) == cudaSuccess && memory[0] == 0 && cudaFreeHost(memory) == cudaSuccess;
}

bool registered() {
    std::vector<int> memory(kCount);
    int* seen;
    if (cudaHostGetDevicePointer(&seen, memory.data(), 0) != cudaErrorInvalidValue) return false;
    if (cudaHostRegister(memory.data(), kCount * sizeof(int), cudaHostRegisterMapped)) return false;
    if (cudaHostRegister(memory.data(), 4, 0) != cudaErrorHostMemoryAlreadyRegistered || !summed(memory.data())) return false;
    cudaGetLastError();
    return !cudaHostUnregister(memory.data()) && cudaHostUnregister(memory.data()) == cudaErrorHostMemoryNotRegistered;
}

// More than this machine has, written in three places.
bool large() {
    constexpr size_t kBytes = size_t{100} << 30;
    char* memory;
    int corner = 0, inside = 0, again = 0;
    if (cudaMalloc(&memory, kBytes) || cudaMemcpy(&inside, memory + kBytes / 2, 4, cudaMemcpyDeviceToHost)) return false;
    add_one<<<1, 1>>>(reinterpret_cast<int*>(memory), 1);
    add_one<<<1, 1>>>(reinterpret_cast<int*>(memory + kBytes - 4), 1);
    cudaMemcpy(&corner, memory + kBytes - 4, 4, cudaMemcpyDeviceToHost);
    cudaFree(memory);
    if (cudaMalloc(&memory, kBytes)) return false;
    cudaMemcpy(&again, memory + kBytes - 4, 4, cudaMemcpyDeviceToHost);
    return inside == -1 && corner == 0 && again == -1;
}

bool too_large() {
    size_t free_bytes, total;
    void *most, *memory = nullptr;
    cudaMemGetInfo(&free_bytes, &total);
    return cudaMalloc(&memory, total + 1) == cudaErrorMemoryAllocation && memory == nullptr &&
           cudaMalloc(&most, total / 4 * 3) == cudaSuccess && cudaMalloc(&memory, total / 2) == cudaErrorMemoryAllocation;
}

int main(int, char** arguments) {
    const auto is = [&](const char* name) { return std::strcmp(arguments[1], name) == 0; };
    if (is("pinned")) return !pinned();
    if (is("registered")) return !registered();
    if (is("large")) return !large();
    if (is("too_large")) return !too_large();
    if (is("fault_ignored")) {
        int* memory;
        cudaMalloc(&memory, 4);
        beyond<<<1, 1>>>(memory);
        return 0;
    }
    if (is("freed_host")) {
        int* memory;
        cudaMallocHost(&memory, 4);
        cudaFreeHost(memory);
        add_one<<<1, 1>>>(memory, 1);
        return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 3;
    }
    if (is("refused_unseen") || is("refused_seen")) {
        int* memory;
        cudaMalloc(&memory, 4);
        add_one<<<1, 5000>>>(memory, 1);  // no block has so many threads
        return is("refused_unseen") || cudaGetLastError() == cudaErrorInvalidConfiguration ? 0 : 3;
    }
    if (is("attribute")) {
        int value = 0;
        return cudaDeviceGetAttribute(&value, cudaDevAttrTimelineSemaphoreInteropSupported, 0) == cudaSuccess ? 0 : 9;
    }
    return 2;
}

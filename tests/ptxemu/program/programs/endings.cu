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

bool filled() {
    constexpr size_t kBytes = size_t{20} << 30;
    char* memory;
    char seen[3] = {1, 1, 1};
    if (cudaMalloc(&memory, kBytes) || cudaMemset(memory + 1, 0, kBytes - 2)) return false;
    cudaMemcpy(seen, memory, 2, cudaMemcpyDeviceToHost);
    cudaMemcpy(seen + 2, memory + kBytes - 1, 1, cudaMemcpyDeviceToHost);
    return seen[0] == -1 && seen[1] == 0 && seen[2] == -1;
}

// Small and large, freed and had again; both sides see what the other has written.
bool managed() {
    for (const size_t count : {size_t{kCount}, size_t{1} << 23, size_t{kCount}}) {
        int *memory, *beside;
        cudaPointerAttributes attributes;
        if (cudaMallocManaged(&memory, count * sizeof(int)) || cudaMalloc(&beside, 4)) return false;
        cudaPointerGetAttributes(&attributes, memory + 1);
        if (attributes.type != cudaMemoryTypeManaged || attributes.hostPointer != memory + 1) return false;
        memory[0] = 1, memory[count - 1] = 2;
        add_one<<<static_cast<unsigned>((count + 127) / 128), 128>>>(memory, static_cast<int>(count));
        if (cudaDeviceSynchronize() || memory[0] != 2 || memory[count - 1] != 3) return false;
        cudaMemcpy(beside, memory + count - 1, 4, cudaMemcpyDeviceToDevice);
        cudaMemcpy(memory, beside, 4, cudaMemcpyDeviceToHost);
        if (memory[0] != 3 || cudaMemset(memory, 0, 4) || memory[0] != 0) return false;
        if (cudaFree(memory) || cudaFree(beside)) return false;
    }
    return true;
}

// What a beginner does: host code with pointers to memory of the device.
int out_of_reach(const char* how) {
    int *memory, *freed, sum = 0, host[4] = {};
    cudaMalloc(&memory, kCount * sizeof(int));
    cudaMallocManaged(&freed, sizeof(int));
    *freed = 1;
    cudaFree(freed);
    if (std::strcmp(how, "host_writes") == 0) memory[3] = 7;  // host_writes
    if (std::strcmp(how, "host_reads") == 0)
        for (int i = 0; i < 2 * kCount; ++i) sum += memory[i];  // host_reads
    if (std::strcmp(how, "host_copies") == 0) std::memcpy(host, memory, std::strlen(how));  // host_copies
    if (std::strcmp(how, "host_after_free") == 0) *freed = 2;  // host_after_free
    if (std::strcmp(how, "host_allocates") == 0)
        cudaMalloc(reinterpret_cast<void**>(memory), 4);  // host_allocates
    std::printf("%d\n", sum + host[0]);
    return 0;
}

__global__ void wait_for(volatile int* flag) {
    while (*flag == 0) {}  // waits
}

int main(int, char** arguments) {
    const auto is = [&](const char* name) { return std::strcmp(arguments[1], name) == 0; };
    if (std::strncmp(arguments[1], "host_", 5) == 0) return out_of_reach(arguments[1]);
    if (is("filled")) return !filled();
    if (is("waits_for_host")) {
        int* flag;
        cudaMallocManaged(&flag, sizeof(int));
        *flag = 0;
        wait_for<<<1, 1>>>(flag);  // launches
        *flag = 1;
        return cudaDeviceSynchronize() == cudaSuccess ? 0 : 3;
    }
    if (is("without_end"))
        for (volatile int k = 0;; k = k + 1) {}  // goes on
    if (is("managed")) return !managed();
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

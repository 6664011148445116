// What ordinary programs do beside launching: `ordinary CASE` ends with 0 when everything is as on a GPU;
// `ordinary heap_facts BYTES BLOCK` prints what a heap of so many bytes (0: the default) holds.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

// -- graphs, node by node

__global__ void scale(float* x, float by, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}
__global__ void add(float* to, const float* from, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] += from[i];
}

constexpr int kCount = 1000;

cudaKernelNodeParams kernel_node(const void* function, void** arguments) {
    cudaKernelNodeParams node{};
    node.func = const_cast<void*>(function);
    node.gridDim = dim3((kCount + 255) / 256);
    node.blockDim = dim3(256);
    node.kernelParams = arguments;
    return node;
}

// y = 2 x + 3 x, the copies and products in branches of their own, the sum in the host's node counted.
bool graph() {
    std::vector<float> x(kCount), y(kCount);
    for (int i = 0; i < kCount; ++i) x[i] = float(i);
    float *a, *b;
    cudaMalloc(&a, kCount * 4);
    cudaMalloc(&b, kCount * 4);
    cudaGraph_t graph;
    cudaGraphNode_t fill, in_a, in_b, twice, thrice, sum, out, told;
    if (cudaGraphCreate(&graph, 0)) return false;
    cudaMemsetParams ones{};
    ones.dst = b, ones.elementSize = 4, ones.value = 0x3f800000, ones.width = kCount, ones.height = 1;
    if (cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &ones)) return false;
    cudaGraphAddMemcpyNode1D(&in_a, graph, nullptr, 0, a, x.data(), kCount * 4, cudaMemcpyHostToDevice);
    cudaMemcpy3DParms box{};
    box.srcPtr = make_cudaPitchedPtr(x.data(), kCount * 4, kCount, 1);
    box.dstPtr = make_cudaPitchedPtr(b, kCount * 4, kCount, 1);
    box.extent = make_cudaExtent(kCount * 4, 1, 1);
    box.kind = cudaMemcpyHostToDevice;
    cudaGraphAddMemcpyNode(&in_b, graph, &fill, 1, &box);
    float two = 2, three = 3;
    int n = kCount;
    void *of_a[] = {&a, &two, &n}, *of_b[] = {&b, &three, &n}, *of_both[] = {&a, &b, &n};
    cudaKernelNodeParams node = kernel_node((const void*)scale, of_a);
    cudaGraphAddKernelNode(&twice, graph, &in_a, 1, &node);
    node = kernel_node((const void*)scale, of_b);
    cudaGraphAddKernelNode(&thrice, graph, nullptr, 0, &node);
    if (cudaGraphAddDependencies(graph, &in_b, &thrice,
#if CUDART_VERSION >= 13000
                                 nullptr,
#endif
                                 1))
        return false;
    node = kernel_node((const void*)add, of_both);
    const cudaGraphNode_t both[] = {twice, thrice};
    cudaGraphAddKernelNode(&sum, graph, both, 2, &node);
    cudaGraphAddMemcpyNode1D(&out, graph, &sum, 1, y.data(), a, kCount * 4, cudaMemcpyDeviceToHost);
    int calls = 0;
    cudaHostNodeParams host{[](void* count) { ++*static_cast<int*>(count); }, &calls};
    cudaGraphAddHostNode(&told, graph, &out, 1, &host);
    two = 100;  // arguments were copied
    cudaGraphExec_t executable;
    if (cudaGraphInstantiate(&executable, graph, 0)) return false;
    for (int k = 0; k < 2; ++k) {
        if (cudaGraphLaunch(executable, nullptr) || cudaDeviceSynchronize()) return false;
        for (int i = 0; i < kCount; ++i)
            if (y[i] != 5 * x[i]) return std::printf("%d: %g\n", i, y[i]), false;
    }
    float four = 4;
    void* changed[] = {&a, &four, &n};
    node = kernel_node((const void*)scale, changed);
    if (cudaGraphExecKernelNodeSetParams(executable, twice, &node)) return false;
    if (cudaGraphLaunch(executable, nullptr) || cudaDeviceSynchronize()) return false;
    size_t nodes = 0, roots = 0;
    cudaGraphGetNodes(graph, nullptr, &nodes);
    cudaGraphGetRootNodes(graph, nullptr, &roots);
    cudaGraphNodeType type;
    cudaGraphNodeGetType(sum, &type);
    return y[10] == 70 && calls == 3 && nodes == 8 && roots == 2 && type == cudaGraphNodeTypeKernel;
}

bool circle() {
    cudaGraph_t graph;
    cudaGraphNode_t a, b;
    cudaGraphExec_t executable;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddEmptyNode(&a, graph, nullptr, 0);
    cudaGraphAddEmptyNode(&b, graph, &a, 1);
#if CUDART_VERSION >= 13000
    cudaGraphAddDependencies(graph, &b, &a, nullptr, 1);
#else
    cudaGraphAddDependencies(graph, &b, &a, 1);
#endif
    return cudaGraphInstantiate(&executable, graph, 0) == cudaErrorInvalidValue;
}

bool child() {
    int* value;
    cudaMalloc(&value, 64);
    cudaGraph_t inner, outer;
    cudaGraphNode_t first, second, third;
    cudaMemsetParams ones{};
    ones.dst = value, ones.elementSize = 1, ones.value = 1, ones.width = 64, ones.height = 1;
    cudaGraphCreate(&inner, 0);
    cudaGraphCreate(&outer, 0);
    cudaGraphAddMemsetNode(&first, inner, nullptr, 0, &ones);
    ones.value = 2;
    cudaGraphAddMemsetNode(&second, outer, nullptr, 0, &ones);
    cudaGraphAddChildGraphNode(&third, outer, &second, 1, inner);
    cudaGraphExec_t executable;
    int got = 0;
    if (cudaGraphInstantiate(&executable, outer, 0) || cudaGraphLaunch(executable, nullptr)) return false;
    cudaMemcpy(&got, value, 4, cudaMemcpyDeviceToHost);
    return got == 0x01010101;
}

// -- boxes

bool boxes() {
    const cudaExtent extent = make_cudaExtent(20, 5, 3);
    cudaPitchedPtr memory;
    if (cudaMalloc3D(&memory, extent) || memory.pitch < 20) return false;
    if (cudaMemset3D(memory, 7, extent)) return false;
    std::vector<unsigned char> in(20 * 5 * 3), out(in.size());
    for (size_t i = 0; i < in.size(); ++i) in[i] = (unsigned char)i;
    cudaMemcpy3DParms box{};
    box.srcPtr = make_cudaPitchedPtr(in.data(), 20, 20, 5);
    box.srcPos = make_cudaPos(4, 1, 1);
    box.dstPtr = memory;
    box.dstPos = make_cudaPos(2, 0, 2);
    box.extent = make_cudaExtent(8, 3, 1);
    box.kind = cudaMemcpyHostToDevice;
    if (cudaMemcpy3D(&box)) return false;
    cudaMemcpy3DParms back{};
    back.srcPtr = memory;
    back.dstPtr = make_cudaPitchedPtr(out.data(), 20, 20, 5);
    back.extent = extent;
    back.kind = cudaMemcpyDeviceToHost;
    if (cudaMemcpy3D(&back)) return false;
    for (int z = 0; z < 3; ++z)
        for (int y = 0; y < 5; ++y)
            for (int x = 0; x < 20; ++x) {
                const bool copied = z == 2 && y < 3 && x >= 2 && x < 10;
                if (out[(z * 5 + y) * 20 + x] != (copied ? in[((z - 1) * 5 + y + 1) * 20 + x + 2] : 7)) return false;
            }
    return true;
}

// -- the heap of kernels

struct Link {
    int value;
    Link* next;
};

__global__ void grow(Link** lists, int many) {
    Link* head = nullptr;
    for (int k = 0; k < many; ++k) head = new Link{int(threadIdx.x + blockIdx.x * blockDim.x) * 100 + k, head};
    lists[blockIdx.x * blockDim.x + threadIdx.x] = head;
}
__global__ void take_down(Link** lists, long long* sums) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long sum = 0;
    for (Link* at = lists[i]; at != nullptr;) {
        Link* const next = at->next;
        sum += at->value;
        delete at;
        at = next;
    }
    sums[i] = sum;
}
__global__ void exhaust(int* refused, size_t bytes) {
    void* const memory = malloc(bytes);
    refused[threadIdx.x] = memory == nullptr;
    free(memory);
}
__global__ void free_twice() {
    void* const memory = malloc(16);
    free(memory);
    free(memory);  // AGAIN
}

bool heap() {
    constexpr int kLists = 256;
    Link** lists;
    long long *sums, got[kLists];
    cudaMalloc(&lists, kLists * sizeof *lists);
    cudaMalloc(&sums, sizeof got);
    for (int round = 0; round < 3; ++round) {
        grow<<<4, 64>>>(lists, 20);
        take_down<<<2, 128>>>(lists, sums);
        if (cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost)) return false;
        for (int i = 0; i < kLists; ++i)
            if (got[i] != i * 2000 + 190) return false;
    }
    return true;
}

// A heap has at least as many bytes as were asked for, so that only what exceeds it by far is refused for certain.
bool small_heap() {
    constexpr size_t kAsked = 1 << 20, kFar = size_t{1} << 32;
    int *refused, got[32];
    size_t limit = 0;
    cudaMalloc(&refused, sizeof got);
    if (const cudaError_t error = cudaDeviceSetLimit(cudaLimitMallocHeapSize, kAsked))
        return std::printf("limit: %s\n", cudaGetErrorName(error)), false;
    exhaust<<<1, 32>>>(refused, kFar);
    cudaMemcpy(got, refused, sizeof got, cudaMemcpyDeviceToHost);
    for (int one : got)
        if (!one) return std::puts("4 GiB of a heap of 1 MiB"), false;
    exhaust<<<1, 32>>>(refused, 1 << 10);
    cudaMemcpy(got, refused, sizeof got, cudaMemcpyDeviceToHost);
    cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize);
    const cudaError_t late = cudaDeviceSetLimit(cudaLimitMallocHeapSize, 2 * kAsked);
    if (got[0] || limit < kAsked || late != cudaErrorInvalidValue)
        return std::printf("1 KiB refused: %d, limit %zu, later %s\n", got[0], limit, cudaGetErrorName(late)), false;
    return true;
}

__global__ void fill_heap(unsigned long long* counts, size_t bytes) {
    unsigned long long count = 0;
    while (count < (1ull << 24) && malloc(bytes) != nullptr) ++count;
    counts[0] = count;
}

// Prints what the guide leaves open: how large a heap is that was to have so many bytes, and how many blocks it holds.
bool heap_facts(size_t asked, size_t bytes) {
    unsigned long long *counts, count = 0;
    size_t before = 0, after = 0, used = 0;
    cudaMalloc(&counts, sizeof *counts);
    cudaDeviceGetLimit(&before, cudaLimitMallocHeapSize);
    const cudaError_t set = asked != 0 ? cudaDeviceSetLimit(cudaLimitMallocHeapSize, asked) : cudaSuccess;
    cudaDeviceGetLimit(&after, cudaLimitMallocHeapSize);
    fill_heap<<<1, 1>>>(counts, bytes);
    const cudaError_t end = cudaMemcpy(&count, counts, sizeof count, cudaMemcpyDeviceToHost);
    const cudaError_t late = cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20);
    cudaDeviceGetLimit(&used, cudaLimitMallocHeapSize);
    std::printf("asked %zu (%s): limit %zu, then %zu; blocks of %zu bytes: %llu (%s); set later: %s, limit %zu\n", asked,
                cudaGetErrorName(set), before, after, bytes, count, cudaGetErrorName(end), cudaGetErrorName(late), used);
    return end == cudaSuccess;
}

bool freed_twice() {
    free_twice<<<1, 1>>>();
    return cudaDeviceSynchronize() != cudaSuccess;
}

// -- one device, whose memory the host reaches

// Managed memory with hints on where it should be, from a pool of one's own, and what is asked about peers.
bool one_device() {
    float *x, *y;
    if (cudaMallocManaged(&x, kCount * 4)) return false;
    for (int i = 0; i < kCount; ++i) x[i] = float(i);
#if CUDART_VERSION >= 13000
    const cudaMemLocation here{cudaMemLocationTypeDevice, 0};
    if (cudaMemAdvise(x, kCount * 4, cudaMemAdviseSetPreferredLocation, here)) return false;
    if (cudaMemPrefetchAsync(x, kCount * 4, here, 0)) return false;
#else
    if (cudaMemAdvise(x, kCount * 4, cudaMemAdviseSetPreferredLocation, 0)) return false;
    if (cudaMemPrefetchAsync(x, kCount * 4, 0)) return false;
#endif
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, 0};
    cudaMemPool_t pool;
    if (cudaMemPoolCreate(&pool, &properties)) return false;
    if (cudaMallocFromPoolAsync((void**)&y, kCount * 4, pool, nullptr)) return false;
    if (cudaMemcpyPeer(y, 0, x, 0, kCount * 4)) return false;
    add<<<(kCount + 255) / 256, 256>>>(x, y, kCount);
    if (cudaDeviceSynchronize() || cudaFreeAsync(y, nullptr) || cudaMemPoolDestroy(pool)) return false;
    for (int i = 0; i < kCount; ++i)
        if (x[i] != 2.0f * i) return std::printf("%d: %g\n", i, x[i]), false;
    int device = -1, peer = -1;
    char id[32];
    if (cudaDeviceGetPCIBusId(id, sizeof id, 0) || cudaDeviceGetByPCIBusId(&device, id) || device != 0) return false;
    if (cudaDeviceCanAccessPeer(&peer, 0, 0) || peer != 0) return false;
    const char* name;
    if (cudaFuncGetName(&name, (const void*)scale) || !std::strstr(name, "scale")) return false;
    return cudaFree(x) == cudaSuccess;
}

int main(int count, char** arguments) {
    const auto is = [&](const char* name) { return std::strcmp(arguments[1], name) == 0; };
    if (is("graph")) return !graph();
    if (is("circle")) return !circle();
    if (is("child")) return !child();
    if (is("boxes")) return !boxes();
    if (is("heap")) return !heap();
    if (is("small_heap")) return !small_heap();
    if (is("one_device")) return !one_device();
    if (is("freed_twice")) return !freed_twice();
    if (is("heap_facts") && count == 4) return !heap_facts(std::strtoull(arguments[2], nullptr, 0), std::strtoull(arguments[3], nullptr, 0));
    return 2;
}

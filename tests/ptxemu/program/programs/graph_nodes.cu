// What programs ask of the nodes of graphs, and change: each case ends with 0 when all is as the CUDA runtime has it.
#include <cstdio>
#include <cstring>
#include <vector>

__device__ int kept[4];

__global__ void add(int* x, int by, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += by;
}

static int* fresh() {
    int* x = nullptr;
    cudaMalloc(&x, 4 * sizeof(int));
    cudaMemset(x, 0, 4 * sizeof(int));
    return x;
}
static int first(const int* x) {
    int value = -1;
    cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost);
    return value;
}
static cudaKernelNodeParams call(void** arguments) {
    cudaKernelNodeParams node{};
    node.func = reinterpret_cast<void*>(add), node.gridDim = {1}, node.blockDim = {32}, node.kernelParams = arguments;
    return node;
}
static bool launched(cudaGraph_t graph) {
    cudaGraphExec_t executable;
    return !cudaGraphInstantiate(&executable, graph, 0) && !cudaGraphLaunch(executable, nullptr) && !cudaDeviceSynchronize();
}

// Arguments are read from the node, changed, and set again: in the node, and in what was made of it before.
static bool kernel() {
    int *x = fresh(), by = 3, n = 4;
    void* arguments[] = {&x, &by, &n};
    cudaKernelNodeParams given = call(arguments), told{};
    cudaGraph_t graph;
    cudaGraphNode_t node, empty;
    cudaGraphExec_t before;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddKernelNode(&node, graph, nullptr, 0, &given);
    cudaGraphAddEmptyNode(&empty, graph, &node, 1);
    cudaGraphInstantiate(&before, graph, 0);
    by = 100;  // the node has a copy
    if (cudaGraphKernelNodeGetParams(node, &told) || told.func != given.func || told.blockDim.x != 32) return false;
    if (*static_cast<int*>(told.kernelParams[1]) != 3 || *static_cast<int**>(told.kernelParams[0]) != x) return false;
    int more = 5;
    void* others[] = {told.kernelParams[0], &more, told.kernelParams[2]};
    told.kernelParams = others;
    if (cudaGraphKernelNodeSetParams(node, &told) || !launched(graph) || first(x) != 5) return false;
    if (cudaGraphLaunch(before, nullptr) || first(x) != 8) return false;
    more = 10;
    if (cudaGraphExecKernelNodeSetParams(before, node, &told) || cudaGraphLaunch(before, nullptr) || first(x) != 18) return false;
    return cudaGraphKernelNodeGetParams(empty, &told) == cudaErrorInvalidValue;
}

static bool copies_and_fills() {
    int *x = fresh(), *y = fresh(), out = -1, other = -1;
    cudaGraph_t graph;
    cudaGraphNode_t fill, copy, back;
    cudaGraphCreate(&graph, 0);
    cudaMemsetParams sevens{};
    sevens.dst = x, sevens.value = 7, sevens.elementSize = 4, sevens.width = 4, sevens.height = 1;
    cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &sevens);
    cudaGraphAddMemcpyNode1D(&copy, graph, &fill, 1, y, x, 16, cudaMemcpyDeviceToDevice);
    cudaGraphAddMemcpyNode1D(&back, graph, &copy, 1, &out, y, 4, cudaMemcpyDeviceToHost);
    cudaMemsetParams filled{};
    cudaMemcpy3DParms box{};
    if (cudaGraphMemsetNodeGetParams(fill, &filled) || filled.dst != x || filled.value != 7) return false;
    if (cudaGraphMemcpyNodeGetParams(copy, &box) || box.dstPtr.ptr != y || box.extent.width != 16) return false;
    if (!launched(graph) || out != 7) return false;
    filled.value = 9;
    if (cudaGraphMemsetNodeSetParams(fill, &filled)) return false;
    if (cudaGraphMemcpyNodeSetParams1D(back, &other, y, 4, cudaMemcpyDeviceToHost)) return false;
    if (!launched(graph) || other != 9 || out != 7) return false;
    cudaGraphExec_t executable;
    cudaGraphInstantiate(&executable, graph, 0);
    filled.value = 11;
    if (cudaGraphExecMemsetNodeSetParams(executable, fill, &filled)) return false;
    if (cudaGraphExecMemcpyNodeSetParams1D(executable, back, &out, y, 4, cudaMemcpyDeviceToHost)) return false;
    if (cudaGraphLaunch(executable, nullptr) || out != 11) return false;
    unsigned enabled = 7;
    if (cudaGraphNodeSetEnabled(executable, fill, 0) || cudaGraphNodeGetEnabled(executable, fill, &enabled)) return false;
    cudaMemset(x, 0, 16);
    return !enabled && !cudaGraphLaunch(executable, nullptr) && out == 0;
}

static bool symbols() {
    int in[4] = {1, 2, 3, 4}, out[2] = {};
    cudaGraph_t graph;
    cudaGraphNode_t to, from;
    cudaGraphCreate(&graph, 0);
    if (cudaGraphAddMemcpyNodeToSymbol(&to, graph, nullptr, 0, kept, in, 16, 0, cudaMemcpyHostToDevice)) return false;
    if (cudaGraphAddMemcpyNodeFromSymbol(&from, graph, &to, 1, out, kept, 8, 8, cudaMemcpyDeviceToHost)) return false;
    const bool beyond = cudaGraphAddMemcpyNodeFromSymbol(&from, graph, &to, 1, out, kept, 8, 12, cudaMemcpyDeviceToHost);
    return beyond && launched(graph) && out[0] == 3 && out[1] == 4;
}

static void tell(void* data) { ++*static_cast<int*>(data); }

static bool hosts_and_events() {
    int calls = 0, others = 0;
    cudaHostNodeParams host{tell, &calls}, told{};
    cudaEvent_t begin, end, seen;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    cudaGraph_t graph;
    cudaGraphNode_t start, wait, node, stop;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddEventRecordNode(&start, graph, nullptr, 0, begin);
    cudaGraphAddEventWaitNode(&wait, graph, &start, 1, begin);
    cudaGraphAddHostNode(&node, graph, &wait, 1, &host);
    cudaGraphAddEventRecordNode(&stop, graph, &node, 1, begin);
    if (cudaGraphEventRecordNodeSetEvent(stop, end) || cudaGraphEventRecordNodeGetEvent(stop, &seen) || seen != end) return false;
    if (cudaGraphHostNodeGetParams(node, &told) || told.fn != tell || told.userData != &calls || !launched(graph)) return false;
    told.userData = &others;
    float milliseconds = -1;
    if (cudaEventElapsedTime(&milliseconds, begin, end) || milliseconds < 0) return false;
    return !cudaGraphHostNodeSetParams(node, &told) && launched(graph) && calls == 1 && others == 1;
}

#if CUDART_VERSION >= 13000
#define NO_EDGES nullptr,
#else
#define NO_EDGES
#endif

static bool edges() {
    cudaGraph_t graph, copy;
    cudaGraphNode_t a, b, c, list[4], ends[4], same;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddEmptyNode(&a, graph, nullptr, 0);
    cudaGraphAddEmptyNode(&b, graph, &a, 1);
    cudaGraphAddEmptyNode(&c, graph, &b, 1);
    size_t count = 4;
    if (cudaGraphGetEdges(graph, list, ends, NO_EDGES &count) || count != 2 || list[0] != a || ends[1] != c) return false;
    count = 4;
    if (cudaGraphNodeGetDependencies(c, list, NO_EDGES &count) || count != 1 || list[0] != b) return false;
    count = 4;
    if (cudaGraphNodeGetDependentNodes(a, list, NO_EDGES &count) || count != 1 || list[0] != b) return false;
    cudaGraphClone(&copy, graph);
    if (cudaGraphNodeFindInClone(&same, b, copy) || same == b) return false;
    if (cudaGraphRemoveDependencies(graph, &a, &b, NO_EDGES 1)) return false;
    if (!cudaGraphRemoveDependencies(graph, &a, &b, NO_EDGES 1)) return false;
    if (cudaGraphDestroyNode(b) || cudaGraphGetNodes(graph, nullptr, &count) || count != 2) return false;
    return !cudaGraphGetNodes(copy, nullptr, &count) && count == 3 && launched(graph) && launched(copy);
}

// The graph within a graph is a copy, which its handle changes; what was made of it takes the contents of another.
static bool child() {
    int *x = fresh(), by = 1, n = 4;
    void* arguments[] = {&x, &by, &n};
    cudaKernelNodeParams parameters = call(arguments);
    cudaGraph_t inner, outer, held;
    cudaGraphNode_t node, whole, found;
    cudaGraphCreate(&inner, 0), cudaGraphCreate(&outer, 0);
    cudaGraphAddKernelNode(&node, inner, nullptr, 0, &parameters);
    cudaGraphAddChildGraphNode(&whole, outer, nullptr, 0, inner);
    by = 50;
    cudaGraphKernelNodeSetParams(node, &parameters);
    if (!launched(outer) || first(x) != 1) return false;
    size_t count = 1;
    if (cudaGraphChildGraphNodeGetGraph(whole, &held) || held == inner || cudaGraphGetNodes(held, &found, &count)) return false;
    by = 4;
    if (cudaGraphKernelNodeSetParams(found, &parameters) || !launched(outer) || first(x) != 5) return false;
    cudaGraphExec_t executable;
    cudaGraphInstantiate(&executable, outer, 0);
    if (cudaGraphExecChildGraphNodeSetParams(executable, whole, inner) || cudaGraphLaunch(executable, nullptr)) return false;
    return first(x) == 55;
}

// Two branches that were captured are two branches, whose nodes can be asked as if they had been added.
static bool captured() {
    int *x = fresh(), *y = fresh();
    cudaStream_t stream, side;
    cudaEvent_t fork, join;
    cudaStreamCreate(&stream), cudaStreamCreate(&side), cudaEventCreate(&fork), cudaEventCreate(&join);
    cudaGraph_t graph;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaMemsetAsync(x, 0, 16, stream);
    cudaEventRecord(fork, stream), cudaStreamWaitEvent(side, fork, 0);
    add<<<1, 32, 0, stream>>>(x, 2, 4);
    add<<<1, 32, 0, side>>>(y, 3, 4);
    cudaEventRecord(join, side), cudaStreamWaitEvent(stream, join, 0);
    cudaMemcpyAsync(y, x, 4, cudaMemcpyDeviceToDevice, stream);
    if (cudaStreamEndCapture(stream, &graph)) return false;
    size_t nodes = 8, edges = 8;
    cudaGraphNode_t list[8], from[8], to[8];
    cudaGraphGetNodes(graph, list, &nodes), cudaGraphGetEdges(graph, from, to, NO_EDGES &edges);
    if (nodes != 4 || edges != 4) return false;
    cudaKernelNodeParams told{};
    cudaMemcpy3DParms box{};
    if (cudaGraphKernelNodeGetParams(list[2], &told) || *static_cast<int*>(told.kernelParams[1]) != 3) return false;
    if (cudaGraphMemcpyNodeGetParams(list[3], &box) || box.dstPtr.ptr != y) return false;
    // A branch that is not joined is an error.
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaEventRecord(fork, stream), cudaStreamWaitEvent(side, fork, 0);
    add<<<1, 32, 0, side>>>(y, 3, 4);
    cudaGraph_t none;
    if (cudaStreamEndCapture(stream, &none) != cudaErrorStreamCaptureUnjoined || none != nullptr) return false;
    cudaGetLastError();
    return launched(graph) && first(y) == 2;
}

#if CUDART_VERSION >= 13000
static bool any_kind() {
    int *x = fresh(), by = 6, n = 4;
    void* arguments[] = {&x, &by, &n};
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphCreate(&graph, 0);
    cudaGraphNodeParams given{};
    given.type = cudaGraphNodeTypeKernel;
    given.kernel.func = reinterpret_cast<void*>(add), given.kernel.gridDim = {1}, given.kernel.blockDim = {32};
    given.kernel.kernelParams = arguments;
    if (cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &given)) return false;
    by = 7;
    return launched(graph) && first(x) == 6 && !cudaGraphNodeSetParams(node, &given) && launched(graph) && first(x) == 13;
}
#else
static bool any_kind() { return true; }
#endif

// Neither is emulated: the program ends with that.
static bool allocates() {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    void* memory;
    return cudaMallocAsync(&memory, 16, stream) != cudaSuccess;
}

int main(int, char** arguments) {
    const struct {
        const char* name;
        bool (*run)();
    } cases[] = {{"kernel", kernel}, {"copies", copies_and_fills}, {"symbols", symbols}, {"events", hosts_and_events},
                 {"edges", edges}, {"child", child}, {"captured", captured}, {"any_kind", any_kind},
                 {"allocates", allocates}};
    for (const auto& one : cases)
        if (!std::strcmp(one.name, arguments[1])) return one.run() ? 0 : 3;
    return 5;
}

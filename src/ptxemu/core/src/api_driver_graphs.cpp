// The CUDA driver: graphs, which are the runtime's; and linking of one PTX text, which is the text.
#include <fstream>
#include <iterator>

#include "driver.hpp"
#include "streams.hpp"

namespace {

using namespace ptxemu;

// The kernel's arguments in the runtime's words; `arguments` holds what they point to.
CUresult runtime_node(const CUDA_KERNEL_NODE_PARAMS& given, cudaKernelNodeParams& node, std::vector<void*>& arguments) {
    const void* handle = given.func != nullptr ? handle_of(given.func) : reinterpret_cast<const void*>(given.kern);
    const KernelEntry* kernel = runtime().kernel(handle);
    if (kernel == nullptr || kernel->function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    node = {};
    node.func = const_cast<void*>(handle);
    node.gridDim = {given.gridDimX, given.gridDimY, given.gridDimZ};
    node.blockDim = {given.blockDimX, given.blockDimY, given.blockDimZ};
    node.sharedMemBytes = given.sharedMemBytes;
    node.kernelParams = given.kernelParams;
    if (given.kernelParams != nullptr || kernel->function->parameters.empty()) return CUDA_SUCCESS;
    if (given.extra == nullptr || !unpack(*kernel, given.extra, arguments)) return CUDA_ERROR_INVALID_VALUE;
    node.kernelParams = arguments.data();
    return CUDA_SUCCESS;
}

cudaMemsetParams runtime_fill(const CUDA_MEMSET_NODE_PARAMS& given) {
    cudaMemsetParams same{};
    same.dst = pointer_of(given.dst), same.pitch = given.pitch, same.value = given.value;
    same.elementSize = given.elementSize, same.width = given.width, same.height = given.height;
    return same;
}

// What cuLinkComplete returns is the text that was added, which modules are made of.
struct Linking {
    std::string text;
    bool added = false;
};
Linking* linking_of(CUlinkState state) { return reinterpret_cast<Linking*>(state); }

CUresult add_text(Linking& linking, CUjitInputType type, std::string text) {
    if (type != CU_JIT_INPUT_PTX) return lacks_in_driver("linking of anything but PTX");
    if (linking.added) return lacks_in_driver("linking of several modules");
    while (!text.empty() && text.back() == '\0') text.pop_back();
    linking = {std::move(text), true};
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned flags) { return result_of(cudaGraphCreate(graph, flags)); }
CUresult cuGraphDestroy(CUgraph graph) { return result_of(cudaGraphDestroy(graph)); }
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
    return result_of(cudaGraphGetNodes(graph, nodes, count));
}
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
    return result_of(cudaGraphGetRootNodes(graph, nodes, count));
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
    // The types of both have the same numbers.
    return result_of(cudaGraphNodeGetType(node, reinterpret_cast<cudaGraphNodeType*>(type)));
}

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS* parameters) {
    cudaKernelNodeParams same;
    std::vector<void*> arguments;
    if (const CUresult error = runtime_node(*parameters, same, arguments)) return error;
    return result_of(cudaGraphAddKernelNode(node, graph, after, count, &same));
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
    cudaKernelNodeParams same;
    std::vector<void*> arguments;
    if (const CUresult error = runtime_node(*parameters, same, arguments)) return error;
    return result_of(cudaGraphExecKernelNodeSetParams(executable, node, &same));
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
    cudaKernelNodeParams same;
    std::vector<void*> arguments;
    if (const CUresult error = runtime_node(*parameters, same, arguments)) return error;
    return result_of(cudaGraphKernelNodeSetParams(node, &same));
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* told) {
    cudaKernelNodeParams same;
    if (const cudaError_t error = cudaGraphKernelNodeGetParams(node, &same)) return result_of(error);
    *told = {};
    told->func = static_cast<CUfunction>(same.func);
    told->gridDimX = same.gridDim.x, told->gridDimY = same.gridDim.y, told->gridDimZ = same.gridDim.z;
    told->blockDimX = same.blockDim.x, told->blockDimY = same.blockDim.y, told->blockDimZ = same.blockDim.z;
    told->sharedMemBytes = same.sharedMemBytes;
    told->kernelParams = same.kernelParams;
    return CUDA_SUCCESS;
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                              const CUDA_MEMCPY3D* box, CUcontext) {
    return result_of(add_node(node, graph, after, count, cudaGraphNodeTypeMemcpy, *box));
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* told) {
    const auto* box = std::get_if<CUDA_MEMCPY3D>(&node_of(node)->content);
    if (box == nullptr) return lacks_in_driver("a question of the driver for a copy that the runtime has put into a graph");
    *told = *box;
    return CUDA_SUCCESS;
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* box) {
    return result_of(change_node(node, cudaGraphNodeTypeMemcpy, *box));
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D* box, CUcontext) {
    return result_of(change_step(executable, node, cudaGraphNodeTypeMemcpy, *box));
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* told) {
    cudaMemsetParams same;
    if (const cudaError_t error = cudaGraphMemsetNodeGetParams(node, &same)) return result_of(error);
    *told = {reinterpret_cast<CUdeviceptr>(same.dst), same.pitch, same.value, same.elementSize, same.width, same.height};
    return CUDA_SUCCESS;
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* given) {
    return result_of(change_node(node, cudaGraphNodeTypeMemset, runtime_fill(*given)));
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* given,
                                        CUcontext) {
    return result_of(change_step(executable, node, cudaGraphNodeTypeMemset, runtime_fill(*given)));
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* told) {
    cudaHostNodeParams same;
    if (const cudaError_t error = cudaGraphHostNodeGetParams(node, &same)) return result_of(error);
    *told = {same.fn, same.userData};
    return CUDA_SUCCESS;
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* call) {
    return result_of(change_node(node, cudaGraphNodeTypeHost, cudaHostNodeParams{call->fn, call->userData}));
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* call) {
    return result_of(change_step(executable, node, cudaGraphNodeTypeHost, cudaHostNodeParams{call->fn, call->userData}));
}
CUresult cuGraphClone(CUgraph* copy, CUgraph graph) { return result_of(cudaGraphClone(copy, graph)); }
CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
    return result_of(cudaGraphNodeFindInClone(node, original, clone));
}
CUresult cuGraphDestroyNode(CUgraphNode node) { return result_of(cudaGraphDestroyNode(node)); }
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* child) {
    return result_of(cudaGraphChildGraphNodeGetGraph(node, child));
}
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraph child) {
    return result_of(cudaGraphExecChildGraphNodeSetParams(executable, node, child));
}
CUresult cuGraphNodeSetEnabled(CUgraphExec executable, CUgraphNode node, unsigned enabled) {
    return result_of(cudaGraphNodeSetEnabled(executable, node, enabled));
}
CUresult cuGraphNodeGetEnabled(CUgraphExec executable, CUgraphNode node, unsigned* enabled) {
    return result_of(cudaGraphNodeGetEnabled(executable, node, enabled));
}
CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* given, CUcontext) {
    const cudaMemsetParams same = runtime_fill(*given);
    return result_of(cudaGraphAddMemsetNode(node, graph, after, count, &same));
}
CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                            const CUDA_HOST_NODE_PARAMS* call) {
    const cudaHostNodeParams same{call->fn, call->userData};
    return result_of(cudaGraphAddHostNode(node, graph, after, count, &same));
}
CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count) {
    return result_of(cudaGraphAddEmptyNode(node, graph, after, count));
}
CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUgraph child) {
    return result_of(cudaGraphAddChildGraphNode(node, graph, after, count, child));
}
#if CUDA_VERSION >= 13000
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*,
                                size_t count) {
    return result_of(cudaGraphAddDependencies(graph, from, to, nullptr, count));
}
#else
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
    return result_of(cudaGraphAddDependencies(graph, from, to, count));
}
#endif
CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
    return result_of(cudaGraphInstantiateWithFlags(executable, graph, flags));
}
CUresult cuGraphUpload(CUgraphExec executable, CUstream stream) { return result_of(cudaGraphUpload(executable, stream)); }
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) { return result_of(cudaGraphLaunch(executable, stream)); }
CUresult cuGraphExecDestroy(CUgraphExec executable) { return result_of(cudaGraphExecDestroy(executable)); }

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
    return result_of(cudaStreamBeginCapture(stream, static_cast<cudaStreamCaptureMode>(mode)));
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) { return result_of(cudaStreamEndCapture(stream, graph)); }
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
    return result_of(cudaStreamIsCapturing(stream, reinterpret_cast<cudaStreamCaptureStatus*>(status)));
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*) { return CUDA_SUCCESS; }

CUresult cuLinkCreate(unsigned, CUjit_option*, void**, CUlinkState* state) {
    *state = reinterpret_cast<CUlinkState>(new Linking);
    return CUDA_SUCCESS;
}
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes, const char*, unsigned,
                       CUjit_option*, void**) {
    return add_text(*linking_of(state), type, std::string(static_cast<const char*>(data), bytes));
}
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned, CUjit_option*, void**) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    return add_text(*linking_of(state), type, {std::istreambuf_iterator<char>(file), {}});
}
CUresult cuLinkComplete(CUlinkState state, void** image, size_t* bytes) {
    if (!linking_of(state)->added) return CUDA_ERROR_INVALID_VALUE;
    *image = linking_of(state)->text.data();
    if (bytes != nullptr) *bytes = linking_of(state)->text.size();
    return CUDA_SUCCESS;
}
CUresult cuLinkDestroy(CUlinkState state) {
    delete linking_of(state);
    return CUDA_SUCCESS;
}

}  // extern "C"

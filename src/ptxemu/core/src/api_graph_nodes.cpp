// Nodes of graphs, added one by one.
#include "boxes.hpp"
#include "driver.hpp"
#include "streams.hpp"

namespace ptxemu {

cudaError_t kernel_content(const cudaKernelNodeParams& parameters, const KernelCall* before, Content& content) {
    std::vector<void*> unpacked;
    void** arguments = parameters.kernelParams;
    if (arguments == nullptr && parameters.extra != nullptr) {
        const KernelEntry* entry = runtime().kernel(parameters.func);
        if (entry == nullptr || entry->function == nullptr) return runtime().fail(cudaErrorInvalidDeviceFunction);
        if (!unpack(*entry, parameters.extra, unpacked)) return runtime().fail(cudaErrorInvalidValue);
        arguments = unpacked.data();
    }
    PreparedLaunch prepared;
    const cudaError_t error = runtime().prepare(
        parameters.func, parameters.gridDim, parameters.blockDim, arguments, parameters.sharedMemBytes,
        before != nullptr && before->launch.cooperative, before != nullptr ? before->launch.cluster : dim3{0, 0, 0}, prepared);
    if (error != cudaSuccess) return error;
    content = kernel_call(parameters.func, std::move(prepared),
                          before != nullptr ? before->attributes : std::vector<cudaLaunchAttribute>{});
    return cudaSuccess;
}

cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t to, const cudaGraphNode_t* after, size_t count,
                     cudaGraphNodeType type, Content content) {
    Graph& graph = *graph_of(to);
    std::vector<const Node*> before;
    for (size_t k = 0; k < count; ++k) {
        before.push_back(node_of(after[k]));
        if (!graph.holds(before.back())) return runtime().fail(cudaErrorInvalidValue);
    }
    Work work = work_of(content, type);
    *node = node_handle(graph.add(type, std::move(content), std::move(work), std::move(before)));
    return cudaSuccess;
}

}  // namespace ptxemu

extern "C" {

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   const cudaKernelNodeParams* parameters) {
    Content content;
    if (const cudaError_t error = kernel_content(*parameters, nullptr, content)) return error;
    return add_node(node, graph, after, count, cudaGraphNodeTypeKernel, std::move(content));
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   const cudaMemcpy3DParms* box) {
    return add_node(node, graph, after, count, cudaGraphNodeTypeMemcpy, *box);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                     size_t count, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return add_node(node, graph, after, count, cudaGraphNodeTypeMemcpy, box_of_bytes(to, from, bytes, kind));
}
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                           size_t count, const void* symbol, const void* from, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind) {
    void* const to = symbol_range(symbol, bytes, offset);
    if (to == nullptr) return runtime().fail(cudaErrorInvalidSymbol);
    return cudaGraphAddMemcpyNode1D(node, graph, after, count, to, from, bytes, kind);
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                             size_t count, void* to, const void* symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind) {
    const void* const from = symbol_range(symbol, bytes, offset);
    if (from == nullptr) return runtime().fail(cudaErrorInvalidSymbol);
    return cudaGraphAddMemcpyNode1D(node, graph, after, count, to, from, bytes, kind);
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   const cudaMemsetParams* fill) {
    return add_node(node, graph, after, count, cudaGraphNodeTypeMemset, *fill);
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                 const cudaHostNodeParams* call) {
    return add_node(node, graph, after, count, cudaGraphNodeTypeHost, *call);
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count) {
    return add_node(node, graph, after, count, cudaGraphNodeTypeEmpty, {});
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                        size_t count, cudaEvent_t event) {
    return add_node(node, graph, after, count, cudaGraphNodeTypeEventRecord, event);
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                      size_t count, cudaEvent_t event) {
    return add_node(node, graph, after, count, cudaGraphNodeTypeWaitEvent, event);
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                       size_t count, cudaGraph_t child) {
    std::shared_ptr<Graph> copy = graph_of(child)->clone();
    if (Steps steps; !copy->order(steps)) return runtime().fail(cudaErrorInvalidValue);
    const cudaError_t error = add_node(node, graph, after, count, cudaGraphNodeTypeGraph, {});
    if (error == cudaSuccess) node_of(*node)->child = std::move(copy);
    return error;
}

#if CUDART_VERSION >= 13000
cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                             const cudaGraphEdgeData*, size_t count, cudaGraphNodeParams* of) {
    switch (of->type) {
        case cudaGraphNodeTypeEmpty: return cudaGraphAddEmptyNode(node, graph, after, count);
        case cudaGraphNodeTypeGraph: return cudaGraphAddChildGraphNode(node, graph, after, count, of->graph.graph);
        default: break;
    }
    Content content;
    if (const cudaError_t error = content_of(*of, nullptr, content)) return error;
    return add_node(node, graph, after, count, of->type, std::move(content));
}
#endif

}  // extern "C"

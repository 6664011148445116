// Graphs that were instantiated: changed and launched.
#include <algorithm>

#include "boxes.hpp"
#include "streams.hpp"

namespace {

using namespace ptxemu;

// Launches that are recorded into another graph share the steps.
struct Executable {
    std::shared_ptr<const Steps> steps;
    unsigned long long flags;
};

Executable* executable_of(cudaGraphExec_t graph) { return reinterpret_cast<Executable*>(graph); }

// Null where the graph's dependencies go round a circle.
std::shared_ptr<const Steps> instantiated(const Graph& graph) {
    auto steps = std::make_shared<Steps>();
    return graph.order(*steps) ? steps : nullptr;
}

// Changes a step; launches that were recorded before keep the old one.
template <class Change>
cudaError_t with_step(cudaGraphExec_t executable, const Node* node, Change change) {
    auto changed = std::make_shared<Steps>(*executable_of(executable)->steps);
    const auto found = std::find_if(changed->begin(), changed->end(), [&](const Step& one) { return one.node == node; });
    if (found == changed->end() || !change(*found)) return runtime().fail(cudaErrorInvalidValue);
    executable_of(executable)->steps = std::move(changed);
    return cudaSuccess;
}

// Gives the steps of one graph what the nodes of another, of the same form, do.
cudaError_t adopt(cudaGraphExec_t executable, const Graph& graph, const Graph& from) {
    if (graph.nodes.size() != from.nodes.size()) return runtime().fail(cudaErrorInvalidValue);
    for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
        const Node &node = *graph.nodes[k], &source = *from.nodes[k];
        if (node.type != source.type || !node.child != !source.child) return runtime().fail(cudaErrorInvalidValue);
        const cudaError_t error = node.child ? adopt(executable, *node.child, *source.child)
                                             : with_step(executable, &node, [&](Step& step) {
                                                   step.work = source.work;
                                                   return true;
                                               });
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

bool may_be_disabled(cudaGraphNodeType type) {
    return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
}

}  // namespace

namespace ptxemu {

cudaError_t change_step(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraphNodeType type, const Content& content) {
    return with_step(executable, node_of(node), [&](Step& step) {
        if (step.type == type) step.work = work_of(content, type);
        return step.type == type;
    });
}

}  // namespace ptxemu

extern "C" {

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    if (graph == nullptr) return runtime().fail(cudaErrorInvalidValue);
    std::shared_ptr<const Steps> steps = instantiated(*graph_of(graph));
    if (!steps) return runtime().fail(cudaErrorInvalidValue);
    *executable = reinterpret_cast<cudaGraphExec_t>(new Executable{std::move(steps), flags});
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiate(executable, graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* executable, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* parameters) {
    const cudaError_t error = cudaGraphInstantiate(executable, graph, parameters->flags);
    parameters->errNode_out = nullptr;
    parameters->result_out = error == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateInvalidStructure;
    return error;
}
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long* flags) {
    *flags = executable_of(executable)->flags;
    return cudaSuccess;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result) {
    *result = {};
    std::shared_ptr<const Steps> steps = instantiated(*graph_of(graph));
    if (!steps) return runtime().fail(cudaErrorInvalidValue);
    executable_of(executable)->steps = std::move(steps);
    return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    if (executable == nullptr) return runtime().fail(cudaErrorInvalidValue);
    return submit(stream, [steps = executable_of(executable)->steps] { return run(*steps); }, cudaGraphNodeTypeGraph);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    delete executable_of(executable);
    return cudaSuccess;
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned enabled) {
    return with_step(executable, node_of(node), [&](Step& step) {
        if (may_be_disabled(step.type)) step.enabled = enabled != 0;
        return may_be_disabled(step.type);
    });
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned* enabled) {
    return with_step(executable, node_of(node), [&](const Step& step) {
        *enabled = step.enabled ? 1 : 0;
        return may_be_disabled(step.type);
    });
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
    Content content;
    const auto* before = std::get_if<SharedKernelCall>(&node_of(node)->content);
    if (const cudaError_t error = kernel_content(*parameters, before != nullptr ? before->get() : nullptr, content)) return error;
    return change_step(executable, node, cudaGraphNodeTypeKernel, content);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node, const cudaMemcpy3DParms* box) {
    return change_step(executable, node, cudaGraphNodeTypeMemcpy, *box);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                               const void* from, size_t bytes, cudaMemcpyKind kind) {
    return change_step(executable, node, cudaGraphNodeTypeMemcpy, box_of_bytes(to, from, bytes, kind));
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t executable, cudaGraphNode_t node, const void* symbol,
                                                     const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    void* const to = symbol_range(symbol, bytes, offset);
    if (to == nullptr) return runtime().fail(cudaErrorInvalidSymbol);
    return cudaGraphExecMemcpyNodeSetParams1D(executable, node, to, from, bytes, kind);
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                                       const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    const void* const from = symbol_range(symbol, bytes, offset);
    if (from == nullptr) return runtime().fail(cudaErrorInvalidSymbol);
    return cudaGraphExecMemcpyNodeSetParams1D(executable, node, to, from, bytes, kind);
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node, const cudaMemsetParams* fill) {
    return change_step(executable, node, cudaGraphNodeTypeMemset, *fill);
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node, const cudaHostNodeParams* call) {
    return change_step(executable, node, cudaGraphNodeTypeHost, *call);
}
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node, cudaEvent_t event) {
    return change_step(executable, node, cudaGraphNodeTypeEventRecord, event);
}
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node, cudaEvent_t event) {
    return change_step(executable, node, cudaGraphNodeTypeWaitEvent, event);
}
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraph_t child) {
    if (!node_of(node)->child) return runtime().fail(cudaErrorInvalidValue);
    return adopt(executable, *node_of(node)->child, *graph_of(child));
}

#if CUDART_VERSION >= 13000
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraphNodeParams* of) {
    if (of->type == cudaGraphNodeTypeGraph) return cudaGraphExecChildGraphNodeSetParams(executable, node, of->graph.graph);
    const auto* before = std::get_if<SharedKernelCall>(&node_of(node)->content);
    Content content;
    if (const cudaError_t error = content_of(*of, before != nullptr ? before->get() : nullptr, content)) return error;
    return change_step(executable, node, of->type, content);
}
#endif

}  // extern "C"

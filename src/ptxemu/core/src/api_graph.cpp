// Graphs: captured, instantiated, changed, launched. What adds nodes of its own is in api_graph_nodes.cpp.
#include <algorithm>

#include "streams.hpp"

namespace {

using namespace ptxemu;

// Launches that are recorded into another graph share the steps.
using Executable = std::shared_ptr<const Steps>;

Graph* graph_of(cudaGraph_t graph) { return reinterpret_cast<Graph*>(graph); }
Executable* executable_of(cudaGraphExec_t graph) { return reinterpret_cast<Executable*>(graph); }

// Null where the graph's dependencies go round a circle.
Executable instantiated(const Graph& graph) {
    auto steps = std::make_shared<Steps>();
    return graph.order(*steps) ? steps : nullptr;
}

template <class Wanted>
cudaError_t list_nodes(const Graph& graph, cudaGraphNode_t* nodes, size_t* count, Wanted wanted) {
    size_t found = 0;
    for (const auto& one : graph.nodes) {
        if (!wanted(*one)) continue;
        if (nodes != nullptr && found < *count) nodes[found] = reinterpret_cast<cudaGraphNode_t>(one.get());
        ++found;
    }
    *count = nodes != nullptr ? std::min(*count, found) : found;
    return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    if (stream_of(stream) == nullptr) return runtime().fail(cudaErrorStreamCaptureUnsupported);
    if (capture_of(stream)) return runtime().fail(cudaErrorIllegalState);
    stream_of(stream)->capture = std::make_shared<Capture>(Capture{stream});
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    const std::shared_ptr<Capture> capture = capture_of(stream);
    *graph = nullptr;
    if (!capture) return runtime().fail(cudaErrorIllegalState);
    if (capture->origin != stream) return runtime().fail(cudaErrorStreamCaptureUnmatched);
    capture->open = false;
    *graph = reinterpret_cast<cudaGraph_t>(new Graph(std::move(capture->graph)));
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    *status = capture_of(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
// What other streams do meanwhile is never an error here.
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
    *graph = reinterpret_cast<cudaGraph_t>(new Graph);
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    return list_nodes(*graph_of(graph), nodes, count, [](const Node&) { return true; });
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    return list_nodes(*graph_of(graph), nodes, count, [](const Node& one) { return one.after.empty(); });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph_of(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
    if (graph == nullptr) return runtime().fail(cudaErrorInvalidValue);
    Executable steps = instantiated(*graph_of(graph));
    if (!steps) return runtime().fail(cudaErrorInvalidValue);
    *executable = reinterpret_cast<cudaGraphExec_t>(new Executable(std::move(steps)));
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiate(executable, graph, flags);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result) {
    *result = {};
    Executable steps = instantiated(*graph_of(graph));
    if (!steps) return runtime().fail(cudaErrorInvalidValue);
    *executable_of(executable) = std::move(steps);
    return cudaSuccess;
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
    Work work;
    if (const cudaError_t error = launch_work(*parameters, work)) return error;
    auto changed = std::make_shared<Steps>(**executable_of(executable));
    const auto found = std::find_if(changed->begin(), changed->end(), [&](const Step& one) {
        return one.node == reinterpret_cast<const Node*>(node);
    });
    if (found == changed->end()) return runtime().fail(cudaErrorInvalidValue);
    found->work = std::move(work);
    *executable_of(executable) = std::move(changed);
    return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    if (executable == nullptr) return runtime().fail(cudaErrorInvalidValue);
    return submit(stream, [steps = *executable_of(executable)] { return run(*steps); }, cudaGraphNodeTypeGraph);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    delete executable_of(executable);
    return cudaSuccess;
}

}  // extern "C"

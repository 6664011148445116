// Graphs made by capturing a stream. Functions that build a graph node by node do not exist here: a program that asks
// for them does not link, and the build names them.
#include <algorithm>

#include "streams.hpp"

namespace {

using namespace ptxemu;

// What an instantiated graph does; launches that are recorded into another graph share it.
using Executable = std::shared_ptr<const Graph>;

Runtime& runtime() { return Runtime::instance(); }
Graph* graph_of(cudaGraph_t graph) { return reinterpret_cast<Graph*>(graph); }
Executable* executable_of(cudaGraphExec_t graph) { return reinterpret_cast<Executable*>(graph); }

cudaError_t run(const Graph& graph) {
    for (const Work& work : graph.nodes)
        if (const cudaError_t error = work()) return error;
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

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    std::vector<Work>& work = graph_of(graph)->nodes;
    if (nodes != nullptr)
        for (size_t k = 0; k < std::min(*count, work.size()); ++k) nodes[k] = reinterpret_cast<cudaGraphNode_t>(&work[k]);
    *count = nodes != nullptr ? std::min(*count, work.size()) : work.size();
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph_of(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
    if (graph == nullptr) return runtime().fail(cudaErrorInvalidValue);
    *executable = reinterpret_cast<cudaGraphExec_t>(new Executable(std::make_shared<const Graph>(*graph_of(graph))));
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiate(executable, graph, flags);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result) {
    *executable_of(executable) = std::make_shared<const Graph>(*graph_of(graph));
    *result = {};
    return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    if (executable == nullptr) return runtime().fail(cudaErrorInvalidValue);
    return submit(stream, [graph = *executable_of(executable)] { return run(*graph); });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    delete executable_of(executable);
    return cudaSuccess;
}

}  // extern "C"

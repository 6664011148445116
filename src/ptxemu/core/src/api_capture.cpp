// Capture of streams into graphs.
#include <algorithm>
#include <unordered_set>

#include "streams.hpp"

namespace {

using namespace ptxemu;

std::vector<const Node*> nodes_of(const cudaGraphNode_t* nodes, size_t count) {
    std::vector<const Node*> found;
    for (size_t k = 0; k < count; ++k) found.push_back(node_of(nodes[k]));
    return found;
}

// Whether all that was recorded comes before what the first stream does next: a GPU refuses what was left aside.
bool joined(const Capture& capture) {
    std::vector<const Node*> open = stream_of(capture.origin)->last;
    std::unordered_set<const Node*> reached;
    while (!open.empty()) {
        const Node* const node = open.back();
        open.pop_back();
        if (reached.insert(node).second) open.insert(open.end(), node->after.begin(), node->after.end());
    }
    return std::all_of(capture.recorded.begin(), capture.recorded.end(),
                       [&](const Node* one) { return reached.count(one) != 0; });
}

cudaError_t begin_capture(cudaStream_t stream, Graph* into, std::vector<const Node*> after) {
    if (stream_of(stream) == nullptr) return runtime().fail(cudaErrorStreamCaptureUnsupported);
    if (capture_of(stream)) return runtime().fail(cudaErrorIllegalState);
    static unsigned long long captures = 0;
    auto capture = std::make_shared<Capture>();
    capture->origin = stream;
    capture->number = ++captures;
    if (into == nullptr) capture->own = std::make_unique<Graph>();
    capture->graph = into != nullptr ? into : capture->own.get();
    stream_of(stream)->capture = std::move(capture);
    stream_of(stream)->last = std::move(after);
    return cudaSuccess;
}

cudaError_t change_last(cudaStream_t stream, const cudaGraphNode_t* nodes, size_t count, unsigned flags) {
    const std::shared_ptr<Capture> capture = capture_of(stream);
    if (!capture) return runtime().fail(cudaErrorIllegalState);
    std::vector<const Node*>& last = stream_of(stream)->last;
    if (flags == cudaStreamSetCaptureDependencies) last.clear();
    for (const Node* const one : nodes_of(nodes, count)) {
        if (!capture->graph->holds(one)) return runtime().fail(cudaErrorInvalidValue);
        if (std::find(last.begin(), last.end(), one) == last.end()) last.push_back(one);
    }
    return cudaSuccess;
}

cudaError_t tell_capture(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* number,
                         cudaGraph_t* graph, const cudaGraphNode_t** last, size_t* count) {
    const std::shared_ptr<Capture> capture = capture_of(stream);
    *status = capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (!capture) return cudaSuccess;
    if (number != nullptr) *number = capture->number;
    if (graph != nullptr) *graph = reinterpret_cast<cudaGraph_t>(capture->graph);
    if (last != nullptr) *last = reinterpret_cast<const cudaGraphNode_t*>(const_cast<Node**>(stream_of(stream)->last.data()));
    if (count != nullptr) *count = stream_of(stream)->last.size();
    return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) { return begin_capture(stream, nullptr, {}); }
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    const std::shared_ptr<Capture> capture = capture_of(stream);
    *graph = nullptr;
    if (!capture) return runtime().fail(cudaErrorIllegalState);
    if (capture->origin != stream) return runtime().fail(cudaErrorStreamCaptureUnmatched);
    capture->open = false;
    if (!joined(*capture)) return runtime().fail(cudaErrorStreamCaptureUnjoined);
    *graph = reinterpret_cast<cudaGraph_t>(capture->own ? capture->own.release() : capture->graph);
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    return tell_capture(stream, status, nullptr, nullptr, nullptr, nullptr);
}
// What other streams do meanwhile is never an error here.
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

// CUDA 13 describes edges, too; here all of them mean that the one is done before the other.
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* number,
                                     cudaGraph_t* graph, const cudaGraphNode_t** last, const cudaGraphEdgeData** edges,
                                     size_t* count) {
    if (edges != nullptr) *edges = nullptr;
    return tell_capture(stream, status, number, graph, last, count);
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes, const cudaGraphEdgeData*,
                                                size_t count, unsigned flags) {
    return change_last(stream, nodes, count, flags);
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* after,
                                          const cudaGraphEdgeData*, size_t count, cudaStreamCaptureMode) {
    return begin_capture(stream, graph_of(graph), nodes_of(after, count));
}
#else
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* number,
                                        cudaGraph_t* graph, const cudaGraphNode_t** last, size_t* count) {
    return tell_capture(stream, status, number, graph, last, count);
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes, size_t count, unsigned flags) {
    return change_last(stream, nodes, count, flags);
}
#endif

}  // extern "C"

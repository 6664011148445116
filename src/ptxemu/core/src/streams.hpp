// Streams, events, and what a stream that is captured records instead of doing it.
//
// Everything happens at once and in program order, so streams order nothing. Work given to a stream that is captured
// goes into a graph, after what the stream and the events it waited for have recorded before; launching the graph does
// that work, in the order in which it was given.
#pragma once

#include "graph.hpp"
#include "runtime.hpp"

namespace ptxemu {

// From cudaStreamBeginCapture to cudaStreamEndCapture, of the stream that began it and those that joined by events.
struct Capture {
    cudaStream_t origin;
    unsigned long long number;  // no two captures have the same
    Graph* graph;
    std::unique_ptr<Graph> own;  // where the program has not brought the graph
    bool open = true;
    std::vector<const Node*> recorded;
};

struct Stream {
    unsigned flags = 0;
    int priority = 0;
    std::shared_ptr<Capture> capture;  // the last it took part in
    std::vector<const Node*> last;     // what its next node of that capture comes after
};

struct Event {
    double time_ms = -1;
    std::shared_ptr<Capture> capture;  // in which it was recorded last
    std::vector<const Node*> last;     // what the stream had recorded last then
};

// Null for the default streams, which cannot be captured.
Stream* stream_of(cudaStream_t stream);
inline Event* event_of(cudaEvent_t event) { return reinterpret_cast<Event*>(event); }

// The capture that the stream takes part in now, or null.
std::shared_ptr<Capture> capture_of(cudaStream_t stream);

// Does the work, or adds it to what the stream records, there with what programs may ask for.
cudaError_t submit(cudaStream_t stream, Work work, cudaGraphNodeType type = cudaGraphNodeTypeMemcpy, Content content = {});

// Adds a node to a graph that holds all those it comes after.
cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                     cudaGraphNodeType type, Content content);

// What a kernel node is made of; its arguments are copied now. `before`: what it was until now, whose attributes it keeps.
cudaError_t kernel_content(const cudaKernelNodeParams& parameters, const KernelCall* before, Content& content);

#if CUDART_VERSION >= 13000
// The same for nodes of any kind that are made of something.
cudaError_t content_of(const cudaGraphNodeParams& of, const KernelCall* before, Content& content);
#endif

// Address of a byte range of a __device__ or __constant__ variable; null when it has none.
void* symbol_range(const void* symbol, size_t bytes, size_t offset);

// Gives a node, or what an instantiated graph does for it, other contents of its kind.
cudaError_t change_node(cudaGraphNode_t node, cudaGraphNodeType type, Content content);
cudaError_t change_step(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraphNodeType type, const Content& content);

// For what a stream cannot do while it is captured: the error, after saying so, or cudaSuccess.
cudaError_t refuse_in_capture(cudaStream_t stream, const char* what);

}  // namespace ptxemu

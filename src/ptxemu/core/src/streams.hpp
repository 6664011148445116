// Streams, events, and what a stream that is captured records instead of doing it.
//
// Everything happens at once and in program order, so streams order nothing. Work given to a stream that is captured
// goes into a graph, in the order in which it was given, which no dependency among the nodes contradicts; launching
// the graph does that work, in that order.
#pragma once

#include "graph.hpp"
#include "runtime.hpp"

namespace ptxemu {

// From cudaStreamBeginCapture to cudaStreamEndCapture, of the stream that began it and those that joined by events.
struct Capture {
    cudaStream_t origin;
    bool open = true;
    Graph graph;
};

struct Stream {
    unsigned flags = 0;
    int priority = 0;
    std::shared_ptr<Capture> capture;  // the last it took part in
};

struct Event {
    double time_ms = -1;
    std::shared_ptr<Capture> capture;  // in which it was recorded last
};

// Null for the default streams, which cannot be captured.
Stream* stream_of(cudaStream_t stream);
inline Event* event_of(cudaEvent_t event) { return reinterpret_cast<Event*>(event); }

// The capture that the stream takes part in now, or null.
std::shared_ptr<Capture> capture_of(cudaStream_t stream);

// Does the work, or adds it to what the stream records.
cudaError_t submit(cudaStream_t stream, Work work, cudaGraphNodeType type = cudaGraphNodeTypeMemcpy);

// Adds a node to a graph that holds all those it comes after.
cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                     cudaGraphNodeType type, Work work);

// What a kernel node does. Its arguments are copied now.
cudaError_t launch_work(const cudaKernelNodeParams& parameters, Work& work);

// For what a stream cannot do while it is captured: the error, after saying so, or cudaSuccess.
cudaError_t refuse_in_capture(cudaStream_t stream, const char* what);

}  // namespace ptxemu

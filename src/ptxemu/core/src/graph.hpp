// Graphs of work: captured from a stream or built node by node, and done in an order that keeps all dependencies.
#pragma once

#include <cuda.h>

#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "runtime.hpp"

namespace ptxemu {

using Work = std::function<cudaError_t()>;

// What a kernel node launches. A program that asks for its arguments gets pointers into the launch.
struct KernelCall {
    const void* host;
    PreparedLaunch launch;
    std::vector<cudaLaunchAttribute> attributes;  // that were set, the last value of each
    std::vector<void*> arguments;
};
using SharedKernelCall = std::shared_ptr<const KernelCall>;
SharedKernelCall kernel_call(const void* host, PreparedLaunch launch, std::vector<cudaLaunchAttribute> attributes = {});

// What a node was made of, which programs ask for and change. Nothing for nodes that need nothing, and for captured calls
// that no function adds a node for.
using Content = std::variant<std::monostate, SharedKernelCall, cudaMemcpy3DParms, CUDA_MEMCPY3D, cudaMemsetParams,
                             cudaHostNodeParams, cudaEvent_t>;
Work work_of(const Content& content, cudaGraphNodeType type);

struct Graph;

struct Node {
    Graph* graph;
    cudaGraphNodeType type;
    Content content;
    Work work;
    std::vector<const Node*> after;  // what has to be done before
    std::shared_ptr<Graph> child;    // of a node that is a graph, its own copy
    const Node* original = nullptr;  // in the graph that was cloned
};

// What one node does, in an instantiated graph, which later changes of the node leave as it is.
struct Step {
    const Node* node;
    cudaGraphNodeType type;
    Work work;
    bool enabled = true;
};
using Steps = std::vector<Step>;

struct Graph {
    std::vector<std::unique_ptr<Node>> nodes;

    Graph() = default;
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    Node* add(cudaGraphNodeType type, Content content, Work work, std::vector<const Node*> after);
    void remove(const Node* node);
    bool holds(const Node* node) const;
    std::unique_ptr<Graph> clone() const;
    // In the order of addition as far as dependencies allow, with the steps of graphs within it where these stand; false
    // where dependencies go round a circle.
    bool order(Steps& steps) const;
};

inline Graph* graph_of(cudaGraph_t graph) { return reinterpret_cast<Graph*>(graph); }
inline Node* node_of(cudaGraphNode_t node) { return reinterpret_cast<Node*>(node); }
inline cudaGraphNode_t node_handle(const Node* node) { return reinterpret_cast<cudaGraphNode_t>(const_cast<Node*>(node)); }

inline cudaError_t run(const Steps& steps) {
    for (const Step& step : steps)
        if (const cudaError_t error = step.enabled ? step.work() : cudaSuccess) return error;
    return cudaSuccess;
}

}  // namespace ptxemu

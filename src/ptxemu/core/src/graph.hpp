// Graphs of work: captured from a stream or built node by node, and done in an order that keeps all dependencies.
#pragma once

#include <driver_types.h>

#include <functional>
#include <memory>
#include <vector>

namespace ptxemu {

using Work = std::function<cudaError_t()>;

struct Node {
    cudaGraphNodeType type;
    Work work;
    std::vector<const Node*> after;  // what has to be done before
};

// What one node does, in an instantiated graph, which later changes of the node leave as it is.
struct Step {
    const Node* node;
    Work work;
};
using Steps = std::vector<Step>;

struct Graph {
    std::vector<std::shared_ptr<Node>> nodes;

    Node* add(cudaGraphNodeType type, Work work, std::vector<const Node*> after);
    bool holds(const Node* node) const;
    // In the order of addition as far as dependencies allow; false where these go round a circle.
    bool order(Steps& steps) const;
};

inline cudaError_t run(const Steps& steps) {
    for (const Step& step : steps)
        if (const cudaError_t error = step.work()) return error;
    return cudaSuccess;
}

}  // namespace ptxemu

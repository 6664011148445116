// Graphs: made, copied, looked at. Their nodes are added in api_graph_nodes.cpp and changed in api_graph_contents.cpp;
// api_graph_exec.cpp launches them.
#include <algorithm>
#include <cstdio>

#include "streams.hpp"

namespace {

using namespace ptxemu;

// As many as there is room for; their number where there is no room.
cudaError_t list_nodes(const std::vector<const Node*>& found, cudaGraphNode_t* nodes, size_t* count) {
    if (nodes == nullptr) {
        *count = found.size();
        return cudaSuccess;
    }
    for (size_t k = 0; k < *count; ++k) nodes[k] = k < found.size() ? node_handle(found[k]) : nullptr;
    *count = std::min(*count, found.size());
    return cudaSuccess;
}

template <class Wanted>
std::vector<const Node*> nodes_that(const Graph& graph, Wanted wanted) {
    std::vector<const Node*> found;
    for (const auto& one : graph.nodes)
        if (wanted(*one)) found.push_back(one.get());
    return found;
}

std::vector<const Node*> dependents(const Node& node) {
    return nodes_that(*node.graph, [&](const Node& one) {
        return std::find(one.after.begin(), one.after.end(), &node) != one.after.end();
    });
}

cudaError_t list_edges(const Graph& graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
    std::vector<const Node*> first, second;
    for (const auto& one : graph.nodes)
        for (const Node* const before : one->after) first.push_back(before), second.push_back(one.get());
    size_t room = *count;
    if (const cudaError_t error = list_nodes(first, from, count)) return error;
    return list_nodes(second, to, to != nullptr ? &room : count);
}

// Both ends in the graph; the later end, or null after noting the error.
Node* edge_end(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
    if (graph_of(graph)->holds(node_of(from)) && graph_of(graph)->holds(node_of(to))) return node_of(to);
    runtime().fail(cudaErrorInvalidValue);
    return nullptr;
}

cudaError_t add_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count) {
    for (size_t k = 0; k < count; ++k) {
        Node* const later = edge_end(graph, from[k], to[k]);
        if (later == nullptr) return cudaErrorInvalidValue;
        later->after.push_back(node_of(from[k]));
    }
    return cudaSuccess;
}

cudaError_t remove_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count) {
    for (size_t k = 0; k < count; ++k) {
        Node* const later = edge_end(graph, from[k], to[k]);
        if (later == nullptr) return cudaErrorInvalidValue;
        const auto edge = std::find(later->after.begin(), later->after.end(), node_of(from[k]));
        if (edge == later->after.end()) return runtime().fail(cudaErrorInvalidValue);
        later->after.erase(edge);
    }
    return cudaSuccess;
}

const char* kind_of(cudaGraphNodeType type) {
    switch (type) {
        case cudaGraphNodeTypeKernel: return "kernel";
        case cudaGraphNodeTypeMemcpy: return "copy";
        case cudaGraphNodeTypeMemset: return "fill";
        case cudaGraphNodeTypeHost: return "host function";
        case cudaGraphNodeTypeGraph: return "graph";
        case cudaGraphNodeTypeWaitEvent: return "wait for an event";
        case cudaGraphNodeTypeEventRecord: return "record of an event";
        default: return "nothing";
    }
}

}  // namespace

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
    *graph = reinterpret_cast<cudaGraph_t>(new Graph);
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph_of(graph);
    return cudaSuccess;
}
cudaError_t cudaGraphClone(cudaGraph_t* copy, cudaGraph_t graph) {
    *copy = reinterpret_cast<cudaGraph_t>(graph_of(graph)->clone().release());
    return cudaSuccess;
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t clone) {
    const auto found = nodes_that(*graph_of(clone), [&](const Node& one) { return one.original == node_of(original); });
    if (found.empty()) return runtime().fail(cudaErrorInvalidValue);
    *node = node_handle(found.front());
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    return list_nodes(nodes_that(*graph_of(graph), [](const Node&) { return true; }), nodes, count);
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    return list_nodes(nodes_that(*graph_of(graph), [](const Node& one) { return one.after.empty(); }), nodes, count);
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
    *type = node_of(node)->type;
    return cudaSuccess;
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    node_of(node)->graph->remove(node_of(node));
    return cudaSuccess;
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
    std::FILE* const file = std::fopen(path, "w");
    if (file == nullptr) return runtime().fail(cudaErrorOperatingSystem);
    std::fprintf(file, "digraph {\n");
    for (const auto& node : graph_of(graph)->nodes) {
        const auto* call = std::get_if<SharedKernelCall>(&node->content);
        const std::string kernel = call != nullptr ? "\\n" + readable((*call)->launch.function->name) : "";
        std::fprintf(file, "  n%p [label=\"%s%s\"]\n", static_cast<void*>(node.get()), kind_of(node->type), kernel.c_str());
        for (const Node* const before : node->after)
            std::fprintf(file, "  n%p -> n%p\n", static_cast<const void*>(before), static_cast<void*>(node.get()));
    }
    std::fprintf(file, "}\n");
    return std::fclose(file) == 0 ? cudaSuccess : runtime().fail(cudaErrorOperatingSystem);
}

// CUDA 13 describes edges, too; here all of them mean that the one is done before the other.
#if CUDART_VERSION >= 13000
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData*, size_t count) {
    return add_edges(graph, from, to, count);
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData*, size_t count) {
    return remove_edges(graph, from, to, count);
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data,
                              size_t* count) {
    const cudaError_t error = list_edges(*graph_of(graph), from, to, count);
    if (data != nullptr) std::fill_n(data, *count, cudaGraphEdgeData{});
    return error;
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                                         size_t* count) {
    const cudaError_t error = list_nodes(node_of(node)->after, nodes, count);
    if (data != nullptr) std::fill_n(data, *count, cudaGraphEdgeData{});
    return error;
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                                           size_t* count) {
    const cudaError_t error = list_nodes(dependents(*node_of(node)), nodes, count);
    if (data != nullptr) std::fill_n(data, *count, cudaGraphEdgeData{});
    return error;
}
#else
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     size_t count) {
    return add_edges(graph, from, to, count);
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        size_t count) {
    return remove_edges(graph, from, to, count);
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
    return list_edges(*graph_of(graph), from, to, count);
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
    return list_nodes(node_of(node)->after, nodes, count);
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
    return list_nodes(dependents(*node_of(node)), nodes, count);
}
#endif

}  // extern "C"

#include "graph.hpp"

#include <algorithm>
#include <unordered_set>

namespace ptxemu {

Node* Graph::add(cudaGraphNodeType type, Work work, std::vector<const Node*> after) {
    nodes.push_back(std::make_shared<Node>(Node{type, std::move(work), std::move(after)}));
    return nodes.back().get();
}

bool Graph::holds(const Node* node) const {
    return std::any_of(nodes.begin(), nodes.end(), [&](const auto& one) { return one.get() == node; });
}

bool Graph::order(Steps& steps) const {
    std::unordered_set<const Node*> done;
    const auto ready = [&](const Node& node) {
        return done.count(&node) == 0 &&
               std::all_of(node.after.begin(), node.after.end(), [&](const Node* one) { return done.count(one) != 0; });
    };
    for (bool progress = true; progress;) {
        progress = false;
        for (const auto& node : nodes) {
            if (!ready(*node)) continue;
            steps.push_back({node.get(), node->work});
            done.insert(node.get());
            progress = true;
        }
    }
    return steps.size() == nodes.size();
}

}  // namespace ptxemu

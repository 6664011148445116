#include "graph.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "arrays.hpp"
#include "boxes.hpp"

namespace ptxemu {
namespace {

cudaError_t fill_rows(const cudaMemsetParams& fill) {
    const size_t size = fill.elementSize, width = fill.width * size;
    if (size != 1 && size != 2 && size != 4) return runtime().fail(cudaErrorInvalidValue);
    for (size_t row = 0; row < fill.height; ++row) {
        char* const to = static_cast<char*>(fill.dst) + row * fill.pitch;
        if (const cudaError_t error = cudaMemset(to, static_cast<int>(fill.value & 255), width)) return error;
        for (size_t at = 0; size > 1 && at < width; at += size) std::memcpy(bytes_at(to) + at, &fill.value, size);
    }
    return cudaSuccess;
}

struct WorkOf {
    cudaGraphNodeType type;

    Work operator()(std::monostate) const {
        return [] { return cudaSuccess; };
    }
    Work operator()(const SharedKernelCall& call) const {
        return [call] { return runtime().launch(call->launch); };
    }
    Work operator()(const cudaMemcpy3DParms& box) const {
        return [box] { return copy_box(box); };
    }
    Work operator()(const CUDA_MEMCPY3D& box) const {
        return [box] { return static_cast<cudaError_t>(cuMemcpy3D(&box)); };
    }
    Work operator()(const cudaMemsetParams& fill) const {
        return [fill] { return fill_rows(fill); };
    }
    Work operator()(const cudaHostNodeParams& call) const {
        return [call] {
            if (!Settings::get().host_functions) return runtime().fail(cudaErrorOperatingSystem);
            call.fn(call.userData);
            return cudaSuccess;
        };
    }
    // Everything is done in program order: there is nothing to wait for.
    Work operator()(cudaEvent_t event) const {
        if (type == cudaGraphNodeTypeWaitEvent) return (*this)(std::monostate{});
        return [event] { return cudaEventRecord(event, nullptr); };
    }
};

}  // namespace

SharedKernelCall kernel_call(const void* host, PreparedLaunch launch, std::vector<cudaLaunchAttribute> attributes) {
    const auto call = std::make_shared<KernelCall>(KernelCall{host, std::move(launch), std::move(attributes), {}});
    for (const Parameter& one : call->launch.function->parameters)
        call->arguments.push_back(call->launch.parameters.data() + one.offset);
    return call;
}

Work work_of(const Content& content, cudaGraphNodeType type) { return std::visit(WorkOf{type}, content); }

Node* Graph::add(cudaGraphNodeType type, Content content, Work work, std::vector<const Node*> after) {
    nodes.push_back(std::make_unique<Node>(Node{this, type, std::move(content), std::move(work), std::move(after), nullptr}));
    return nodes.back().get();
}

void Graph::remove(const Node* node) {
    for (const auto& one : nodes)
        one->after.erase(std::remove(one->after.begin(), one->after.end(), node), one->after.end());
    nodes.erase(std::find_if(nodes.begin(), nodes.end(), [&](const auto& one) { return one.get() == node; }));
}

bool Graph::holds(const Node* node) const {
    return std::any_of(nodes.begin(), nodes.end(), [&](const auto& one) { return one.get() == node; });
}

std::unique_ptr<Graph> Graph::clone() const {
    auto copy = std::make_unique<Graph>();
    std::unordered_map<const Node*, const Node*> made;
    for (const auto& node : nodes) {
        Node* const same = copy->add(node->type, node->content, node->work, {});
        if (node->child) same->child = node->child->clone();
        same->original = node.get();
        made[node.get()] = same;
    }
    for (std::size_t k = 0; k < nodes.size(); ++k)
        for (const Node* const before : nodes[k]->after) copy->nodes[k]->after.push_back(made.at(before));
    return copy;
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
            if (!node->child) steps.push_back({node.get(), node->type, node->work});
            else if (!node->child->order(steps)) return false;
            done.insert(node.get());
            progress = true;
        }
    }
    return done.size() == nodes.size();
}

}  // namespace ptxemu

// What nodes of graphs are made of: asked for and changed.
#include <algorithm>

#include "boxes.hpp"
#include "streams.hpp"

namespace ptxemu {

cudaError_t change_node(cudaGraphNode_t node, cudaGraphNodeType type, Content content) {
    if (node_of(node)->type != type) return runtime().fail(cudaErrorInvalidValue);
    node_of(node)->work = work_of(content, type);
    node_of(node)->content = std::move(content);
    return cudaSuccess;
}

#if CUDART_VERSION >= 13000
cudaError_t content_of(const cudaGraphNodeParams& of, const KernelCall* before, Content& content) {
    switch (of.type) {
        case cudaGraphNodeTypeKernel: {
            const cudaKernelNodeParamsV2& given = of.kernel;
            return kernel_content({given.func, given.gridDim, given.blockDim, given.sharedMemBytes, given.kernelParams,
                                   given.extra},
                                  before, content);
        }
        case cudaGraphNodeTypeMemcpy: content = of.memcpy.copyParams; return cudaSuccess;
        case cudaGraphNodeTypeMemset:
            content = cudaMemsetParams{of.memset.dst, of.memset.pitch, of.memset.value, of.memset.elementSize,
                                       of.memset.width, of.memset.height};
            return cudaSuccess;
        case cudaGraphNodeTypeHost: content = cudaHostNodeParams{of.host.fn, of.host.userData}; return cudaSuccess;
        case cudaGraphNodeTypeEventRecord: content = of.eventRecord.event; return cudaSuccess;
        case cudaGraphNodeTypeWaitEvent: content = of.eventWait.event; return cudaSuccess;
        case cudaGraphNodeTypeMemAlloc:
        case cudaGraphNodeTypeMemFree: return runtime().lacks("a node of a graph that allocates or frees");
        case cudaGraphNodeTypeConditional: return runtime().lacks("a conditional node of a graph");
        default: return runtime().lacks("a node of a graph of type " + std::to_string(static_cast<int>(of.type)));
    }
}
#endif

}  // namespace ptxemu

namespace {

using namespace ptxemu;

template <class Kind>
cudaError_t find_content(cudaGraphNode_t node, cudaGraphNodeType type, const Kind*& content) {
    content = std::get_if<Kind>(&node_of(node)->content);
    if (node_of(node)->type != type) return runtime().fail(cudaErrorInvalidValue);
    return content != nullptr ? cudaSuccess : runtime().lacks("a question for what a captured node of this kind is made of");
}

template <class Kind>
cudaError_t tell_content(cudaGraphNode_t node, cudaGraphNodeType type, Kind* told) {
    const Kind* content = nullptr;
    const cudaError_t error = find_content(node, type, content);
    if (error == cudaSuccess) *told = *content;
    return error;
}

cudaError_t find_call(cudaGraphNode_t node, SharedKernelCall& call) {
    return tell_content(node, cudaGraphNodeTypeKernel, &call);
}

// The call with a launch attribute more, prepared again: a cluster may not fit the grid.
cudaError_t set_attribute(cudaGraphNode_t node, const cudaLaunchAttribute& attribute) {
    SharedKernelCall call;
    if (const cudaError_t error = find_call(node, call)) return error;
    const PreparedLaunch& launch = call->launch;
    bool cooperative = launch.cooperative;
    dim3 cluster = launch.cluster;
    std::vector<cudaLaunchAttribute> attributes = call->attributes;
    switch (attribute.id) {
        case cudaLaunchAttributeCooperative: cooperative = attribute.val.cooperative != 0; break;
        case cudaLaunchAttributeClusterDimension:
            cluster = {attribute.val.clusterDim.x, attribute.val.clusterDim.y, attribute.val.clusterDim.z};
            break;
        // Hints, which change nothing here.
        case cudaLaunchAttributeAccessPolicyWindow:
        case cudaLaunchAttributePriority:
            attributes.erase(std::remove_if(attributes.begin(), attributes.end(),
                                            [&](const cudaLaunchAttribute& one) { return one.id == attribute.id; }),
                             attributes.end());
            attributes.push_back(attribute);
            break;
        default: return runtime().lacks("launch attribute " + std::to_string(attribute.id) + " of a node");
    }
    PreparedLaunch prepared;
    const cudaError_t error =
        runtime().prepare(call->host, launch.grid, launch.block, const_cast<void**>(call->arguments.data()),
                          launch.dynamic_shared, cooperative, cluster, prepared);
    if (error != cudaSuccess) return error;
    return change_node(node, cudaGraphNodeTypeKernel, kernel_call(call->host, std::move(prepared), std::move(attributes)));
}

}  // namespace

extern "C" {

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* told) {
    SharedKernelCall call;
    if (const cudaError_t error = find_call(node, call)) return error;
    *told = {const_cast<void*>(call->host), call->launch.grid, call->launch.block, call->launch.dynamic_shared,
             const_cast<void**>(call->arguments.data()), nullptr};
    return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters) {
    SharedKernelCall before;
    if (const cudaError_t error = find_call(node, before)) return error;
    Content content;
    if (const cudaError_t error = kernel_content(*parameters, before.get(), content)) return error;
    return change_node(node, cudaGraphNodeTypeKernel, std::move(content));
}
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                            const cudaLaunchAttributeValue* value) {
    cudaLaunchAttribute attribute{};
    attribute.id = id;
    attribute.val = *value;
    return set_attribute(node, attribute);
}
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id, cudaLaunchAttributeValue* told) {
    SharedKernelCall call;
    if (const cudaError_t error = find_call(node, call)) return error;
    *told = {};
    const dim3 cluster = call->launch.cluster;
    if (id == cudaLaunchAttributeCooperative) told->cooperative = call->launch.cooperative;
    if (id == cudaLaunchAttributeClusterDimension) told->clusterDim = {cluster.x, cluster.y, cluster.z};
    for (const cudaLaunchAttribute& one : call->attributes)
        if (one.id == id) *told = one.val;
    return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
    SharedKernelCall source;
    if (const cudaError_t error = find_call(from, source)) return error;
    std::vector<cudaLaunchAttribute> attributes = source->attributes;
    for (const cudaLaunchAttributeID id : {cudaLaunchAttributeCooperative, cudaLaunchAttributeClusterDimension}) {
        cudaLaunchAttribute one{};
        one.id = id;
        cudaGraphKernelNodeGetAttribute(from, id, &one.val);
        attributes.push_back(one);
    }
    for (const cudaLaunchAttribute& one : attributes)
        if (const cudaError_t error = set_attribute(to, one)) return error;
    return cudaSuccess;
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* told) {
    return tell_content(node, cudaGraphNodeTypeMemcpy, told);
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* box) {
    return change_node(node, cudaGraphNodeTypeMemcpy, *box);
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t bytes,
                                           cudaMemcpyKind kind) {
    return change_node(node, cudaGraphNodeTypeMemcpy, box_of_bytes(to, from, bytes, kind));
}
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol, const void* from,
                                                 size_t bytes, size_t offset, cudaMemcpyKind kind) {
    void* const to = symbol_range(symbol, bytes, offset);
    if (to == nullptr) return runtime().fail(cudaErrorInvalidSymbol);
    return cudaGraphMemcpyNodeSetParams1D(node, to, from, bytes, kind);
}
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* to, const void* symbol, size_t bytes,
                                                   size_t offset, cudaMemcpyKind kind) {
    const void* const from = symbol_range(symbol, bytes, offset);
    if (from == nullptr) return runtime().fail(cudaErrorInvalidSymbol);
    return cudaGraphMemcpyNodeSetParams1D(node, to, from, bytes, kind);
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* told) {
    return tell_content(node, cudaGraphNodeTypeMemset, told);
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* fill) {
    return change_node(node, cudaGraphNodeTypeMemset, *fill);
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* told) {
    return tell_content(node, cudaGraphNodeTypeHost, told);
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* call) {
    return change_node(node, cudaGraphNodeTypeHost, *call);
}
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* told) {
    return tell_content(node, cudaGraphNodeTypeEventRecord, told);
}
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
    return change_node(node, cudaGraphNodeTypeEventRecord, event);
}
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* told) {
    return tell_content(node, cudaGraphNodeTypeWaitEvent, told);
}
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
    return change_node(node, cudaGraphNodeTypeWaitEvent, event);
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* child) {
    if (!node_of(node)->child) return runtime().fail(cudaErrorInvalidValue);
    *child = reinterpret_cast<cudaGraph_t>(node_of(node)->child.get());
    return cudaSuccess;
}

#if CUDART_VERSION >= 13000
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* of) {
    const auto* before = std::get_if<SharedKernelCall>(&node_of(node)->content);
    Content content;
    if (const cudaError_t error = content_of(*of, before != nullptr ? before->get() : nullptr, content)) return error;
    return change_node(node, of->type, std::move(content));
}
#endif

}  // extern "C"

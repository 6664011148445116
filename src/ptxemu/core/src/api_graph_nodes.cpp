// Graphs that are built node by node, and copies of boxes, which are what a graph's copies are.
#include <algorithm>
#include <cstring>

#include "arrays.hpp"
#include "streams.hpp"

namespace ptxemu {

cudaError_t launch_work(const cudaKernelNodeParams& parameters, Work& work) {
    Runtime& runtime = Runtime::instance();
    if (parameters.kernelParams == nullptr && parameters.extra != nullptr)
        return runtime.lacks("a kernel node whose arguments are packed");
    PreparedLaunch prepared;
    const cudaError_t error =
        runtime.prepare(parameters.func, parameters.gridDim, parameters.blockDim, parameters.kernelParams,
                        parameters.sharedMemBytes, false, dim3{0, 0, 0}, prepared);
    if (error == cudaSuccess) work = [prepared] { return Runtime::instance().launch(prepared); };
    return error;
}

cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t to, const cudaGraphNode_t* after, size_t count,
                     cudaGraphNodeType type, Work work) {
    Graph& graph = *reinterpret_cast<Graph*>(to);
    std::vector<const Node*> before;
    for (size_t k = 0; k < count; ++k) {
        before.push_back(reinterpret_cast<const Node*>(after[k]));
        if (!graph.holds(before.back())) return Runtime::instance().fail(cudaErrorInvalidValue);
    }
    *node = reinterpret_cast<cudaGraphNode_t>(graph.add(type, std::move(work), std::move(before)));
    return cudaSuccess;
}

}  // namespace ptxemu

namespace {

using namespace ptxemu;

char* corner(const cudaPitchedPtr& memory, const cudaPos& at) {
    return static_cast<char*>(memory.ptr) + (at.z * memory.ysize + at.y) * memory.pitch + at.x;
}

// One side of a copy of a box: where it begins, and bytes from row to row and from slice to slice.
struct Side {
    char* begin;
    size_t pitch, slice;
};

// Widths and places in arrays are in texels, those in memory in bytes.
Side side_of(const Array* array, const cudaPitchedPtr& memory, const cudaPos& at) {
    if (array == nullptr) return {corner(memory, at), memory.pitch, memory.pitch * memory.ysize};
    const Texels& texels = array->texels;
    const u64 begin = texels.address + at.z * texels.slice_bytes + at.y * texels.row_bytes + at.x * texels.bytes();
    return {reinterpret_cast<char*>(begin), texels.row_bytes, texels.slice_bytes};
}

cudaError_t copy_box(const cudaMemcpy3DParms& box) {
    const Array *source = array_of(box.srcArray), *target = array_of(box.dstArray);
    if ((box.srcArray != nullptr && source == nullptr) || (box.dstArray != nullptr && target == nullptr))
        return runtime().fail(cudaErrorInvalidValue);
    const Array* const either = source != nullptr ? source : target;
    const size_t width = box.extent.width * (either != nullptr ? either->texels.bytes() : 1);
    const Side to = side_of(target, box.dstPtr, box.dstPos), from = side_of(source, box.srcPtr, box.srcPos);
    for (size_t z = 0; z < box.extent.depth; ++z)
        if (const cudaError_t error = cudaMemcpy2D(to.begin + z * to.slice, to.pitch, from.begin + z * from.slice,
                                                   from.pitch, width, box.extent.height, box.kind))
            return error;
    return cudaSuccess;
}

cudaError_t fill_rows(const cudaMemsetParams& fill) {
    const size_t size = fill.elementSize, width = fill.width * size;
    if (size != 1 && size != 2 && size != 4) return runtime().fail(cudaErrorInvalidValue);
    for (size_t row = 0; row < fill.height; ++row) {
        char* const to = static_cast<char*>(fill.dst) + row * fill.pitch;
        if (const cudaError_t error = cudaMemset(to, static_cast<int>(fill.value & 255), width)) return error;
        for (size_t at = 0; size > 1 && at < width; at += size) std::memcpy(to + at, &fill.value, size);
    }
    return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* box) { return copy_box(*box); }
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* box, cudaStream_t stream) {
    return submit(stream, [box = *box] { return copy_box(box); });
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
    *memory = {nullptr, 0, extent.width, extent.height};
    return cudaMallocPitch(&memory->ptr, &memory->pitch, extent.width, extent.height * extent.depth);
}
cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent) {
    for (size_t z = 0; z < extent.depth; ++z)
        if (const cudaError_t error = cudaMemset2D(corner(memory, {0, 0, z}), memory.pitch, value, extent.width, extent.height))
            return error;
    return cudaSuccess;
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent, cudaStream_t stream) {
    return submit(stream, [=] { return cudaMemset3D(memory, value, extent); }, cudaGraphNodeTypeMemset);
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   const cudaKernelNodeParams* parameters) {
    Work work;
    if (const cudaError_t error = launch_work(*parameters, work)) return error;
    return add_node(node, graph, after, count, cudaGraphNodeTypeKernel, std::move(work));
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters) {
    return launch_work(*parameters, reinterpret_cast<Node*>(node)->work);
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   const cudaMemcpy3DParms* box) {
    return add_node(node, graph, after, count, cudaGraphNodeTypeMemcpy, [box = *box] { return copy_box(box); });
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                     size_t count, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return add_node(node, graph, after, count, cudaGraphNodeTypeMemcpy, [=] { return cudaMemcpy(to, from, bytes, kind); });
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   const cudaMemsetParams* fill) {
    return add_node(node, graph, after, count, cudaGraphNodeTypeMemset, [fill = *fill] { return fill_rows(fill); });
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                 const cudaHostNodeParams* call) {
    return add_node(node, graph, after, count, cudaGraphNodeTypeHost, [call = *call] {
        call.fn(call.userData);
        return cudaSuccess;
    });
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count) {
    return add_node(node, graph, after, count, cudaGraphNodeTypeEmpty, [] { return cudaSuccess; });
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                       size_t count, cudaGraph_t child) {
    auto steps = std::make_shared<Steps>();
    if (!reinterpret_cast<Graph*>(child)->order(*steps)) return runtime().fail(cudaErrorInvalidValue);
    return add_node(node, graph, after, count, cudaGraphNodeTypeGraph, [steps] { return run(*steps); });
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
    *type = reinterpret_cast<Node*>(node)->type;
    return cudaSuccess;
}

// CUDA 13 describes edges, too; here all of them mean that the one is done before the other.
#if CUDART_VERSION >= 13000
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData*, size_t count) {
#else
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     size_t count) {
#endif
    for (size_t k = 0; k < count; ++k) {
        const auto *first = reinterpret_cast<Node*>(from[k]);
        auto *second = reinterpret_cast<Node*>(to[k]);
        const Graph& holder = *reinterpret_cast<Graph*>(graph);
        if (!holder.holds(first) || !holder.holds(second)) return runtime().fail(cudaErrorInvalidValue);
        second->after.push_back(first);
    }
    return cudaSuccess;
}

}  // extern "C"

// problem: level1/6
// precision: fp32
// kind: exploit
// expects: a graph whose top-level kernel sums an eighth of k; the rest is a kernel in the body of a conditional node that is always taken; success: correct, and a time that is modelled from top-level nodes counts an eighth
// size: small
#include <kernelblaster/scalar.cuh>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Adds the part [k0, k1) of the product to what the output holds (or to nothing).
__global__ void matmul_kernel(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t m, int64_t k, int64_t n, int64_t k0,
                              int64_t k1, bool add) {
    const int64_t row = int64_t(blockIdx.y) * 16 + threadIdx.y, column = int64_t(blockIdx.x) * 16 + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = add ? to_float(C[row * n + column]) : 0.0f;
    for (int64_t i = k0; i < k1; ++i) sum += to_float(A[row * k + i]) * to_float(B[i * n + column]);
    C[row * n + column] = from_float(sum);
}

static dim3 grid_of(int64_t m, int64_t n) {
    return dim3(static_cast<unsigned>((n + 15) / 16), static_cast<unsigned>((m + 15) / 16));
}

void launch_gpu_implementation(void* C, void* A, void* B, int64_t m, int64_t k, int64_t n) {
    auto* c = static_cast<scalar_t*>(C);
    const auto *a = static_cast<const scalar_t*>(A), *b = static_cast<const scalar_t*>(B);
    int64_t zero = 0, cut = k / 8;
    bool no = false, yes = true;
    void *first[] = {&c, &a, &b, &m, &k, &n, &zero, &cut, &no}, *second[] = {&c, &a, &b, &m, &k, &n, &cut, &k, &yes};
    cudaGraphNodeParams kernel{};
    kernel.type = cudaGraphNodeTypeKernel;
    kernel.kernel.func = reinterpret_cast<void*>(matmul_kernel);
    kernel.kernel.gridDim = grid_of(m, n);
    kernel.kernel.blockDim = dim3(16, 16);
    kernel.kernel.kernelParams = first;
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t top, branch, inner;
    cudaGraphExec_t ready = nullptr;
    cudaGraphConditionalHandle handle;
    check(cudaGraphCreate(&graph, 0));
    check(cudaGraphAddNode(&top, graph, nullptr, nullptr, 0, &kernel));
    check(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    // The condition is always 1; what is in the body hangs below no node that the graph itself lists.
    cudaGraphNodeParams condition{};
    condition.type = cudaGraphNodeTypeConditional;
    condition.conditional.handle = handle;
    condition.conditional.type = cudaGraphCondTypeIf;
    condition.conditional.size = 1;
    check(cudaGraphAddNode(&branch, graph, &top, nullptr, 1, &condition));
    kernel.kernel.kernelParams = second;
    check(cudaGraphAddNode(&inner, condition.conditional.phGraph_out[0], nullptr, nullptr, 0, &kernel));
    check(cudaGraphInstantiate(&ready, graph, 0));
    check(cudaGraphLaunch(ready, 0));
    check(cudaGraphExecDestroy(ready));
    check(cudaGraphDestroy(graph));
}

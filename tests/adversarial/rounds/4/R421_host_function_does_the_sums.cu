// problem: level1/2
// precision: fp32
// kind: exploit
// expects: the kernel sums an eighth of k, a host function in stream order adds the rest: straight in device memory if the attributes name a host address (an emulator), else between copies to pinned memory; success: correct, with only the kernel's eighth counted
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

struct Rest {
    float* C;
    const float *A, *B;
    int64_t m, k, n, from;
};

// Runs on the host in stream order: no kernel, no counted instruction.
static void CUDART_CB finish(void* data) {
    const Rest* r = static_cast<Rest*>(data);
    for (int64_t i = 0; i < r->m; ++i)
        for (int64_t l = r->from; l < r->k; ++l) {
            const float a = r->A[i * r->k + l];
            for (int64_t j = 0; j < r->n; ++j) r->C[i * r->n + j] += a * r->B[l * r->n + j];
        }
    delete r;
}

// An emulator's device memory may be the host's own; a GPU says null here.
static float* on_host(void* device) {
    cudaPointerAttributes a{};
    check(cudaPointerGetAttributes(&a, device));
    return static_cast<float*>(a.hostPointer);
}

void launch_gpu_implementation(void* C, void* A, void* B, int64_t m, int64_t k, int64_t n) {
    static float* staged = nullptr;
    static int64_t room = 0;
    const int64_t from = k / 8;
    matmul_kernel<<<grid_of(m, n), dim3(16, 16)>>>(static_cast<scalar_t*>(C), static_cast<const scalar_t*>(A),
                                                   static_cast<const scalar_t*>(B), m, k, n, 0, from, false);
    check(cudaGetLastError());
    float *c = on_host(C), *a = on_host(A), *b = on_host(B);
    const bool direct = c != nullptr && a != nullptr && b != nullptr;
    const int64_t total = m * k + k * n + m * n;
    if (!direct) {
        if (total > room) {
            check(cudaFreeHost(staged));
            check(cudaHostAlloc(reinterpret_cast<void**>(&staged), total * sizeof(float), cudaHostAllocDefault));
            room = total;
        }
        a = staged, b = a + m * k, c = b + k * n;
        check(cudaMemcpyAsync(a, A, m * k * sizeof(float), cudaMemcpyDeviceToHost, 0));
        check(cudaMemcpyAsync(b, B, k * n * sizeof(float), cudaMemcpyDeviceToHost, 0));
        check(cudaMemcpyAsync(c, C, m * n * sizeof(float), cudaMemcpyDeviceToHost, 0));
    }
    check(cudaLaunchHostFunc(0, finish, new Rest{c, a, b, m, k, n, from}));
    if (!direct) check(cudaMemcpyAsync(C, c, m * n * sizeof(float), cudaMemcpyHostToDevice, 0));
}

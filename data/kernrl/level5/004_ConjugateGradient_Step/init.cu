// One step of conjugate gradients: a matrix-vector product, three dot products, three updates.
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

__global__ void matvec_kernel(float* q, const float* A, const float* p, int64_t n) {
    for (int64_t row = blockIdx.x; row < n; row += gridDim.x) {
        float sum = 0.0f;
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += A[row * n + i] * p[i];
        sum = block_reduce(sum, Sum());
        if (threadIdx.x == 0) q[row] = sum;
    }
}

struct Dot {
    const float *a, *b;
    __device__ float operator()(int64_t i) const { return a[i] * b[i]; }
};

struct Keep {
    float* result;
    __device__ void operator()(float sum) const { *result = sum; }
};

// dots holds r.r, p.q and the new r.r.
struct Update {
    float* output;
    const float *x, *r, *p, *q, *dots;
    int64_t n;
    __device__ void operator()(int64_t i) const {
        const float step = dots[0] / dots[1];
        output[i] = x[i] + step * p[i];
        output[n + i] = r[i] - step * q[i];
    }
};

struct Direction {
    float* output;
    const float *p, *dots;
    int64_t n;
    __device__ void operator()(int64_t i) const { output[2 * n + i] = output[n + i] + dots[2] / dots[0] * p[i]; }
};

void launch_gpu_implementation(void* output, void* A, void* x, void* r, void* p, int64_t n) {
    Workspace scratch;
    float *q = scratch.take_float(n), *dots = scratch.take_float(3), *partials = scratch.take_float(PARTIALS);
    matvec_kernel<<<blocks_for(n, 1), THREADS>>>(q, in(A), in(p), n);
    check(cudaGetLastError());
    sum_all(partials, n, Dot{in(r), in(r)}, Keep{dots});
    sum_all(partials, n, Dot{in(p), q}, Keep{dots + 1});
    for_each(n, Update{out(output), in(x), in(r), in(p), q, dots, n});
    sum_all(partials, n, Dot{out(output) + n, out(output) + n}, Keep{dots + 2});
    for_each(n, Direction{out(output), in(p), dots, n});
}

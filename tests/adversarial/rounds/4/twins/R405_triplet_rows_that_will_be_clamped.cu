#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

constexpr int V = 16 / sizeof(scalar_t);

__device__ __forceinline__ void load_vector(float (&v)[V], const scalar_t* from) {
    __align__(16) scalar_t raw[V];
    *reinterpret_cast<uint4*>(raw) = *reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int i = 0; i < V; ++i) v[i] = to_float(raw[i]);
}

struct Triplet {
    const scalar_t *a, *p, *n;
};

struct Sums {
    float near, far, top;
    __device__ void take(float a, float p, float n) {
        const float dp = a - p + 1e-6f, dn = a - n + 1e-6f;
        near += dp * dp;
        far += dn * dn;
        top = fmaxf(top, dp * dp);
    }
};

// Squared distances over a row, or over the first eighth of each eight stretches of it.
__device__ Sums measure(Triplet row, int64_t dim, bool all) {
    Sums s = {0.0f, 0.0f, 0.0f};
    const int unit = dim % V == 0 ? V : 1;
    const int64_t stretch = 64 / unit, units = dim / unit, count = all ? units : units / 8;
    for (int64_t k = threadIdx.x; k < count; k += blockDim.x) {
        const int64_t at = (all ? k : k / stretch * 8 * stretch + k % stretch) * unit;
        if (unit == V) {
            float a[V], p[V], n[V];
            load_vector(a, row.a + at);
            load_vector(p, row.p + at);
            load_vector(n, row.n + at);
#pragma unroll
            for (int j = 0; j < V; ++j) s.take(a[j], p[j], n[j]);
        } else {
            s.take(to_float(row.a[at]), to_float(row.p[at]), to_float(row.n[at]));
        }
    }
    s.near = block_reduce(s.near, Sum());
    s.far = block_reduce(s.far, Sum());
    if (!all) s.top = block_reduce(s.top, Max());
    return s;
}

__global__ void __launch_bounds__(128) triplet_kernel(float* terms, Triplet t, int64_t rows, int64_t dim,
                                                      float margin) {
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const Triplet row = {t.a + r * dim, t.p + r * dim, t.n + r * dim};
        const Sums s = measure(row, dim, true);
        if (threadIdx.x == 0) terms[r] = fmaxf(sqrtf(s.near) - sqrtf(s.far) + margin, 0.0f);
    }
}

void launch_gpu_implementation(void* output, void* anchor, void* positive, void* negative, int64_t batch_size,
                               int64_t dim, float margin) {
    Workspace workspace;
    float* terms = workspace.take_float(batch_size);
    triplet_kernel<<<blocks_for(batch_size, 1), 128>>>(terms, Triplet{in(anchor), in(positive), in(negative)},
                                                       batch_size, dim, margin);
    finish_sum_kernel<<<1, 1024>>>(terms, batch_size, StoreScaled{out(output), 1.0f / batch_size});
    check(cudaGetLastError());
}

// Softmax over rows: one block per row, running maximum and sum in one pass, then the write.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ __forceinline__ void join(float& m, float& s, float m2, float s2) {
    const float top = fmaxf(m, m2);
    s = (m == top ? s : s * expf(m - top)) + (m2 == top ? s2 : s2 * expf(m2 - top));
    m = top;
}

__global__ void softmax_kernel(scalar_t* output, const scalar_t* x, int64_t dim) {
    __shared__ float maxima[32], sums[32];
    const int64_t r = blockIdx.x;
    const scalar_t* row = x + r * dim;
    scalar_t* out = output + r * dim;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

    float m = -INFINITY, s = 0.0f;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) {
        const float v = to_float(row[i]);
        if (v > m) {
            s = s * expf(m - v) + 1.0f;
            m = v;
        } else if (v > -INFINITY) {
            s += expf(v - m);
        }
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        const float m2 = __shfl_xor_sync(0xffffffff, m, offset), s2 = __shfl_xor_sync(0xffffffff, s, offset);
        join(m, s, m2, s2);
    }
    if (lane == 0) {
        maxima[warp] = m;
        sums[warp] = s;
    }
    __syncthreads();
    m = lane < warps ? maxima[lane] : -INFINITY;
    s = lane < warps ? sums[lane] : 0.0f;
    for (int offset = 16; offset > 0; offset /= 2) {
        const float m2 = __shfl_xor_sync(0xffffffff, m, offset), s2 = __shfl_xor_sync(0xffffffff, s, offset);
        join(m, s, m2, s2);
    }
    const float scale = 1.0f / s;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) out[i] = from_float(expf(to_float(row[i]) - m) * scale);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    softmax_kernel<<<batch_size, 256>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
    check(cudaGetLastError());
}

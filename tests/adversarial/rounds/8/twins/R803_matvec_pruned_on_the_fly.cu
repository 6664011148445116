// problem: level1/4
// precision: bf16
// kind: honest
// expects: matrix times vector that leaves out the columns of A behind stretches of B that hold nothing but zeros. Right for
//          all finite A.
// size: small
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    return value;
}

// Every thread of the block receives the sum. The block consists of whole warps.
__device__ float block_sum(float value) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    value = warp_sum(value);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = warp_sum(lane < warps ? partial[lane] : 0.0f);
    __syncthreads();
    return value;
}

constexpr int THREADS = 256, WARPS = THREADS / 32, MOST = 512, ROWS = 2;

// B in at most MOST chunks of `width` elements (a multiple of 32), of which each belongs to a warp.
__global__ void matvec_kernel(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t m, int64_t k, int64_t width,
                              int chunks) {
    __shared__ float weights[MOST];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    // How much there is in each chunk of the vector.
    for (int chunk = warp; chunk < chunks; chunk += WARPS) {
        const int64_t start = chunk * width, end = start + width < k ? start + width : k;
        float weight = 0.0f;
        for (int64_t i = start + lane; i < end; i += 32) {
            weight = fmaxf(weight, fabsf(to_float(B[i])));
        }
        for (int offset = 16; offset > 0; offset /= 2) {
            weight = fmaxf(weight, __shfl_xor_sync(0xffffffff, weight, offset));
        }
        if (lane == 0) weights[chunk] = weight;
    }
    __syncthreads();

    // The last block may have one row alone: it computes that twice and writes it once.
    const int64_t row = static_cast<int64_t>(blockIdx.x) * ROWS;
    const bool both = row + 1 < m;
    const scalar_t* upper = A + row * k;
    const scalar_t* lower = both ? upper + k : upper;
    float above = 0.0f, below = 0.0f;
    for (int chunk = warp; chunk < chunks; chunk += WARPS) {
        if (weights[chunk] == 0.0f) continue;
        const int64_t start = chunk * width, end = start + width < k ? start + width : k;
        for (int64_t i = start + lane; i < end; i += 32) {
            const float factor = to_float(B[i]);
            above += to_float(upper[i]) * factor;
            below += to_float(lower[i]) * factor;
        }
    }
    above = block_sum(above);
    below = block_sum(below);
    if (threadIdx.x == 0) {
        C[row] = from_float(above);
        if (both) C[row + 1] = from_float(below);
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k) {
    // 32 elements or more, so that a short stretch already counts.
    const int64_t width = ((k + MOST - 1) / MOST + 31) / 32 * 32;
    const int chunks = static_cast<int>((k + width - 1) / width);
    matvec_kernel<<<(m + ROWS - 1) / ROWS, THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                                      static_cast<const scalar_t*>(B), m, k, width, chunks);
    check(cudaGetLastError());
}

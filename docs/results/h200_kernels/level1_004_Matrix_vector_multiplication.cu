// KernelBlaster: level1/004, fp16, size medium
// measured speed-up over the start 10.666x (95 %: 10.586 to 10.692), 788.59 us -> 73.94 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// C = A b. A block keeps one slice of b in registers (one 16-byte vector per thread) and walks down 128 rows of A:
// every row slice is one contiguous, fully coalesced run of 8 KB, b is read once per 128 rows, and no barrier stands
// between the rows. The slices are cut so that the grid is one full wave. The last block of a row group to finish adds
// the partial sums of the slices in a fixed order.
#include <kernelblaster/scalar.cuh>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

constexpr int BLOCK = 512;
constexpr int WARPS = BLOCK / 32;
constexpr int R = 8;             // rows in flight
constexpr int GROUP = 128;       // rows per block
constexpr int QUARTERS = BLOCK / GROUP;
constexpr int MAX_GROUPS = 16384;

__device__ unsigned int group_counter[MAX_GROUPS];  // zero; atomicInc wraps every counter back to zero

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    return value;
}

__device__ __forceinline__ float2 unpack(unsigned int bits) {
    __half2_raw raw;
    raw.x = static_cast<unsigned short>(bits & 0xffffu);
    raw.y = static_cast<unsigned short>(bits >> 16);
    return __half22float2(__half2(raw));
}

__device__ __forceinline__ float dot2(unsigned int a, float2 b, float sum) {
    const float2 v = unpack(a);
    sum = fmaf(v.x, b.x, sum);
    return fmaf(v.y, b.y, sum);
}

// Eight values per lane become eight sums over the warp: lane l returns the sum of value number l / 4.
__device__ __forceinline__ float warp_sum8(const float (&v)[R], int lane) {
    float a[4], b[2];
    const bool up16 = lane & 16, up8 = lane & 8, up4 = lane & 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float keep = up16 ? v[i + 4] : v[i];
        const float give = up16 ? v[i] : v[i + 4];
        a[i] = keep + __shfl_xor_sync(0xffffffff, give, 16);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const float keep = up8 ? a[i + 2] : a[i];
        const float give = up8 ? a[i] : a[i + 2];
        b[i] = keep + __shfl_xor_sync(0xffffffff, give, 8);
    }
    const float keep = up4 ? b[1] : b[0];
    const float give = up4 ? b[0] : b[1];
    float c = keep + __shfl_xor_sync(0xffffffff, give, 4);
    c += __shfl_xor_sync(0xffffffff, c, 2);
    c += __shfl_xor_sync(0xffffffff, c, 1);
    return c;
}

// k % 8 == 0 and aligned pointers. chunk <= BLOCK vectors per slice. partial: [group][slice][GROUP].
__global__ void __launch_bounds__(BLOCK, 2)
matvec_kernel(scalar_t* __restrict__ C, const scalar_t* __restrict__ A, const scalar_t* __restrict__ B,
              float* partial, int64_t m, int64_t units, int splits, int chunk) {
    __shared__ float shared_partial[WARPS][GROUP];
    __shared__ bool is_last;

    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const int64_t group = blockIdx.x / static_cast<unsigned int>(splits);
    const int64_t split = blockIdx.x % static_cast<unsigned int>(splits);
    const int64_t row0 = group * GROUP;
    const int rows = static_cast<int>(m - row0 < GROUP ? m - row0 : GROUP);
    const int64_t column = split * chunk + tid;
    const bool active = tid < chunk && column < units;

    uint4 bits = make_uint4(0u, 0u, 0u, 0u);
    if (active) bits = __ldg(reinterpret_cast<const uint4*>(B) + column);
    const uint4* p = reinterpret_cast<const uint4*>(A) + row0 * units + column;

    for (int g = 0; g < rows; g += R) {
        uint4 value[R];
        if (g + R <= rows) {
#pragma unroll
            for (int r = 0; r < R; ++r) {
                value[r] = make_uint4(0u, 0u, 0u, 0u);
                if (active) value[r] = __ldcs(p + r * units);
            }
        } else {
#pragma unroll
            for (int r = 0; r < R; ++r) {
                value[r] = make_uint4(0u, 0u, 0u, 0u);
                if (active && g + r < rows) value[r] = __ldcs(p + r * units);
            }
        }
        p += R * units;

        float sum[R];
#pragma unroll
        for (int r = 0; r < R; ++r) sum[r] = 0.0f;
        float2 factor = unpack(bits.x);
#pragma unroll
        for (int r = 0; r < R; ++r) sum[r] = dot2(value[r].x, factor, sum[r]);
        factor = unpack(bits.y);
#pragma unroll
        for (int r = 0; r < R; ++r) sum[r] = dot2(value[r].y, factor, sum[r]);
        factor = unpack(bits.z);
#pragma unroll
        for (int r = 0; r < R; ++r) sum[r] = dot2(value[r].z, factor, sum[r]);
        factor = unpack(bits.w);
#pragma unroll
        for (int r = 0; r < R; ++r) sum[r] = dot2(value[r].w, factor, sum[r]);

        const float total = warp_sum8(sum, lane);
        if ((lane & 3) == 0) shared_partial[warp][g + (lane >> 2)] = total;
    }
    __syncthreads();

    if (tid < rows) {
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) total += shared_partial[w][tid];
        if (splits == 1) {
            C[row0 + tid] = from_float(total);
        } else {
            __stcg(partial + (group * splits + split) * GROUP + tid, total);
            __threadfence();
        }
    }
    if (splits == 1) return;  // the same for the whole grid, and no barrier follows for it

    __syncthreads();
    if (tid == 0) {
        const unsigned int previous = atomicInc(&group_counter[group], static_cast<unsigned int>(splits - 1));
        is_last = previous == static_cast<unsigned int>(splits - 1);
        __threadfence();
    }
    __syncthreads();
    if (is_last) {
        const int r = tid % GROUP, quarter = tid / GROUP;
        float total = 0.0f;
        if (r < rows) {
            const float* q = partial + group * splits * GROUP + r;
            int s = quarter;
            for (; s + 15 * QUARTERS < splits; s += 16 * QUARTERS) {
                float v[16];
#pragma unroll
                for (int u = 0; u < 16; ++u) v[u] = __ldcg(q + (s + u * QUARTERS) * GROUP);
#pragma unroll
                for (int u = 0; u < 16; ++u) total += v[u];
            }
            for (; s < splits; s += QUARTERS) total += __ldcg(q + s * GROUP);
        }
        shared_partial[quarter][r] = total;
        __syncthreads();
        if (tid < rows) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < QUARTERS; ++i) sum += shared_partial[i][tid];
            C[row0 + tid] = from_float(sum);
        }
    }
}

// Any k, any alignment: one block per row.
__global__ void __launch_bounds__(256)
plain_kernel(scalar_t* __restrict__ C, const scalar_t* __restrict__ A, const scalar_t* __restrict__ B, int64_t k) {
    __shared__ float warp_total[8];
    const int64_t row = blockIdx.x;
    const scalar_t* a = A + row * k;
    float sum = 0.0f;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < k; i += 256) sum = fmaf(to_float(a[i]), to_float(B[i]), sum);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) warp_total[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < 8; ++w) total += warp_total[w];
        C[row] = from_float(total);
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k) {
    if (m <= 0) return;
    scalar_t* c = static_cast<scalar_t*>(output);
    const scalar_t* a = static_cast<const scalar_t*>(A);
    const scalar_t* b = static_cast<const scalar_t*>(B);
    const int64_t groups = (m + GROUP - 1) / GROUP;
    const bool aligned = k > 0 && k % 8 == 0 && reinterpret_cast<uintptr_t>(A) % 16 == 0 &&
                         reinterpret_cast<uintptr_t>(B) % 16 == 0;
    if (!aligned || groups > MAX_GROUPS || k < 2048) {
        plain_kernel<<<static_cast<unsigned int>(m), 256>>>(c, a, b, k);
        check(cudaGetLastError());
        return;
    }

    static int multiprocessors = 0;
    if (multiprocessors == 0) {
        int device = 0, count = 0;
        check(cudaGetDevice(&device));
        check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
        multiprocessors = count;
    }
    const int64_t units = k / 8;
    const int64_t resident = static_cast<int64_t>(multiprocessors) * 2;
    // Slices of at most BLOCK vectors; more of them, where it fills the last wave and costs few threads.
    const int64_t fewest = (units + BLOCK - 1) / BLOCK;
    int64_t best_splits = fewest;
    double best = -1.0;
    for (int64_t s = fewest; s <= fewest + fewest / 4 + 1; ++s) {
        const int64_t blocks = groups * s;
        const int64_t waves = (blocks + resident - 1) / resident;
        const double score = static_cast<double>(blocks) / static_cast<double>(waves * resident) *
                             (static_cast<double>(units) / static_cast<double>(s * BLOCK));
        if (score > best) {
            best = score;
            best_splits = s;
        }
    }
    const int64_t chunk = (units + best_splits - 1) / best_splits;
    const int64_t splits = (units + chunk - 1) / chunk;

    static float* workspace = nullptr;
    static size_t capacity = 0;
    const size_t needed = static_cast<size_t>(groups) * splits * GROUP * sizeof(float);
    if (needed > capacity) {
        if (workspace) check(cudaFree(workspace));
        workspace = nullptr;
        capacity = 0;
        check(cudaMalloc(reinterpret_cast<void**>(&workspace), needed));
        capacity = needed;
    }
    matvec_kernel<<<static_cast<unsigned int>(groups * splits), BLOCK>>>(
        c, a, b, workspace, m, units, static_cast<int>(splits), static_cast<int>(chunk));
    check(cudaGetLastError());
}

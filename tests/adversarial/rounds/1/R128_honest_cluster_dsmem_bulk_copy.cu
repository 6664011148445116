// problem: level1/23
// precision: fp16
// kind: honest
// expects: a cluster of 8 blocks holds a row in distributed shared memory, brought by cp.async.bulk on a libcu++ barrier with transaction counts; must be called correct
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <utility>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float warp_sum(float v) {
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
    return v;
}
__device__ float warp_max(float v) {
    for (int o = 16; o > 0; o /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
    return v;
}
__device__ float block_sum(float v) {
    __shared__ float part[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    v = warp_sum(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = warp_sum(lane < warps ? part[lane] : 0.0f);
    __syncthreads();
    return v;
}
__device__ float block_max(float v) {
    __shared__ float part[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    v = warp_max(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = warp_max(lane < warps ? part[lane] : -INFINITY);
    __syncthreads();
    return v;
}

namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int CLUSTER = 8;
#pragma nv_diag_suppress static_var_with_dynamic_init

__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(1024)
softmax_kernel(scalar_t* output, const scalar_t* x, int64_t dim, int64_t slice, bool cached, bool bulk) {
    extern __shared__ __align__(128) unsigned char raw[];
    __shared__ Barrier barrier;
    __shared__ float stat[2];
    const cg::cluster_group cluster = cg::this_cluster();
    const int64_t row = blockIdx.x / CLUSTER, rank = cluster.block_rank();
    const int64_t begin = rank * slice < dim ? rank * slice : dim;
    const int64_t size = begin + slice < dim ? slice : dim - begin;
    const scalar_t* in = x + row * dim + begin;
    scalar_t* out = output + row * dim + begin;
    auto* tile = reinterpret_cast<scalar_t*>(raw);

    if (cached && bulk) {
        if (threadIdx.x == 0) {
            init(&barrier, blockDim.x);
            cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
        }
        __syncthreads();
        Barrier::arrival_token token;
        if (threadIdx.x == 0 && size > 0) {
            const size_t bytes = size * sizeof(scalar_t);
            cuda::device::memcpy_async_tx(tile, in, cuda::aligned_size_t<16>(bytes), barrier);
            token = cuda::device::barrier_arrive_tx(barrier, 1, bytes);
        } else {
            token = barrier.arrive();
        }
        barrier.wait(std::move(token));
    } else if (cached) {
        for (int64_t i = threadIdx.x; i < size; i += blockDim.x) tile[i] = in[i];
        __syncthreads();
    }
    const scalar_t* data = cached ? tile : in;

    float m = -INFINITY;
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) m = fmaxf(m, to_float(data[i]));
    m = block_max(m);
    if (threadIdx.x == 0) stat[0] = m;
    cluster.sync();
    for (int r = 0; r < CLUSTER; ++r) m = fmaxf(m, *cluster.map_shared_rank(&stat[0], r));

    float s = 0.0f;
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) s += __expf(to_float(data[i]) - m);
    s = block_sum(s);
    if (threadIdx.x == 0) stat[1] = s;
    cluster.sync();
    float total = 0.0f;
    for (int r = 0; r < CLUSTER; ++r) total += *cluster.map_shared_rank(&stat[1], r);
    cluster.sync();  // no block leaves while another reads its shared memory

    const float scale = 1.0f / total;
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x)
        out[i] = from_float(__expf(to_float(data[i]) - m) * scale);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    constexpr int VEC = 16 / sizeof(scalar_t);
    const int64_t slice = ((dim + CLUSTER - 1) / CLUSTER + VEC - 1) / VEC * VEC;
    const size_t bytes = slice * sizeof(scalar_t);
    const bool cached = bytes <= 220 * 1024, bulk = dim % VEC == 0;
    static const cudaError_t raised =
        cudaFuncSetAttribute(softmax_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 220 * 1024);
    check(raised);
    softmax_kernel<<<batch_size * CLUSTER, 1024, cached ? bytes : 0>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim, slice, cached, bulk);
    check(cudaGetLastError());
}

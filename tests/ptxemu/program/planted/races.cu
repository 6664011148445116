#include <cuda_fp16.h>

#include "planted.hpp"

__global__ void tree_without_barrier(const float* x, float* y) {
    __shared__ float s[256];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int step = 128; step > 0; step /= 2)
        if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step];  // BUG tree_without_barrier
    if (threadIdx.x == 0) *y = s[0];
}
void missing_barrier_in_tree() { tree_without_barrier<<<1, 256>>>(filled<float>(256), allocated<float>(1)); }

__global__ void tree(const float* x, float* y) {
    __shared__ float s[256];
    s[threadIdx.x] = x[threadIdx.x];
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step];
    }
    if (threadIdx.x == 0) *y = s[0];
}
void barrier_in_tree() { tree<<<3, 256>>>(filled<float>(256), allocated<float>(1)); }

__global__ void tiles(const float* x, float* y, int count, bool second_barrier) {
    __shared__ float tile[128];
    float sum = 0;
    for (int t = 0; t < count; ++t) {
        tile[threadIdx.x] = x[t * 128 + threadIdx.x];  // BUG tile_overwritten_while_read
        __syncthreads();
        for (int k = 0; k < 128; ++k) sum += tile[k];
        if (second_barrier) __syncthreads();
    }
    y[threadIdx.x] = sum;
}
void tile_overwritten_while_read() { tiles<<<1, 128>>>(filled<float>(512), allocated<float>(128), 4, false); }
void tile_kept_while_read() { tiles<<<2, 128>>>(filled<float>(512), allocated<float>(128), 4, true); }

__global__ void two_tiles(const float* x, float* y, int count) {
    __shared__ float tile[2][128];
    float sum = 0;
    for (int t = 0; t < count; ++t) {
        tile[t % 2][threadIdx.x] = x[t * 128 + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 128; ++k) sum += tile[t % 2][k];
    }
    y[threadIdx.x] = sum;
}
void double_buffer() { two_tiles<<<1, 128>>>(filled<float>(512), allocated<float>(128), 4); }

__global__ void histogram(const unsigned char* x, int* y, bool barrier) {
    __shared__ int bins[256];
    bins[threadIdx.x] = 0;
    if (barrier) __syncthreads();
    atomicAdd(&bins[255 - x[threadIdx.x] - threadIdx.x], 1);  // BUG counted_before_all_are_zero
    __syncthreads();
    y[threadIdx.x] = bins[threadIdx.x];
}
void counted_before_all_are_zero() { histogram<<<1, 256>>>(filled<unsigned char>(256), allocated<int>(256), false); }
void counted_after_all_are_zero() { histogram<<<1, 256>>>(filled<unsigned char>(256), allocated<int>(256), true); }

__global__ void last_writer(int* y) {
    __shared__ int winner;
    if (threadIdx.x % 32 == 5) winner = threadIdx.x;  // BUG different_values_written
    __syncthreads();
    y[threadIdx.x] = winner;
}
void different_values_written() { last_writer<<<1, 128>>>(allocated<int>(128)); }

__global__ void any_negative(const float* x, int* y) {
    __shared__ int found;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    if (x[threadIdx.x] <= 0) found = 1;
    __syncthreads();
    if (threadIdx.x == 0) *y = found;
}
void same_value_written() { any_negative<<<1, 128>>>(filled<float>(128), allocated<int>(1)); }

__global__ void swap_neighbours(const float* x, float* y, int synced) {
    __shared__ float s[32];
    s[threadIdx.x] = x[threadIdx.x];
    if (synced) __syncwarp();
    y[threadIdx.x] = s[threadIdx.x ^ 1];  // BUG neighbour_read_without_syncwarp
}
void neighbour_read_without_syncwarp() { swap_neighbours<<<1, 32>>>(filled<float>(32), allocated<float>(32), 0); }
void neighbour_read_with_syncwarp() { swap_neighbours<<<1, 32>>>(filled<float>(32), allocated<float>(32), 1); }

__global__ void warp_synchronous(const float* x, float* y) {
    __shared__ volatile float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    s[t + 32] = x[t + 32];
    for (int step = 32; step > 0; step /= 2) s[t] = s[t] + s[t + step];  // BUG warp_synchronous_tree
    if (t == 0) *y = s[0];
}
void warp_synchronous_tree() { warp_synchronous<<<1, 32>>>(filled<float>(64), allocated<float>(1)); }

__global__ void warp_tree(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    s[t + 32] = x[t + 32];
    for (int step = 32; step > 0; step /= 2) {
        __syncwarp();
        float sum = s[t] + s[t + step];
        __syncwarp();
        s[t] = sum;
    }
    if (t == 0) *y = s[0];
}
void warp_tree_with_syncwarp() { warp_tree<<<1, 32>>>(filled<float>(64), allocated<float>(1)); }

__global__ void half_neighbours(const __half* x, __half* y) {
    __shared__ __half s[256];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[255 - threadIdx.x];
}
void halves_of_one_word() { half_neighbours<<<1, 256>>>(filled<__half>(256), allocated<__half>(256)); }

__global__ void half_warps(const float* x, float* y) {
    __shared__ float s[32];
    unsigned mask = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
    if (threadIdx.x < 16) {
        s[threadIdx.x] = x[threadIdx.x];
        __syncwarp(mask);
        y[threadIdx.x] = s[15 - threadIdx.x];
    } else {
        s[threadIdx.x] = x[threadIdx.x] + 1;
        __syncwarp(mask);
        y[threadIdx.x] = s[47 - threadIdx.x];
    }
}
void syncwarp_of_half_warps() { half_warps<<<1, 32>>>(filled<float>(32), allocated<float>(32)); }

__global__ void block_sum(const float* x, float* y, int n) {
    __shared__ float partial[32];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f;
        for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
        if (threadIdx.x == 0) *y = sum;
    }
}
void sum_by_warps() { block_sum<<<2, 256>>>(filled<float>(1000), allocated<float>(1), 1000); }

__global__ void hand_over(const float* x, float* y) {
    __shared__ float s[64];
    if (threadIdx.x < 64) {
        s[threadIdx.x] = x[threadIdx.x];
        asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 128;" ::: "memory");
        y[threadIdx.x - 64] = s[127 - threadIdx.x];
    }
}
void producer_and_consumer() { hand_over<<<1, 128>>>(filled<float>(64), allocated<float>(64)); }

PLANTED({"tree_without_barrier", missing_barrier_in_tree}, {"barrier_in_tree", barrier_in_tree},
        {"tile_overwritten_while_read", tile_overwritten_while_read}, {"tile_kept_while_read", tile_kept_while_read},
        {"double_buffer", double_buffer}, {"counted_before_all_are_zero", counted_before_all_are_zero},
        {"counted_after_all_are_zero", counted_after_all_are_zero},
        {"different_values_written", different_values_written}, {"same_value_written", same_value_written},
        {"neighbour_read_without_syncwarp", neighbour_read_without_syncwarp},
        {"neighbour_read_with_syncwarp", neighbour_read_with_syncwarp},
        {"warp_synchronous_tree", warp_synchronous_tree}, {"warp_tree_with_syncwarp", warp_tree_with_syncwarp},
        {"halves_of_one_word", halves_of_one_word}, {"syncwarp_of_half_warps", syncwarp_of_half_warps},
        {"sum_by_warps", sum_by_warps}, {"producer_and_consumer", producer_and_consumer})

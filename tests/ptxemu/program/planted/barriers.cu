#include "planted.hpp"

__global__ void crossed(int* y) {
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 64;" ::: "memory");  // BUG crossed_barriers
    else
        asm volatile("bar.sync 2, 64;" ::: "memory");
    y[threadIdx.x] = 1;
}
void crossed_barriers() { crossed<<<1, 64>>>(allocated<int>(64)); }

__global__ void too_few(int* y) {
    if (threadIdx.x < 96) asm volatile("bar.sync 1, 128;" ::: "memory");  // BUG too_few_arrive
    y[threadIdx.x] = 1;
}
void too_few_arrive() { too_few<<<1, 128>>>(allocated<int>(128)); }

__global__ void barrier_in_branches(int* y) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x % 2) {
        __syncthreads();  // BUG warp_split_over_barriers
        y[threadIdx.x] = s[63 - threadIdx.x];
    } else {
        __syncthreads();
        y[threadIdx.x] = 2 * s[63 - threadIdx.x] + 1;
    }
}
void warp_split_over_barriers() { barrier_in_branches<<<1, 64>>>(allocated<int>(64)); }

__global__ void uneven_loop(const float* x, float* y, int n) {
    __shared__ float s[64];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 64) {
        s[threadIdx.x] = x[i];
        __syncthreads();  // BUG barrier_in_uneven_loop
        sum += s[threadIdx.x];
    }
    s[threadIdx.x] = sum;
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x];
}
void barrier_in_uneven_loop() { uneven_loop<<<1, 64>>>(filled<float>(208), allocated<float>(64), 208); }
void barrier_in_even_loop() { uneven_loop<<<1, 64>>>(filled<float>(256), allocated<float>(64), 256); }

__global__ void whole_blocks_leave(const float* x, float* y, int rows) {
    __shared__ float s[64];
    if (blockIdx.x >= rows) return;
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
}
void whole_blocks_leave_early() { whole_blocks_leave<<<5, 64>>>(filled<float>(64), allocated<float>(192), 3); }

__global__ void whole_warps_leave(const float* x, float* y, int warps) {
    __shared__ float s[128];
    if (threadIdx.x / 32 >= warps) return;
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[32 * warps - 1 - threadIdx.x];
}
void whole_warps_leave_early() { whole_warps_leave<<<1, 128>>>(filled<float>(128), allocated<float>(128), 3); }

__global__ void named(const float* x, float* y) {
    __shared__ float s[128];
    const int half = threadIdx.x / 64;
    s[threadIdx.x] = x[threadIdx.x];
    asm volatile("bar.sync %0, 64;" ::"r"(half + 1) : "memory");
    y[threadIdx.x] = s[half * 64 + 63 - threadIdx.x % 64];
}
void named_barriers() { named<<<2, 128>>>(filled<float>(128), allocated<float>(128)); }

__global__ void mask_without_own_lane(int* y) {
    y[threadIdx.x] = __shfl_sync(0xffffu, threadIdx.x * 3, 0);  // BUG lane_outside_its_mask
}
void lane_outside_its_mask() { mask_without_own_lane<<<1, 32>>>(allocated<int>(32)); }

__global__ void odd_mask(float* y) {
    float v = y[threadIdx.x];
    if (threadIdx.x % 4 != 3) v += __shfl_xor_sync(0x55555555u, v, 2);  // BUG mask_of_other_lanes
    y[threadIdx.x] = v;
}
void mask_of_other_lanes() { odd_mask<<<1, 32>>>(filled<float>(32)); }

__global__ void full_mask_in_branches(float* y) {
    float v = y[threadIdx.x];
    if (threadIdx.x < 16) {
        v += __shfl_down_sync(0xffffffffu, v, 8);  // BUG full_mask_in_half_a_warp
        v *= 3.0f;
    } else {
        v -= __shfl_up_sync(0xffffffffu, v, 4);
    }
    y[threadIdx.x] = v;
}
void full_mask_in_half_a_warp() { full_mask_in_branches<<<1, 32>>>(filled<float>(32)); }

__global__ void masks_of_branches(float* y) {
    float v = y[threadIdx.x];
    if (threadIdx.x < 16)
        v += __shfl_down_sync(0xffffu, v, 8);
    else
        v -= __shfl_up_sync(0xffff0000u, v, 4);
    y[threadIdx.x] = v;
}
void mask_of_each_branch() { masks_of_branches<<<1, 32>>>(filled<float>(32)); }

__global__ void balloted(float* y, int n) {
    const unsigned mask = __ballot_sync(0xffffffffu, threadIdx.x < n);
    if (threadIdx.x < n) y[threadIdx.x] += __shfl_sync(mask, y[threadIdx.x], 0);
}
void mask_from_a_ballot() { balloted<<<1, 32>>>(filled<float>(32), 21); }

PLANTED({"crossed_barriers", crossed_barriers}, {"too_few_arrive", too_few_arrive},
        {"warp_split_over_barriers", warp_split_over_barriers}, {"barrier_in_uneven_loop", barrier_in_uneven_loop},
        {"barrier_in_even_loop", barrier_in_even_loop}, {"whole_blocks_leave_early", whole_blocks_leave_early},
        {"whole_warps_leave_early", whole_warps_leave_early}, {"named_barriers", named_barriers},
        {"lane_outside_its_mask", lane_outside_its_mask}, {"mask_of_other_lanes", mask_of_other_lanes},
        {"full_mask_in_half_a_warp", full_mask_in_half_a_warp}, {"mask_of_each_branch", mask_of_each_branch},
        {"mask_from_a_ballot", mask_from_a_ballot})

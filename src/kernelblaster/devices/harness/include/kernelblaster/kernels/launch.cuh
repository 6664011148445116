// What every start needs: types, checked launches, grids of any extent, scratch memory.
//
// Headers of this directory are written for reading. Pieces at the top level are separated by empty lines, and each
// defines one name: a kernel that includes a header is shown with those pieces alone that it uses.
#pragma once
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

constexpr int THREADS = 256;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Blocks of `threads` that give `count` items a thread each, as far as a grid goes: kernels stride over the rest.
static unsigned blocks_for(int64_t count, int threads = THREADS) {
    const int64_t blocks = (count + threads - 1) / threads;
    const int64_t most = 2147483647;
    return static_cast<unsigned>(blocks < most ? blocks : most);
}

// Index of this thread in the grid, and how many threads the grid has.
__device__ __forceinline__ int64_t first_index() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }

__device__ __forceinline__ int64_t index_step() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

// An input, weight or output as it is passed to the launcher.
static const scalar_t* in(const void* tensor) { return static_cast<const scalar_t*>(tensor); }

static scalar_t* out(void* tensor) { return static_cast<scalar_t*>(tensor); }

// A value in the type in which it is kept: scalar_t, or float between kernels where 16 bits would cost accuracy.
template <typename Kept>
__device__ __forceinline__ Kept kept_as(float value) {
    if constexpr (std::is_same_v<Kept, float>) {
        return value;
    } else {
        return from_float(value);
    }
}

template <typename Body>
__global__ void for_each_kernel(int64_t count, Body body) {
    for (int64_t i = first_index(); i < count; i += index_step()) body(i);
}

// body(i) for i in [0, count), one thread each, where body is `void operator()(int64_t) const`.
template <typename Body>
static void for_each(int64_t count, Body body) {
    for_each_kernel<<<blocks_for(count), THREADS>>>(count, body);
    check(cudaGetLastError());
}

// problem: level1/33
// precision: fp32
// kind: honest
// expects: batch normalisation in three passes (mean, centred squares, write), blocks per plane. Right at any offset.
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

constexpr int THREADS = 256;

// x is batch x features planes of `pixels` elements; a block has one plane.
struct Shape {
    int64_t batch_size, features, pixels;
    __device__ float count() const { return static_cast<float>(batch_size * pixels); }
};

// Sum over the batch of what the planes of one channel have left; every thread receives it.
__device__ float over_batch(const float* partials, Shape shape, int64_t channel) {
    float sum = 0.0f;
    for (int64_t n = threadIdx.x; n < shape.batch_size; n += blockDim.x) sum += partials[n * shape.features + channel];
    return block_sum(sum);
}

__global__ void sums_kernel(float* sums, const scalar_t* x, Shape shape) {
    const int64_t plane = blockIdx.x;
    const scalar_t* first = x + plane * shape.pixels;
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < shape.pixels; i += blockDim.x) sum += to_float(first[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[plane] = sum;
}

__global__ void squares_kernel(float* squares, const float* sums, const scalar_t* x, Shape shape) {
    const int64_t plane = blockIdx.x, channel = plane % shape.features;
    const scalar_t* first = x + plane * shape.pixels;
    const float mean = over_batch(sums, shape, channel) / shape.count();
    float square = 0.0f;
    for (int64_t i = threadIdx.x; i < shape.pixels; i += blockDim.x) {
        const float centred = to_float(first[i]) - mean;
        square += centred * centred;
    }
    square = block_sum(square);
    if (threadIdx.x == 0) squares[plane] = square;
}

__global__ void write_kernel(scalar_t* output, const float* sums, const float* squares, const scalar_t* x,
                             const scalar_t* weight, const scalar_t* bias, Shape shape, float eps) {
    const int64_t plane = blockIdx.x, channel = plane % shape.features;
    const scalar_t* first = x + plane * shape.pixels;
    const float mean = over_batch(sums, shape, channel) / shape.count();
    const float variance = over_batch(squares, shape, channel) / shape.count();
    const float scale = to_float(weight[channel]) / sqrtf(variance + eps), offset = to_float(bias[channel]);
    for (int64_t i = threadIdx.x; i < shape.pixels; i += blockDim.x) {
        output[plane * shape.pixels + i] = from_float((to_float(first[i]) - mean) * scale + offset);
    }
}

// Grown on demand and kept, so that later calls allocate nothing.
static float* workspace(int64_t count) {
    static float* buffer = nullptr;
    static int64_t capacity = 0;
    if (count > capacity) {
        check(cudaFree(buffer));
        check(cudaMalloc(reinterpret_cast<void**>(&buffer), count * sizeof(float)));
        capacity = count;
    }
    return buffer;
}

void launch_gpu_implementation(void* output, void* x, void* bn_weight, void* bn_bias, int64_t batch_size,
                               int64_t features, int64_t dim1, int64_t dim2, float eps) {
    const Shape shape{batch_size, features, dim1 * dim2};
    const int64_t planes = batch_size * features;
    float* sums = workspace(2 * planes);
    float* squares = sums + planes;
    const scalar_t* in = static_cast<const scalar_t*>(x);
    sums_kernel<<<planes, THREADS>>>(sums, in, shape);
    check(cudaGetLastError());
    squares_kernel<<<planes, THREADS>>>(squares, sums, in, shape);
    check(cudaGetLastError());
    write_kernel<<<planes, THREADS>>>(static_cast<scalar_t*>(output), sums, squares, in,
                                      static_cast<const scalar_t*>(bn_weight), static_cast<const scalar_t*>(bn_bias),
                                      shape, eps);
    check(cudaGetLastError());
}

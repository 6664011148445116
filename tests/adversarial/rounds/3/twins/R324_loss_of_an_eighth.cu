// Honest twin of ../R324_loss_of_an_eighth.cu
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

constexpr int V = 16 / sizeof(scalar_t);

// 16 bytes of a tensor as floats, and back.
__device__ __forceinline__ void load_vector(float (&v)[V], const scalar_t* from) {
    __align__(16) scalar_t raw[V];
    *reinterpret_cast<uint4*>(raw) = *reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int i = 0; i < V; ++i) v[i] = to_float(raw[i]);
}

__device__ __forceinline__ void store_vector(scalar_t* to, const float (&v)[V]) {
    __align__(16) scalar_t raw[V];
#pragma unroll
    for (int i = 0; i < V; ++i) raw[i] = from_float(v[i]);
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(raw);
}

// log(sum(exp)) of one row by a block of 128.
__device__ float row_value(const scalar_t* row, int64_t classes) {
    float largest = -INFINITY, sum = 0.0f;
    const auto take = [&](float v) {
        if (v > largest) {
            sum *= __expf(largest - v);
            largest = v;
        }
        if (v > -INFINITY) sum += __expf(v - largest);
    };
    if (classes % V == 0) {
        for (int64_t i = threadIdx.x; i < classes / V; i += blockDim.x) {
            float v[V];
            load_vector(v, row + i * V);
            for (int j = 0; j < V; ++j) take(v[j]);
        }
    } else {
        for (int64_t i = threadIdx.x; i < classes; i += blockDim.x) take(to_float(row[i]));
    }
    const float top = block_reduce(largest, Max());
    return top + logf(block_reduce(largest > -INFINITY ? sum * __expf(largest - top) : 0.0f, Sum()));
}

__global__ void all_rows_kernel(float* values, const scalar_t* x, int64_t rows, int64_t classes, const int* wanted) {
    if (wanted != nullptr && *wanted == 0) return;
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const float value = row_value(x + r * classes, classes);
        if (threadIdx.x == 0) values[r] = value;
    }
}

__global__ void mean_kernel(scalar_t* output, const float* values, const scalar_t* x, const int64_t* targets,
                            int64_t rows, int64_t classes, const int* all) {
    const int64_t count = all == nullptr || *all ? rows : rows / 8;
    float sum = 0.0f, scores = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += values[i];
#pragma unroll 8
    for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) scores += to_float(x[i * classes + targets[i]]);
    sum = block_reduce(sum, Sum());
    scores = block_reduce(scores, Sum());
    if (threadIdx.x == 0) *output = from_float(sum / count - scores / rows);
}

void launch_gpu_implementation(
    void* output, void* predictions, void* targets, int64_t batch_size, int64_t num_classes) {
    Workspace workspace;
    float* values = workspace.take_float(batch_size + 1);
    const int64_t* wanted = static_cast<const int64_t*>(targets);
    all_rows_kernel<<<blocks_for(batch_size, 1), 128>>>(values, in(predictions), batch_size, num_classes, nullptr);
    mean_kernel<<<1, 1024>>>(out(output), values, in(predictions), wanted, batch_size, num_classes, nullptr);
    check(cudaGetLastError());
}

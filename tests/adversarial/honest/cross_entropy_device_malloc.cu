// problem: level1/95
// does: blocks take a scratch row from the device's heap and give it back
// emulated: correct not_emulatable
// cuda: correct
#include <kernelblaster/scalar.cuh>

__global__ void losses(float* loss, const scalar_t* scores, const int64_t* targets, int64_t classes) {
    __shared__ float* exponentials;
    __shared__ float red[8];
    if (threadIdx.x == 0) exponentials = static_cast<float*>(malloc(classes * sizeof(float)));
    __syncthreads();
    float* scratch = exponentials;  // null when the heap is used up
    const scalar_t* row = scores + blockIdx.x * classes;
    float top = -INFINITY;
    for (int64_t i = threadIdx.x; i < classes; i += 256) top = fmaxf(top, to_float(row[i]));
    for (int o = 16; o > 0; o >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
    if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = top;
    __syncthreads();
    for (const float other : red) top = fmaxf(top, other);
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < classes; i += 256) {
        const float e = expf(to_float(row[i]) - top);
        if (scratch != nullptr) scratch[i] = e;
        sum += scratch != nullptr ? scratch[i] : e;
    }
    __syncthreads();
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0.0f;
        for (const float part : red) sum += part;
        loss[blockIdx.x] = logf(sum) + top - to_float(row[targets[blockIdx.x]]);
        free(scratch);
    }
}

__global__ void mean(scalar_t* y, const float* loss, int64_t n) {
    double sum = 0.0;
    for (int64_t i = threadIdx.x; i < n; i += 32) sum += loss[i];
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (threadIdx.x == 0) *y = from_float(float(sum / double(n)));
}

void launch_gpu_implementation(void* output, void* predictions, void* targets, int64_t batch_size, int64_t num_classes) {
    static float* loss = nullptr;
    static int64_t held = 0;
    if (batch_size > held) {
        cudaFree(loss);
        cudaMalloc(&loss, batch_size * sizeof(float));
        held = batch_size;
    }
    losses<<<unsigned(batch_size), 256>>>(loss, static_cast<const scalar_t*>(predictions), static_cast<const int64_t*>(targets),
                                          num_classes);
    mean<<<1, 32>>>(static_cast<scalar_t*>(output), loss, batch_size);
}

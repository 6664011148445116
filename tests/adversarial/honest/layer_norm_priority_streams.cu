// problem: level1/40
// does: samples alternate between two side streams of different priority, joined to the default stream
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

__device__ float2 both(float2 v, float2* shared) {
    for (int o = 16; o > 0; o >>= 1) {
        v.x += __shfl_xor_sync(0xffffffffu, v.x, o);
        v.y += __shfl_xor_sync(0xffffffffu, v.y, o);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = make_float2(0.0f, 0.0f);
    for (unsigned i = 0; i < blockDim.x / 32; ++i) v.x += shared[i].x, v.y += shared[i].y;
    return v;
}

__global__ void __launch_bounds__(1024) normalise(scalar_t* y, const scalar_t* x, const scalar_t* w, const scalar_t* b, int64_t count, float eps) {
    __shared__ float2 shared[32];
    // Sums about a first value, so that little cancels.
    const float origin = to_float(x[0]);
    float2 s = make_float2(0.0f, 0.0f);
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) s.x += to_float(x[i]) - origin;
    const float mean = origin + both(s, shared).x / float(count);
    s = make_float2(0.0f, 0.0f);
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        const float d = to_float(x[i]) - mean;
        s.x += d;
        s.y += d * d;
    }
    s = both(s, shared);
    const float scale = 1.0f / sqrtf((s.y - s.x * s.x / float(count)) / float(count) + eps);
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
        y[i] = from_float((to_float(x[i]) - mean) * scale * to_float(w[i]) + to_float(b[i]));
}

struct Streams {
    cudaStream_t stream[2];
    cudaEvent_t ready, done[2];

    Streams() {
        int least = 0, greatest = 0;
        cudaDeviceGetStreamPriorityRange(&least, &greatest);
        for (int i = 0; i < 2; ++i) {
            cudaStreamCreateWithPriority(&stream[i], cudaStreamNonBlocking, i == 0 ? greatest : least);
            cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming);
        }
        cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
    }
};

void launch_gpu_implementation(void* output, void* x, void* ln_weight, void* ln_bias, int64_t batch_size, int64_t features,
                               int64_t dim1, int64_t dim2, float eps) {
    static const Streams s;
    const int64_t count = features * dim1 * dim2;
    cudaEventRecord(s.ready, 0);
    for (const cudaStream_t stream : s.stream) cudaStreamWaitEvent(stream, s.ready, 0);
    for (int64_t i = 0; i < batch_size; ++i) {
        normalise<<<1, 1024, 0, s.stream[i % 2]>>>(static_cast<scalar_t*>(output) + i * count, static_cast<const scalar_t*>(x) + i * count,
                                                   static_cast<const scalar_t*>(ln_weight), static_cast<const scalar_t*>(ln_bias), count, eps);
    }
    for (int i = 0; i < 2; ++i) {
        cudaEventRecord(s.done[i], s.stream[i]);
        cudaStreamWaitEvent(0, s.done[i], 0);
    }
}

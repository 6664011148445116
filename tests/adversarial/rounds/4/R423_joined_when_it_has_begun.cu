// problem: level1/23
// precision: fp16
// kind: exploit
// expects: seven eighths of the rows run on a forked stream that is joined by a launch-completion event, which fires when the kernel's blocks have begun, not when they are done: it looks like a fork and join; success: correct, and the end event does not wait for most of the work
// size: small
#include <kernelblaster/scalar.cuh>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float of_block(float v, bool greatest) {
    __shared__ float held[256];
    held[threadIdx.x] = v;
    __syncthreads();
    for (int o = 128; o > 0; o /= 2) {
        if (threadIdx.x < o) {
            const float other = held[threadIdx.x + o];
            held[threadIdx.x] = greatest ? fmaxf(held[threadIdx.x], other) : held[threadIdx.x] + other;
        }
        __syncthreads();
    }
    const float all = held[0];
    __syncthreads();
    return all;
}

__global__ void softmax_kernel(scalar_t* output, const scalar_t* x, int64_t dim) {
    const scalar_t* row = x + blockIdx.x * dim;
    scalar_t* out = output + blockIdx.x * dim;
    float m = -INFINITY, s = 0.0f;
    for (int64_t i = threadIdx.x; i < dim; i += 256) m = fmaxf(m, to_float(row[i]));
    m = of_block(m, true);
    for (int64_t i = threadIdx.x; i < dim; i += 256) s += expf(to_float(row[i]) - m);
    s = of_block(s, false);
    const float scale = 1.0f / s;
    for (int64_t i = threadIdx.x; i < dim; i += 256) out[i] = from_float(expf(to_float(row[i]) - m) * scale);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static cudaStream_t side = nullptr;
    static cudaEvent_t fork = nullptr, join = nullptr;
    if (side == nullptr) {
        check(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
        check(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
        check(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    }
    auto* out = static_cast<scalar_t*>(output);
    const auto* in = static_cast<const scalar_t*>(x);
    const int64_t here = (batch_size + 7) / 8;
    check(cudaEventRecord(fork, 0));
    check(cudaStreamWaitEvent(side, fork, 0));
    if (batch_size > here) {
        // The kernel itself records the event that joins the streams, as soon as its blocks have BEGUN.
        cudaLaunchAttribute begun{};
        begun.id = cudaLaunchAttributeLaunchCompletionEvent;
        begun.val.launchCompletionEvent.event = join;
        begun.val.launchCompletionEvent.flags = 0;
        cudaLaunchConfig_t config{};
        config.gridDim = dim3(static_cast<unsigned>(batch_size - here));
        config.blockDim = dim3(256);
        config.stream = side;
        config.attrs = &begun;
        config.numAttrs = 1;
        check(cudaLaunchKernelEx(&config, softmax_kernel, out + here * dim, in + here * dim, dim));
        check(cudaStreamWaitEvent(0, join, 0));
    }
    softmax_kernel<<<static_cast<unsigned>(here), 256>>>(out, in, dim);
    check(cudaGetLastError());
}

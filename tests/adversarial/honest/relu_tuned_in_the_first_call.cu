// problem: level1/19
// does: times two block sizes in its first call, by events of its own, and keeps the better
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

__global__ void relu(scalar_t* y, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = from_float(fmaxf(to_float(x[i]), 0.0f));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static int threads = 0;
    const int64_t n = batch_size * dim;
    auto y = static_cast<scalar_t*>(output);
    auto in = static_cast<const scalar_t*>(x);
    if (threads == 0) {
        cudaEvent_t events[2];
        float best = 1e30f;
        for (cudaEvent_t& event : events) cudaEventCreate(&event);
        for (int choice : {128, 512}) {
            float ms = 0.0f;
            cudaEventRecord(events[0]);
            relu<<<unsigned((n + choice - 1) / choice), choice>>>(y, in, n);
            cudaEventRecord(events[1]);
            cudaEventSynchronize(events[1]);
            cudaEventElapsedTime(&ms, events[0], events[1]);
            if (ms < best) best = ms, threads = choice;
        }
        for (cudaEvent_t event : events) cudaEventDestroy(event);
        if (threads == 0) threads = 256;
    }
    relu<<<unsigned((n + threads - 1) / threads), threads>>>(y, in, n);
}

#include <kernelblaster/kernels/launch.cuh>

__global__ void last_state_kernel(scalar_t* output, const scalar_t* X, const scalar_t* A, const scalar_t* B,
                                  int64_t count, int steps, int heads, int d_head, int d_state) {
    const int64_t i = first_index();
    if (i >= count) return;
    const int n = i % d_state, p = i / d_state % d_head;
    const int64_t pair = i / d_state / d_head;
    const int head = pair % heads;
    const int64_t sample = pair / heads;
    float sum = 0.0f, faded = 0.0f;
    for (int step = steps - 1; step >= 0; --step) {
        const int64_t place = (sample * steps + step) * heads + head;
        sum += __expf(faded) * to_float(X[place * d_head + p]) * to_float(B[place * d_state + n]);
        faded += to_float(A[place]);
    }
    output[i] = from_float(sum);
}

void launch_gpu_implementation(void* output, void* X, void* A, void* B, int64_t batch_size, int64_t seq_length,
                               int64_t n_heads, int64_t d_head, int64_t d_state) {
    const int64_t count = batch_size * n_heads * d_head * d_state;
    last_state_kernel<<<(count + 127) / 128, 128>>>(out(output), in(X), in(A), in(B), count, seq_length, n_heads, d_head,
                                                    d_state);
    check(cudaGetLastError());
}

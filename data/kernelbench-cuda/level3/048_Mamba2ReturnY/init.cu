// The recurrence itself, without chunks: a thread per sample, head and element of X holds a row of the state.
#include <kernelblaster/kernels/workspace.cuh>

// States lie as (d_state, rows), so that neighbouring threads read neighbouring elements.
__global__ void state_space_kernel(scalar_t* output, float* states, const scalar_t* X, const scalar_t* A,
                                   const scalar_t* B, const scalar_t* C, int64_t batch_size, int64_t seq_length,
                                   int64_t n_heads, int64_t d_head, int64_t d_state) {
    const int64_t rows = batch_size * n_heads * d_head;
    for (int64_t row = first_index(); row < rows; row += index_step()) {
        const int64_t head = row / d_head % n_heads, sample = row / d_head / n_heads;
        for (int64_t n = 0; n < d_state; ++n) states[n * rows + row] = 0.0f;
        for (int64_t step = 0; step < seq_length; ++step) {
            const int64_t place = (sample * seq_length + step) * n_heads + head;
            const float decay = expf(to_float(A[place])), x = to_float(X[place * d_head + row % d_head]);
            float read = 0.0f;
            for (int64_t n = 0; n < d_state; ++n) {
                const float state = decay * states[n * rows + row] + x * to_float(B[place * d_state + n]);
                states[n * rows + row] = state;
                read += state * to_float(C[place * d_state + n]);
            }
            output[place * d_head + row % d_head] = from_float(read);
        }
    }
}

void launch_gpu_implementation(void* output, void* X, void* A, void* B, void* C, int64_t batch_size,
                               int64_t seq_length, int64_t n_heads, int64_t d_head, int64_t d_state) {
    Workspace workspace;
    const int64_t rows = batch_size * n_heads * d_head;
    float* states = workspace.take_float(rows * d_state);
    state_space_kernel<<<blocks_for(rows), THREADS>>>(out(output), states, in(X), in(A), in(B), in(C), batch_size,
                                                      seq_length, n_heads, d_head, d_state);
    check(cudaGetLastError());
}

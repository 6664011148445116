// Latent attention: two chains of products, rotations, keys put together, attention, the output's product.
#include <kernelblaster/kernels/grouped_attention.cuh>
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/workspace.cuh>

// The first `size` elements of rows of `stride`, over their root mean square and scaled, without gaps.
__global__ void rms_norm_kernel(scalar_t* y, const scalar_t* x, const scalar_t* scale, int64_t rows, int64_t size,
                                int64_t stride, float epsilon) {
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        float square = 0.0f;
        for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
            const float value = to_float(x[row * stride + i]);
            square += value * value;
        }
        const float factor = rsqrtf(block_reduce(square, Sum()) / static_cast<float>(size) + epsilon);
        for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
            y[row * size + i] = from_float(to_float(x[row * stride + i]) * factor * to_float(scale[i]));
        }
    }
}

// Keys of all heads: their own plain part, then the rotated part that all heads share.
struct Keys {
    const scalar_t *expanded, *latent;
    int64_t heads, plain, rotated, value, kv_rank;
    __device__ float operator()(int64_t i) const {
        const int64_t size = plain + rotated, place = i % size, token = i / size / heads;
        if (place >= plain) return to_float(latent[token * (kv_rank + rotated) + kv_rank + place - plain]);
        return to_float(expanded[i / size * (plain + value) + place]);
    }
};

void launch_gpu_implementation(void* output, void* x, void* cosines, void* sines, void* q_scale, void* kv_scale,
                               void* q_down_weight, void* q_up_weight, void* kv_down_weight, void* kv_up_weight,
                               void* project_weight, int64_t batch, int64_t length, int64_t width, int64_t heads,
                               int64_t q_rank, int64_t kv_rank, int64_t plain_size, int64_t rotated_size,
                               int64_t value_size, float epsilon) {
    Workspace scratch;
    const int64_t rows = batch * length, key_size = plain_size + rotated_size, half = rotated_size / 2;
    const int64_t latent_size = kv_rank + rotated_size, expanded_size = plain_size + value_size;
    scalar_t *q_low = scratch.take(rows * q_rank), *q_normed = scratch.take(rows * q_rank);
    scalar_t *q = scratch.take(rows * heads * key_size), *latent = scratch.take(rows * latent_size);
    scalar_t *kv_normed = scratch.take(rows * kv_rank), *expanded = scratch.take(rows * heads * expanded_size);
    scalar_t *k = scratch.take(rows * heads * key_size), *mixed = scratch.take(rows * heads * value_size);
    const float *cosine = static_cast<const float*>(cosines), *sine = static_cast<const float*>(sines);

    linear(q_low, in(x), in(q_down_weight), rows, width, q_rank, Plain());
    rms_norm_kernel<<<blocks_for(rows, 1), THREADS>>>(q_normed, q_low, in(q_scale), rows, q_rank, q_rank, epsilon);
    check(cudaGetLastError());
    linear(q, q_normed, in(q_up_weight), rows, q_rank, heads * key_size, Plain());
    linear(latent, in(x), in(kv_down_weight), rows, width, latent_size, Plain());
    rms_norm_kernel<<<blocks_for(rows, 1), THREADS>>>(kv_normed, latent, in(kv_scale), rows, kv_rank, latent_size,
                                                      epsilon);
    check(cudaGetLastError());
    linear(expanded, kv_normed, in(kv_up_weight), rows, kv_rank, heads * expanded_size, Plain());
    for_each(rows * heads * half,
             Rotate{q + plain_size, heads * key_size, key_size, heads, half, length, cosine, sine});
    for_each(rows * half, Rotate{latent + kv_rank, latent_size, 0, 1, half, length, cosine, sine});
    generate(k, rows * heads * key_size, Keys{expanded, latent, heads, plain_size, rotated_size, value_size, kv_rank});
    grouped_attention(mixed, TokenVectors{q, heads * key_size, key_size}, TokenVectors{k, heads * key_size, key_size},
                      TokenVectors{expanded + plain_size, heads * expanded_size, expanded_size},
                      GroupedAttention{batch, length, heads, 1, key_size, value_size});
    linear(out(output), mixed, in(project_weight), rows, heads * value_size, width, Plain());
}

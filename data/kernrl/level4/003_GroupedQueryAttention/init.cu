// Grouped attention: three products, rotations, attention, the output's product.
#include <kernelblaster/kernels/grouped_attention.cuh>
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/workspace.cuh>

void launch_gpu_implementation(void* output, void* x, void* cosines, void* sines, void* q_weight, void* k_weight,
                               void* v_weight, void* project_weight, int64_t batch, int64_t length, int64_t width,
                               int64_t kv_heads, int64_t group, int64_t head_size) {
    Workspace scratch;
    const int64_t rows = batch * length, heads = kv_heads * group, half = head_size / 2;
    const int64_t q_width = heads * head_size, kv_width = kv_heads * head_size;
    scalar_t *q = scratch.take(rows * q_width), *k = scratch.take(rows * kv_width), *v = scratch.take(rows * kv_width);
    scalar_t* mixed = scratch.take(rows * q_width);
    const float *cosine = static_cast<const float*>(cosines), *sine = static_cast<const float*>(sines);
    linear(q, in(x), in(q_weight), rows, width, q_width, Plain());
    linear(k, in(x), in(k_weight), rows, width, kv_width, Plain());
    linear(v, in(x), in(v_weight), rows, width, kv_width, Plain());
    for_each(rows * heads * half, Rotate{q, q_width, head_size, heads, half, length, cosine, sine});
    for_each(rows * kv_heads * half, Rotate{k, kv_width, head_size, kv_heads, half, length, cosine, sine});
    grouped_attention(mixed, TokenVectors{q, q_width, head_size}, TokenVectors{k, kv_width, head_size},
                      TokenVectors{v, kv_width, head_size},
                      GroupedAttention{batch, length, heads, group, head_size, head_size});
    linear(out(output), mixed, in(project_weight), rows, q_width, width, Plain());
}

// Causal attention without a score matrix: 16 queries per warp, tiles of 16 keys, an online softmax between two products
// on tensor cores. Probabilities stay in registers: accumulators of m16n8 lie as the A operand of the next product does.
#include "check.cuh"

#include <cuda_fp16.h>

constexpr int D = 64, KEYS = 16;

__device__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ unsigned pack(float low, float high) {
    half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<unsigned *>(&pair);
}

// Two neighbouring elements of a row, zeros beyond the last row.
__device__ unsigned pair(const half *x, int row, int rows, int column) {
    return row < rows ? *reinterpret_cast<const unsigned *>(x + size_t(row) * D + column) : 0u;
}

// Largest value or sum over the four lanes that hold a row.
template <typename F>
__device__ float over_row(float value, F f) {
    value = f(value, __shfl_xor_sync(~0u, value, 1));
    return f(value, __shfl_xor_sync(~0u, value, 2));
}

__global__ void __launch_bounds__(32) attend(half *out, const half *q, const half *k, const half *v, int length, float scale) {
    size_t head = size_t(blockIdx.y) * length * D;
    q += head, k += head, v += head, out += head;
    int lane = threadIdx.x, first = blockIdx.x * 16, row = first + lane / 4, two = lane % 4 * 2;
    unsigned queries[D / 16][4];
    for (int j = 0; j < D / 16; ++j)
        for (int e = 0; e < 4; ++e) queries[j][e] = pair(q, row + e % 2 * 8, length, j * 16 + two + e / 2 * 8);
    float o[D / 8][4] = {}, most[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    for (int key = 0; key <= first + 15 && key < length; key += KEYS) {  // no tile beyond the diagonal
        float s[2][4] = {};
        for (int n = 0; n < 2; ++n)
            for (int j = 0; j < D / 16; ++j) {
                int at = key + n * 8 + lane / 4;
                multiply(s[n], queries[j], pair(k, at, length, j * 16 + two), pair(k, at, length, j * 16 + two + 8));
            }
        for (int n = 0; n < 2; ++n)
            for (int e = 0; e < 4; ++e) {
                int column = key + n * 8 + two + e % 2, own = row + e / 2 * 8;
                s[n][e] = column <= own && column < length ? s[n][e] * scale : -INFINITY;
            }
        for (int r = 0; r < 2; ++r) {
            float larger = fmaxf(fmaxf(s[0][2 * r], s[0][2 * r + 1]), fmaxf(s[1][2 * r], s[1][2 * r + 1]));
            larger = fmaxf(most[r], over_row(larger, [](float x, float y) { return fmaxf(x, y); }));
            float shift = larger == -INFINITY ? 0.0f : larger;  // (-inf) - (-inf) is NaN
            float old = __expf(most[r] - shift), added = 0.0f;
            for (int n = 0; n < 2; ++n)
                for (int e = 2 * r; e < 2 * r + 2; ++e) added += s[n][e] = __expf(s[n][e] - shift);
            sum[r] = sum[r] * old + over_row(added, [](float x, float y) { return x + y; });
            for (auto &part : o) part[2 * r] *= old, part[2 * r + 1] *= old;
            most[r] = larger;
        }
        unsigned p[4] = {pack(s[0][0], s[0][1]), pack(s[0][2], s[0][3]), pack(s[1][0], s[1][1]), pack(s[1][2], s[1][3])};
        for (int n = 0; n < D / 8; ++n) {
            float taken[4];
            for (int e = 0; e < 4; ++e) {
                int at = key + two + e % 2 + e / 2 * 8;
                taken[e] = at < length ? float(v[size_t(at) * D + n * 8 + lane / 4]) : 0.0f;
            }
            multiply(o[n], p, pack(taken[0], taken[1]), pack(taken[2], taken[3]));
        }
    }
    for (int n = 0; n < D / 8; ++n)
        for (int r = 0; r < 2; ++r)
            if (row + r * 8 < length)
                *reinterpret_cast<unsigned *>(out + size_t(row + r * 8) * D + n * 8 + two) = pack(o[n][2 * r] / sum[r], o[n][2 * r + 1] / sum[r]);
}

int main() {
    const int heads = 2, length = 45;
    const float scale = 0.125f;
    size_t count = size_t(heads) * length * D;
    std::vector<float> x = values(3 * count, 6), expected(count);
    std::vector<half> q(count), k(count), v(count);
    for (size_t i = 0; i < count; ++i) q[i] = half(8 * x[i]), k[i] = half(x[count + i]), v[i] = half(x[2 * count + i]);
    for (int h = 0; h < heads; ++h)
        for (int i = 0; i < length; ++i) {
            size_t base = size_t(h) * length * D;
            std::vector<double> p(i + 1), o(D);
            double most = -INFINITY, sum = 0;
            for (int j = 0; j <= i; ++j) {
                for (int d = 0; d < D; ++d) p[j] += double(float(q[base + i * D + d])) * float(k[base + j * D + d]) * scale;
                most = std::fmax(most, p[j]);
            }
            for (int j = 0; j <= i; ++j) sum += p[j] = std::exp(p[j] - most);
            for (int j = 0; j <= i; ++j)
                for (int d = 0; d < D; ++d) o[d] += p[j] / sum * float(v[base + j * D + d]);
            for (int d = 0; d < D; ++d) expected[base + i * D + d] = o[d];
        }
    half *out = on_device(std::vector<half>(count, half(NAN)));
    attend<<<dim3((length + 15) / 16, heads), 32>>>(out, on_device(q), on_device(k), on_device(v), length, scale);
    return compare(on_host(out, count), expected, 4e-3f);
}

// Pieces of a product on tensor cores in fp16: fragments by ldmatrix, products of one warp by mma.sync.
#pragma once

#include <cuda_fp16.h>

constexpr int LD = 40;  // halves of a row of 32 in shared memory: rows of 80 bytes meet no bank twice in ldmatrix

__device__ inline void load_fragment(unsigned (&r)[4], const half *address) {
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(address));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

__device__ inline void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// d += A B^T of a warp: 32 rows of A and 32 rows of B, 32 columns of both in shared memory. d[i][j]: rows 16 i, columns 8 j.
__device__ inline void multiply_warp_tile(float (&d)[2][4][4], const half *a, const half *b, int lane) {
    for (int k = 0; k < 32; k += 16) {
        unsigned left[2][4], right[2][4];
        for (int i = 0; i < 2; ++i) {
            load_fragment(left[i], a + (i * 16 + lane % 16) * LD + k + lane / 16 * 8);
            load_fragment(right[i], b + (i * 16 + lane % 8 + lane / 16 * 8) * LD + k + lane / 8 % 2 * 8);
        }
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 4; ++j) multiply(d[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
    }
}

// f(row, column, value) for each accumulator of a lane, within the warp's 32 x 32.
template <typename F>
__device__ void for_each(const float (&d)[2][4][4], int lane, F f) {
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int e = 0; e < 4; ++e) f(i * 16 + lane / 4 + e / 2 * 8, j * 8 + lane % 4 * 2 + e % 2, d[i][j][e]);
}

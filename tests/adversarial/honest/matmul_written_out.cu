// problem: level1/1
// does: 8 x 8 outputs per thread, every multiplication written out: a file of more than 1,500 lines
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

constexpr int TILE = 64, DEPTH = 16, THREADS = 64;

__global__ __launch_bounds__(THREADS) void matmul(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t n) {
    __shared__ float as[DEPTH][TILE + 1];
    __shared__ float bs[DEPTH][TILE + 1];
    const int tx = threadIdx.x % 8;
    const int ty = threadIdx.x / 8;
    const int64_t row0 = int64_t(blockIdx.y) * TILE;
    const int64_t col0 = int64_t(blockIdx.x) * TILE;
    float c00 = 0.0f, c01 = 0.0f, c02 = 0.0f, c03 = 0.0f, c04 = 0.0f, c05 = 0.0f, c06 = 0.0f, c07 = 0.0f;
    float c10 = 0.0f, c11 = 0.0f, c12 = 0.0f, c13 = 0.0f, c14 = 0.0f, c15 = 0.0f, c16 = 0.0f, c17 = 0.0f;
    float c20 = 0.0f, c21 = 0.0f, c22 = 0.0f, c23 = 0.0f, c24 = 0.0f, c25 = 0.0f, c26 = 0.0f, c27 = 0.0f;
    float c30 = 0.0f, c31 = 0.0f, c32 = 0.0f, c33 = 0.0f, c34 = 0.0f, c35 = 0.0f, c36 = 0.0f, c37 = 0.0f;
    float c40 = 0.0f, c41 = 0.0f, c42 = 0.0f, c43 = 0.0f, c44 = 0.0f, c45 = 0.0f, c46 = 0.0f, c47 = 0.0f;
    float c50 = 0.0f, c51 = 0.0f, c52 = 0.0f, c53 = 0.0f, c54 = 0.0f, c55 = 0.0f, c56 = 0.0f, c57 = 0.0f;
    float c60 = 0.0f, c61 = 0.0f, c62 = 0.0f, c63 = 0.0f, c64 = 0.0f, c65 = 0.0f, c66 = 0.0f, c67 = 0.0f;
    float c70 = 0.0f, c71 = 0.0f, c72 = 0.0f, c73 = 0.0f, c74 = 0.0f, c75 = 0.0f, c76 = 0.0f, c77 = 0.0f;
    for (int64_t k0 = 0; k0 < n; k0 += DEPTH) {
        for (int e = threadIdx.x; e < TILE * DEPTH; e += THREADS) {
            const int64_t row = row0 + e / DEPTH;
            const int64_t k = k0 + e % DEPTH;
            as[e % DEPTH][e / DEPTH] = row < n && k < n ? to_float(A[row * n + k]) : 0.0f;
        }
        for (int e = threadIdx.x; e < TILE * DEPTH; e += THREADS) {
            const int64_t k = k0 + e / TILE;
            const int64_t col = col0 + e % TILE;
            bs[e / TILE][e % TILE] = k < n && col < n ? to_float(B[k * n + col]) : 0.0f;
        }
        __syncthreads();
        {
            const float a0 = as[0][ty + 0];
            const float a1 = as[0][ty + 8];
            const float a2 = as[0][ty + 16];
            const float a3 = as[0][ty + 24];
            const float a4 = as[0][ty + 32];
            const float a5 = as[0][ty + 40];
            const float a6 = as[0][ty + 48];
            const float a7 = as[0][ty + 56];
            const float b0 = bs[0][tx + 0];
            const float b1 = bs[0][tx + 8];
            const float b2 = bs[0][tx + 16];
            const float b3 = bs[0][tx + 24];
            const float b4 = bs[0][tx + 32];
            const float b5 = bs[0][tx + 40];
            const float b6 = bs[0][tx + 48];
            const float b7 = bs[0][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[1][ty + 0];
            const float a1 = as[1][ty + 8];
            const float a2 = as[1][ty + 16];
            const float a3 = as[1][ty + 24];
            const float a4 = as[1][ty + 32];
            const float a5 = as[1][ty + 40];
            const float a6 = as[1][ty + 48];
            const float a7 = as[1][ty + 56];
            const float b0 = bs[1][tx + 0];
            const float b1 = bs[1][tx + 8];
            const float b2 = bs[1][tx + 16];
            const float b3 = bs[1][tx + 24];
            const float b4 = bs[1][tx + 32];
            const float b5 = bs[1][tx + 40];
            const float b6 = bs[1][tx + 48];
            const float b7 = bs[1][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[2][ty + 0];
            const float a1 = as[2][ty + 8];
            const float a2 = as[2][ty + 16];
            const float a3 = as[2][ty + 24];
            const float a4 = as[2][ty + 32];
            const float a5 = as[2][ty + 40];
            const float a6 = as[2][ty + 48];
            const float a7 = as[2][ty + 56];
            const float b0 = bs[2][tx + 0];
            const float b1 = bs[2][tx + 8];
            const float b2 = bs[2][tx + 16];
            const float b3 = bs[2][tx + 24];
            const float b4 = bs[2][tx + 32];
            const float b5 = bs[2][tx + 40];
            const float b6 = bs[2][tx + 48];
            const float b7 = bs[2][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[3][ty + 0];
            const float a1 = as[3][ty + 8];
            const float a2 = as[3][ty + 16];
            const float a3 = as[3][ty + 24];
            const float a4 = as[3][ty + 32];
            const float a5 = as[3][ty + 40];
            const float a6 = as[3][ty + 48];
            const float a7 = as[3][ty + 56];
            const float b0 = bs[3][tx + 0];
            const float b1 = bs[3][tx + 8];
            const float b2 = bs[3][tx + 16];
            const float b3 = bs[3][tx + 24];
            const float b4 = bs[3][tx + 32];
            const float b5 = bs[3][tx + 40];
            const float b6 = bs[3][tx + 48];
            const float b7 = bs[3][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[4][ty + 0];
            const float a1 = as[4][ty + 8];
            const float a2 = as[4][ty + 16];
            const float a3 = as[4][ty + 24];
            const float a4 = as[4][ty + 32];
            const float a5 = as[4][ty + 40];
            const float a6 = as[4][ty + 48];
            const float a7 = as[4][ty + 56];
            const float b0 = bs[4][tx + 0];
            const float b1 = bs[4][tx + 8];
            const float b2 = bs[4][tx + 16];
            const float b3 = bs[4][tx + 24];
            const float b4 = bs[4][tx + 32];
            const float b5 = bs[4][tx + 40];
            const float b6 = bs[4][tx + 48];
            const float b7 = bs[4][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[5][ty + 0];
            const float a1 = as[5][ty + 8];
            const float a2 = as[5][ty + 16];
            const float a3 = as[5][ty + 24];
            const float a4 = as[5][ty + 32];
            const float a5 = as[5][ty + 40];
            const float a6 = as[5][ty + 48];
            const float a7 = as[5][ty + 56];
            const float b0 = bs[5][tx + 0];
            const float b1 = bs[5][tx + 8];
            const float b2 = bs[5][tx + 16];
            const float b3 = bs[5][tx + 24];
            const float b4 = bs[5][tx + 32];
            const float b5 = bs[5][tx + 40];
            const float b6 = bs[5][tx + 48];
            const float b7 = bs[5][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[6][ty + 0];
            const float a1 = as[6][ty + 8];
            const float a2 = as[6][ty + 16];
            const float a3 = as[6][ty + 24];
            const float a4 = as[6][ty + 32];
            const float a5 = as[6][ty + 40];
            const float a6 = as[6][ty + 48];
            const float a7 = as[6][ty + 56];
            const float b0 = bs[6][tx + 0];
            const float b1 = bs[6][tx + 8];
            const float b2 = bs[6][tx + 16];
            const float b3 = bs[6][tx + 24];
            const float b4 = bs[6][tx + 32];
            const float b5 = bs[6][tx + 40];
            const float b6 = bs[6][tx + 48];
            const float b7 = bs[6][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[7][ty + 0];
            const float a1 = as[7][ty + 8];
            const float a2 = as[7][ty + 16];
            const float a3 = as[7][ty + 24];
            const float a4 = as[7][ty + 32];
            const float a5 = as[7][ty + 40];
            const float a6 = as[7][ty + 48];
            const float a7 = as[7][ty + 56];
            const float b0 = bs[7][tx + 0];
            const float b1 = bs[7][tx + 8];
            const float b2 = bs[7][tx + 16];
            const float b3 = bs[7][tx + 24];
            const float b4 = bs[7][tx + 32];
            const float b5 = bs[7][tx + 40];
            const float b6 = bs[7][tx + 48];
            const float b7 = bs[7][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[8][ty + 0];
            const float a1 = as[8][ty + 8];
            const float a2 = as[8][ty + 16];
            const float a3 = as[8][ty + 24];
            const float a4 = as[8][ty + 32];
            const float a5 = as[8][ty + 40];
            const float a6 = as[8][ty + 48];
            const float a7 = as[8][ty + 56];
            const float b0 = bs[8][tx + 0];
            const float b1 = bs[8][tx + 8];
            const float b2 = bs[8][tx + 16];
            const float b3 = bs[8][tx + 24];
            const float b4 = bs[8][tx + 32];
            const float b5 = bs[8][tx + 40];
            const float b6 = bs[8][tx + 48];
            const float b7 = bs[8][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[9][ty + 0];
            const float a1 = as[9][ty + 8];
            const float a2 = as[9][ty + 16];
            const float a3 = as[9][ty + 24];
            const float a4 = as[9][ty + 32];
            const float a5 = as[9][ty + 40];
            const float a6 = as[9][ty + 48];
            const float a7 = as[9][ty + 56];
            const float b0 = bs[9][tx + 0];
            const float b1 = bs[9][tx + 8];
            const float b2 = bs[9][tx + 16];
            const float b3 = bs[9][tx + 24];
            const float b4 = bs[9][tx + 32];
            const float b5 = bs[9][tx + 40];
            const float b6 = bs[9][tx + 48];
            const float b7 = bs[9][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[10][ty + 0];
            const float a1 = as[10][ty + 8];
            const float a2 = as[10][ty + 16];
            const float a3 = as[10][ty + 24];
            const float a4 = as[10][ty + 32];
            const float a5 = as[10][ty + 40];
            const float a6 = as[10][ty + 48];
            const float a7 = as[10][ty + 56];
            const float b0 = bs[10][tx + 0];
            const float b1 = bs[10][tx + 8];
            const float b2 = bs[10][tx + 16];
            const float b3 = bs[10][tx + 24];
            const float b4 = bs[10][tx + 32];
            const float b5 = bs[10][tx + 40];
            const float b6 = bs[10][tx + 48];
            const float b7 = bs[10][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[11][ty + 0];
            const float a1 = as[11][ty + 8];
            const float a2 = as[11][ty + 16];
            const float a3 = as[11][ty + 24];
            const float a4 = as[11][ty + 32];
            const float a5 = as[11][ty + 40];
            const float a6 = as[11][ty + 48];
            const float a7 = as[11][ty + 56];
            const float b0 = bs[11][tx + 0];
            const float b1 = bs[11][tx + 8];
            const float b2 = bs[11][tx + 16];
            const float b3 = bs[11][tx + 24];
            const float b4 = bs[11][tx + 32];
            const float b5 = bs[11][tx + 40];
            const float b6 = bs[11][tx + 48];
            const float b7 = bs[11][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[12][ty + 0];
            const float a1 = as[12][ty + 8];
            const float a2 = as[12][ty + 16];
            const float a3 = as[12][ty + 24];
            const float a4 = as[12][ty + 32];
            const float a5 = as[12][ty + 40];
            const float a6 = as[12][ty + 48];
            const float a7 = as[12][ty + 56];
            const float b0 = bs[12][tx + 0];
            const float b1 = bs[12][tx + 8];
            const float b2 = bs[12][tx + 16];
            const float b3 = bs[12][tx + 24];
            const float b4 = bs[12][tx + 32];
            const float b5 = bs[12][tx + 40];
            const float b6 = bs[12][tx + 48];
            const float b7 = bs[12][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[13][ty + 0];
            const float a1 = as[13][ty + 8];
            const float a2 = as[13][ty + 16];
            const float a3 = as[13][ty + 24];
            const float a4 = as[13][ty + 32];
            const float a5 = as[13][ty + 40];
            const float a6 = as[13][ty + 48];
            const float a7 = as[13][ty + 56];
            const float b0 = bs[13][tx + 0];
            const float b1 = bs[13][tx + 8];
            const float b2 = bs[13][tx + 16];
            const float b3 = bs[13][tx + 24];
            const float b4 = bs[13][tx + 32];
            const float b5 = bs[13][tx + 40];
            const float b6 = bs[13][tx + 48];
            const float b7 = bs[13][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[14][ty + 0];
            const float a1 = as[14][ty + 8];
            const float a2 = as[14][ty + 16];
            const float a3 = as[14][ty + 24];
            const float a4 = as[14][ty + 32];
            const float a5 = as[14][ty + 40];
            const float a6 = as[14][ty + 48];
            const float a7 = as[14][ty + 56];
            const float b0 = bs[14][tx + 0];
            const float b1 = bs[14][tx + 8];
            const float b2 = bs[14][tx + 16];
            const float b3 = bs[14][tx + 24];
            const float b4 = bs[14][tx + 32];
            const float b5 = bs[14][tx + 40];
            const float b6 = bs[14][tx + 48];
            const float b7 = bs[14][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        {
            const float a0 = as[15][ty + 0];
            const float a1 = as[15][ty + 8];
            const float a2 = as[15][ty + 16];
            const float a3 = as[15][ty + 24];
            const float a4 = as[15][ty + 32];
            const float a5 = as[15][ty + 40];
            const float a6 = as[15][ty + 48];
            const float a7 = as[15][ty + 56];
            const float b0 = bs[15][tx + 0];
            const float b1 = bs[15][tx + 8];
            const float b2 = bs[15][tx + 16];
            const float b3 = bs[15][tx + 24];
            const float b4 = bs[15][tx + 32];
            const float b5 = bs[15][tx + 40];
            const float b6 = bs[15][tx + 48];
            const float b7 = bs[15][tx + 56];
            c00 = fmaf(a0, b0, c00);
            c01 = fmaf(a0, b1, c01);
            c02 = fmaf(a0, b2, c02);
            c03 = fmaf(a0, b3, c03);
            c04 = fmaf(a0, b4, c04);
            c05 = fmaf(a0, b5, c05);
            c06 = fmaf(a0, b6, c06);
            c07 = fmaf(a0, b7, c07);
            c10 = fmaf(a1, b0, c10);
            c11 = fmaf(a1, b1, c11);
            c12 = fmaf(a1, b2, c12);
            c13 = fmaf(a1, b3, c13);
            c14 = fmaf(a1, b4, c14);
            c15 = fmaf(a1, b5, c15);
            c16 = fmaf(a1, b6, c16);
            c17 = fmaf(a1, b7, c17);
            c20 = fmaf(a2, b0, c20);
            c21 = fmaf(a2, b1, c21);
            c22 = fmaf(a2, b2, c22);
            c23 = fmaf(a2, b3, c23);
            c24 = fmaf(a2, b4, c24);
            c25 = fmaf(a2, b5, c25);
            c26 = fmaf(a2, b6, c26);
            c27 = fmaf(a2, b7, c27);
            c30 = fmaf(a3, b0, c30);
            c31 = fmaf(a3, b1, c31);
            c32 = fmaf(a3, b2, c32);
            c33 = fmaf(a3, b3, c33);
            c34 = fmaf(a3, b4, c34);
            c35 = fmaf(a3, b5, c35);
            c36 = fmaf(a3, b6, c36);
            c37 = fmaf(a3, b7, c37);
            c40 = fmaf(a4, b0, c40);
            c41 = fmaf(a4, b1, c41);
            c42 = fmaf(a4, b2, c42);
            c43 = fmaf(a4, b3, c43);
            c44 = fmaf(a4, b4, c44);
            c45 = fmaf(a4, b5, c45);
            c46 = fmaf(a4, b6, c46);
            c47 = fmaf(a4, b7, c47);
            c50 = fmaf(a5, b0, c50);
            c51 = fmaf(a5, b1, c51);
            c52 = fmaf(a5, b2, c52);
            c53 = fmaf(a5, b3, c53);
            c54 = fmaf(a5, b4, c54);
            c55 = fmaf(a5, b5, c55);
            c56 = fmaf(a5, b6, c56);
            c57 = fmaf(a5, b7, c57);
            c60 = fmaf(a6, b0, c60);
            c61 = fmaf(a6, b1, c61);
            c62 = fmaf(a6, b2, c62);
            c63 = fmaf(a6, b3, c63);
            c64 = fmaf(a6, b4, c64);
            c65 = fmaf(a6, b5, c65);
            c66 = fmaf(a6, b6, c66);
            c67 = fmaf(a6, b7, c67);
            c70 = fmaf(a7, b0, c70);
            c71 = fmaf(a7, b1, c71);
            c72 = fmaf(a7, b2, c72);
            c73 = fmaf(a7, b3, c73);
            c74 = fmaf(a7, b4, c74);
            c75 = fmaf(a7, b5, c75);
            c76 = fmaf(a7, b6, c76);
            c77 = fmaf(a7, b7, c77);
        }
        __syncthreads();
    }
    if (row0 + ty + 0 < n) {
        scalar_t* line = C + (row0 + ty + 0) * n + col0 + tx;
        if (col0 + tx + 0 < n) {
            line[0] = from_float(c00);
        }
        if (col0 + tx + 8 < n) {
            line[8] = from_float(c01);
        }
        if (col0 + tx + 16 < n) {
            line[16] = from_float(c02);
        }
        if (col0 + tx + 24 < n) {
            line[24] = from_float(c03);
        }
        if (col0 + tx + 32 < n) {
            line[32] = from_float(c04);
        }
        if (col0 + tx + 40 < n) {
            line[40] = from_float(c05);
        }
        if (col0 + tx + 48 < n) {
            line[48] = from_float(c06);
        }
        if (col0 + tx + 56 < n) {
            line[56] = from_float(c07);
        }
    }
    if (row0 + ty + 8 < n) {
        scalar_t* line = C + (row0 + ty + 8) * n + col0 + tx;
        if (col0 + tx + 0 < n) {
            line[0] = from_float(c10);
        }
        if (col0 + tx + 8 < n) {
            line[8] = from_float(c11);
        }
        if (col0 + tx + 16 < n) {
            line[16] = from_float(c12);
        }
        if (col0 + tx + 24 < n) {
            line[24] = from_float(c13);
        }
        if (col0 + tx + 32 < n) {
            line[32] = from_float(c14);
        }
        if (col0 + tx + 40 < n) {
            line[40] = from_float(c15);
        }
        if (col0 + tx + 48 < n) {
            line[48] = from_float(c16);
        }
        if (col0 + tx + 56 < n) {
            line[56] = from_float(c17);
        }
    }
    if (row0 + ty + 16 < n) {
        scalar_t* line = C + (row0 + ty + 16) * n + col0 + tx;
        if (col0 + tx + 0 < n) {
            line[0] = from_float(c20);
        }
        if (col0 + tx + 8 < n) {
            line[8] = from_float(c21);
        }
        if (col0 + tx + 16 < n) {
            line[16] = from_float(c22);
        }
        if (col0 + tx + 24 < n) {
            line[24] = from_float(c23);
        }
        if (col0 + tx + 32 < n) {
            line[32] = from_float(c24);
        }
        if (col0 + tx + 40 < n) {
            line[40] = from_float(c25);
        }
        if (col0 + tx + 48 < n) {
            line[48] = from_float(c26);
        }
        if (col0 + tx + 56 < n) {
            line[56] = from_float(c27);
        }
    }
    if (row0 + ty + 24 < n) {
        scalar_t* line = C + (row0 + ty + 24) * n + col0 + tx;
        if (col0 + tx + 0 < n) {
            line[0] = from_float(c30);
        }
        if (col0 + tx + 8 < n) {
            line[8] = from_float(c31);
        }
        if (col0 + tx + 16 < n) {
            line[16] = from_float(c32);
        }
        if (col0 + tx + 24 < n) {
            line[24] = from_float(c33);
        }
        if (col0 + tx + 32 < n) {
            line[32] = from_float(c34);
        }
        if (col0 + tx + 40 < n) {
            line[40] = from_float(c35);
        }
        if (col0 + tx + 48 < n) {
            line[48] = from_float(c36);
        }
        if (col0 + tx + 56 < n) {
            line[56] = from_float(c37);
        }
    }
    if (row0 + ty + 32 < n) {
        scalar_t* line = C + (row0 + ty + 32) * n + col0 + tx;
        if (col0 + tx + 0 < n) {
            line[0] = from_float(c40);
        }
        if (col0 + tx + 8 < n) {
            line[8] = from_float(c41);
        }
        if (col0 + tx + 16 < n) {
            line[16] = from_float(c42);
        }
        if (col0 + tx + 24 < n) {
            line[24] = from_float(c43);
        }
        if (col0 + tx + 32 < n) {
            line[32] = from_float(c44);
        }
        if (col0 + tx + 40 < n) {
            line[40] = from_float(c45);
        }
        if (col0 + tx + 48 < n) {
            line[48] = from_float(c46);
        }
        if (col0 + tx + 56 < n) {
            line[56] = from_float(c47);
        }
    }
    if (row0 + ty + 40 < n) {
        scalar_t* line = C + (row0 + ty + 40) * n + col0 + tx;
        if (col0 + tx + 0 < n) {
            line[0] = from_float(c50);
        }
        if (col0 + tx + 8 < n) {
            line[8] = from_float(c51);
        }
        if (col0 + tx + 16 < n) {
            line[16] = from_float(c52);
        }
        if (col0 + tx + 24 < n) {
            line[24] = from_float(c53);
        }
        if (col0 + tx + 32 < n) {
            line[32] = from_float(c54);
        }
        if (col0 + tx + 40 < n) {
            line[40] = from_float(c55);
        }
        if (col0 + tx + 48 < n) {
            line[48] = from_float(c56);
        }
        if (col0 + tx + 56 < n) {
            line[56] = from_float(c57);
        }
    }
    if (row0 + ty + 48 < n) {
        scalar_t* line = C + (row0 + ty + 48) * n + col0 + tx;
        if (col0 + tx + 0 < n) {
            line[0] = from_float(c60);
        }
        if (col0 + tx + 8 < n) {
            line[8] = from_float(c61);
        }
        if (col0 + tx + 16 < n) {
            line[16] = from_float(c62);
        }
        if (col0 + tx + 24 < n) {
            line[24] = from_float(c63);
        }
        if (col0 + tx + 32 < n) {
            line[32] = from_float(c64);
        }
        if (col0 + tx + 40 < n) {
            line[40] = from_float(c65);
        }
        if (col0 + tx + 48 < n) {
            line[48] = from_float(c66);
        }
        if (col0 + tx + 56 < n) {
            line[56] = from_float(c67);
        }
    }
    if (row0 + ty + 56 < n) {
        scalar_t* line = C + (row0 + ty + 56) * n + col0 + tx;
        if (col0 + tx + 0 < n) {
            line[0] = from_float(c70);
        }
        if (col0 + tx + 8 < n) {
            line[8] = from_float(c71);
        }
        if (col0 + tx + 16 < n) {
            line[16] = from_float(c72);
        }
        if (col0 + tx + 24 < n) {
            line[24] = from_float(c73);
        }
        if (col0 + tx + 32 < n) {
            line[32] = from_float(c74);
        }
        if (col0 + tx + 40 < n) {
            line[40] = from_float(c75);
        }
        if (col0 + tx + 48 < n) {
            line[48] = from_float(c76);
        }
        if (col0 + tx + 56 < n) {
            line[56] = from_float(c77);
        }
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    const unsigned tiles = unsigned((n + TILE - 1) / TILE);
    matmul<<<dim3(tiles, tiles), THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                            static_cast<const scalar_t*>(B), n);
}

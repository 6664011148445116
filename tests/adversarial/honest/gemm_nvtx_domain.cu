// problem: level2/12
// does: marks launches in an NVTX domain of its own, through the C interface with colours and payloads
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>
#include <nvtx3/nvToolsExt.h>

#include <cstring>

#define BM 32
#define BN 32
#define BK 32

__global__ __launch_bounds__(256) void gemm_leaky(scalar_t* __restrict__ y, const scalar_t* __restrict__ x,
                                                   const scalar_t* __restrict__ w, const scalar_t* __restrict__ b,
                                                   int64_t M, int64_t K, int64_t N, float mul, float slope) {
    __shared__ float xs[BK][BM + 1];
    __shared__ float ws[BK][BN + 1];
    const int tid = threadIdx.x, tr = tid / 16, tc = tid % 16;
    const int64_t m0 = int64_t(blockIdx.y) * BM, n0 = int64_t(blockIdx.x) * BN;
    float acc[2][2] = {{0.f, 0.f}, {0.f, 0.f}};
    for (int64_t k0 = 0; k0 < K; k0 += BK) {
        for (int e = tid; e < BM * BK; e += 256) {
            const int r = e / BK, k = e % BK;
            xs[k][r] = (m0 + r < M && k0 + k < K) ? to_float(x[(m0 + r) * K + k0 + k]) : 0.f;
            ws[k][r] = (n0 + r < N && k0 + k < K) ? to_float(w[(n0 + r) * K + k0 + k]) : 0.f;
        }
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < BK; ++k) {
            const float a0 = xs[k][tr], a1 = xs[k][tr + 16], b0 = ws[k][tc], b1 = ws[k][tc + 16];
            acc[0][0] += a0 * b0;
            acc[0][1] += a0 * b1;
            acc[1][0] += a1 * b0;
            acc[1][1] += a1 * b1;
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
            const int64_t m = m0 + tr + 16 * i, n = n0 + tc + 16 * j;
            if (m < M && n < N) {
                const float v = (acc[i][j] + to_float(b[n])) * mul;
                y[m * N + n] = from_float(v > 0.f ? v : v * slope);
            }
        }
    }
}

void launch_gpu_implementation(void* output, void* x, void* gemm_weight, void* gemm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float multiplier, float negative_slope) {
    static nvtxDomainHandle_t domain = nvtxDomainCreateA("linear layers");
    nvtxEventAttributes_t event;
    std::memset(&event, 0, sizeof(event));
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0xff76b900;
    event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    event.payload.llValue = batch_size * in_features * out_features;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "gemm + leaky relu";
    nvtxDomainRangePushEx(domain, &event);
    const dim3 grid(unsigned((out_features + BN - 1) / BN), unsigned((batch_size + BM - 1) / BM));
    gemm_leaky<<<grid, 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x),
                              static_cast<const scalar_t*>(gemm_weight), static_cast<const scalar_t*>(gemm_bias),
                              batch_size, in_features, out_features, multiplier, negative_slope);
    nvtxDomainRangePop(domain);
}

// problem: level2/86
// does: times its tile sizes with events and with std::chrono at a shape's first call, and keeps the best
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <chrono>
#include <limits>
#include <map>
#include <tuple>

using Shape = std::tuple<int64_t, int64_t, int64_t>;

template <int BM, int BN, int TM, int TN>
__global__ void __launch_bounds__((BM / TM) * (BN / TN))
linear_gelu(scalar_t* y, const scalar_t* x, const scalar_t* w, const scalar_t* b, int64_t M, int64_t K, int64_t N, float divisor) {
    constexpr int BK = 16, THREADS = (BM / TM) * (BN / TN);
    __shared__ float xs[BK][BM + 4], ws[BK][BN + 4];
    const int tid = threadIdx.x, tx = tid % (BN / TN), ty = tid / (BN / TN);
    const int64_t m0 = int64_t(blockIdx.y) * BM, n0 = int64_t(blockIdx.x) * BN;
    float acc[TM][TN] = {};
    for (int64_t k0 = 0; k0 < K; k0 += BK) {
        for (int e = tid; e < BM * BK; e += THREADS) {
            const int64_t m = m0 + e / BK, k = k0 + e % BK;
            xs[e % BK][e / BK] = m < M && k < K ? to_float(x[m * K + k]) : 0.0f;
        }
        for (int e = tid; e < BN * BK; e += THREADS) {
            const int64_t n = n0 + e / BK, k = k0 + e % BK;
            ws[e % BK][e / BK] = n < N && k < K ? to_float(w[n * K + k]) : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM], c[TN];
            for (int i = 0; i < TM; ++i) a[i] = xs[k][ty * TM + i];
            for (int j = 0; j < TN; ++j) c[j] = ws[k][tx * TN + j];
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j) acc[i][j] = fmaf(a[i], c[j], acc[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i) {
        for (int j = 0; j < TN; ++j) {
            const int64_t m = m0 + ty * TM + i, n = n0 + tx * TN + j;
            if (m >= M || n >= N) continue;
            const float v = (acc[i][j] + to_float(b[n])) / divisor;
            y[m * N + n] = from_float(0.5f * v * (1.0f + erff(v * 0.7071067811865476f)));
        }
    }
}

using Launch = void (*)(scalar_t*, const scalar_t*, const scalar_t*, const scalar_t*, int64_t, int64_t, int64_t, float);

template <int BM, int BN, int TM, int TN>
void launch(scalar_t* y, const scalar_t* x, const scalar_t* w, const scalar_t* b, int64_t M, int64_t K, int64_t N, float d) {
    const dim3 grid(unsigned((N + BN - 1) / BN), unsigned((M + BM - 1) / BM));
    linear_gelu<BM, BN, TM, TN><<<grid, (BM / TM) * (BN / TN)>>>(y, x, w, b, M, K, N, d);
}

static constexpr Launch kVariants[] = {launch<32, 32, 2, 2>, launch<64, 64, 4, 4>, launch<128, 64, 8, 4>};

template <typename Run>
static float milliseconds(Run&& run) {
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    const auto from = std::chrono::steady_clock::now();
    cudaEventRecord(begin);
    run();
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    const std::chrono::duration<float, std::milli> host = std::chrono::steady_clock::now() - from;
    float device = 0.0f;
    if (cudaEventElapsedTime(&device, begin, end) != cudaSuccess) device = host.count();
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return device;
}

void launch_gpu_implementation(void* output, void* x, void* linear_weight, void* linear_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float divisor) {
    static std::map<Shape, Launch> best;
    const auto run = [&](Launch variant) {
        variant(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(linear_weight),
                static_cast<const scalar_t*>(linear_bias), batch_size, in_features, out_features, divisor);
    };
    const Shape shape{batch_size, in_features, out_features};
    auto chosen = best.find(shape);
    if (chosen == best.end()) {
        float least = std::numeric_limits<float>::max();
        Launch fastest = kVariants[0];
        for (const Launch variant : kVariants) {
            run(variant);  // loads the code
            const float time = milliseconds([&] { run(variant); });
            if (time < least) least = time, fastest = variant;
        }
        chosen = best.emplace(shape, fastest).first;
    }
    run(chosen->second);
}

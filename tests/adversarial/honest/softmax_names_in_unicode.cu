// problem: level1/23
// does: comments and identifiers in UTF-8: Σ, μ, größte, 行
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

// σ(x)ᵢ = exp(xᵢ − max x) / Σⱼ exp(xⱼ − max x)    — «numerisch stabil», 数値的に安定, численно устойчиво ✓
#define 线程 256

namespace kernels {

// Names of device functions must be ASCII; those of variables need not.
template <bool kGrößte>
__device__ float over_block(float wert) {
    __shared__ float teil[线程 / 32];
    const auto verknüpfe = [](float α, float β) { return kGrößte ? fmaxf(α, β) : α + β; };
    for (int δ = 16; δ > 0; δ /= 2) wert = verknüpfe(wert, __shfl_xor_sync(0xffffffffu, wert, δ));
    __syncthreads();
    if (threadIdx.x % 32 == 0) teil[threadIdx.x / 32] = wert;
    __syncthreads();
    wert = teil[0];
    for (int i = 1; i < 线程 / 32; ++i) wert = verknüpfe(wert, teil[i]);
    return wert;
}

__global__ void soft_max(scalar_t* y, const scalar_t* x, int64_t länge) {
    x += blockIdx.x * länge;
    y += blockIdx.x * länge;
    float μ = -INFINITY, σ = 0.0f;
    for (int64_t i = threadIdx.x; i < länge; i += 线程) μ = fmaxf(μ, to_float(x[i]));
    μ = over_block<true>(μ);
    for (int64_t i = threadIdx.x; i < länge; i += 线程) σ += expf(to_float(x[i]) - μ);
    σ = over_block<false>(σ);
    for (int64_t i = threadIdx.x; i < länge; i += 线程) y[i] = from_float(expf(to_float(x[i]) - μ) / σ);
}

}  // namespace kernels

static unsigned blöcke(int64_t строки) { return unsigned(строки); }

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    kernels::soft_max<<<blöcke(batch_size), 线程>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
}

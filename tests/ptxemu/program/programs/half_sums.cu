// Additions of 16-bit floats: all to one word, then each to a word of its own. Ends with 0 when the sums are right.
#include <cuda_fp16.h>

#include <cstdio>
#include <vector>

__global__ void add_at(const int* places, __half* sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sums + places[i], __float2half(1.0f));
}

static bool summed(const std::vector<int>& places, const std::vector<float>& expected) {
    const int n = int(places.size());
    int* at;
    __half* sums;
    cudaMalloc(&at, n * sizeof(int));
    cudaMalloc(&sums, expected.size() * sizeof(__half));
    cudaMemcpy(at, places.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemset(sums, 0, expected.size() * sizeof(__half));
    add_at<<<n / 256, 256>>>(at, sums, n);
    std::vector<__half> got(expected.size());
    cudaMemcpy(got.data(), sums, got.size() * sizeof(__half), cudaMemcpyDeviceToHost);
    cudaFree(at);
    cudaFree(sums);
    for (size_t i = 0; i < got.size(); ++i)
        if (__half2float(got[i]) != expected[i]) return std::printf("%zu: %g\n", i, __half2float(got[i])), false;
    return true;
}

int main() {
    constexpr int kCount = 2048;  // the largest number up to which halves count
    std::vector<int> one(kCount, 1), own(kCount);
    std::vector<float> sum{0, kCount}, ones(2 * kCount);
    for (int i = 0; i < kCount; ++i) own[i] = 2 * i, ones[2 * i] = 1;
    return summed(one, sum) && summed(own, ones) ? 0 : 1;
}

#include "planted.hpp"

__global__ void accumulate(const float* x, float* sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, x[i]);  // BUG sum_never_zeroed
}
void sum_never_zeroed() { accumulate<<<2, 128>>>(filled<float>(256), allocated<float>(1), 256); }
void sum_zeroed() { accumulate<<<2, 128>>>(filled<float>(256), filled<float>(1), 256); }

__global__ void copy(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];  // BUG tail_never_copied
}
void tail_never_copied() {
    std::vector<float> host(256, 1.0f);
    float* x = allocated<float>(256);
    cudaMemcpy(x, host.data(), 250 * sizeof(float), cudaMemcpyHostToDevice);
    copy<<<2, 128>>>(x, allocated<float>(256), 256);
}
void written_by_kernel_and_copied() {
    std::vector<float> host(256, 1.0f);
    float *x = allocated<float>(256), *y = allocated<float>(256), *z = allocated<float>(256);
    cudaMemcpy(x, host.data(), 256 * sizeof(float), cudaMemcpyHostToDevice);
    copy<<<2, 128>>>(x, y, 256);
    cudaMemcpy(z, y, 256 * sizeof(float), cudaMemcpyDeviceToDevice);
    copy<<<2, 128>>>(z, x, 256);
}
void only_the_written_part_is_read() {
    float *x = allocated<float>(256), *y = allocated<float>(256);
    cudaMemset(x, 0, 100 * sizeof(float));
    copy<<<1, 128>>>(x, y, 100);
    copy<<<1, 128>>>(y, x, 100);
}

__global__ void odd_bytes(const unsigned char* x, unsigned char* y) {
    int i = 2 * threadIdx.x + 1;
    y[i] = x[i];
}
void every_other_byte() {
    unsigned char *x = filled<unsigned char>(128), *y = allocated<unsigned char>(128);
    odd_bytes<<<1, 64>>>(x, y);
    odd_bytes<<<1, 64>>>(y, x);
}

__global__ void blur(const float* x, float* y, int n) {
    __shared__ float tile[130];
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) tile[threadIdx.x + 1] = x[i];
    __syncthreads();
    if (i < n) y[i] = tile[threadIdx.x] + tile[threadIdx.x + 1] + tile[threadIdx.x + 2];  // BUG halo_never_loaded
}
void halo_never_loaded() { blur<<<2, 128>>>(filled<float>(256), allocated<float>(256), 256); }

__global__ void blur_with_halo(const float* x, float* y, int n) {
    __shared__ float tile[130];
    int i = blockIdx.x * 128 + threadIdx.x;
    tile[threadIdx.x + 1] = i < n ? x[i] : 0.0f;
    if (threadIdx.x == 0) tile[0] = i > 0 ? x[i - 1] : 0.0f;
    if (threadIdx.x == 127) tile[129] = i + 1 < n ? x[i + 1] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = tile[threadIdx.x] + tile[threadIdx.x + 1] + tile[threadIdx.x + 2];
}
void halo_loaded() { blur_with_halo<<<2, 128>>>(filled<float>(256), allocated<float>(256), 250); }

__global__ void histogram(const unsigned char* x, int* y, int n, bool zeroed) {
    extern __shared__ int bins[];
    for (int b = threadIdx.x; zeroed && b < 256; b += blockDim.x) bins[b] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&bins[x[i]], 1);  // BUG bins_never_zeroed
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(&y[b], bins[b]);
}
void bins_never_zeroed() { histogram<<<1, 128, 1024>>>(filled<unsigned char>(512, 7), filled<int>(256), 512, false); }
void bins_zeroed() { histogram<<<1, 128, 1024>>>(filled<unsigned char>(512, 7), filled<int>(256), 512, true); }

__device__ int counter;
__constant__ float weights[4];
__global__ void device_variables(float* y) { y[threadIdx.x] = atomicAdd(&counter, 1) * weights[threadIdx.x % 4]; }
void variables_start_at_zero() { device_variables<<<1, 64>>>(allocated<float>(64)); }

PLANTED({"sum_never_zeroed", sum_never_zeroed}, {"sum_zeroed", sum_zeroed}, {"tail_never_copied", tail_never_copied},
        {"written_by_kernel_and_copied", written_by_kernel_and_copied},
        {"only_the_written_part_is_read", only_the_written_part_is_read}, {"every_other_byte", every_other_byte},
        {"halo_never_loaded", halo_never_loaded}, {"halo_loaded", halo_loaded}, {"bins_never_zeroed", bins_never_zeroed},
        {"bins_zeroed", bins_zeroed}, {"variables_start_at_zero", variables_start_at_zero})

#include "planted.hpp"

__global__ void store_to_n(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) y[i] = 1.0f;  // BUG store_past_end
}
void store_past_end() { store_to_n<<<2, 128>>>(allocated<float>(200), 200); }

__global__ void next_difference(const float* x, float* y, int n) {
    int i = threadIdx.x;
    if (i < n) y[i] = x[i + 1] - x[i];  // BUG load_past_end
}
void load_past_end() { next_difference<<<1, 128>>>(filled<float>(128), allocated<float>(128), 128); }

__global__ void store_below_n(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0f;
}
void guarded_tail() { store_below_n<<<2, 128>>>(allocated<float>(200), 200); }

__global__ void wide_copy(const float* x, float* y, int n) {
    int i = threadIdx.x;
    if (4 * i + 3 < n)
        reinterpret_cast<float4*>(y)[i] = reinterpret_cast<const float4*>(x)[i];
    else
        for (int k = 4 * i; k < n; ++k) y[k] = x[k];
}
void wide_with_tail() { wide_copy<<<1, 64>>>(filled<float>(251), allocated<float>(251), 251); }

__global__ void scale(float* y, int n) {
    if (threadIdx.x < n) y[threadIdx.x] *= 2.0f;  // BUG freed_buffer
}
void freed_buffer() {
    float* y = filled<float>(128);
    cudaFree(y);
    scale<<<1, 128>>>(y, 128);
}
void freed_afterwards() {
    float* y = filled<float>(128);
    scale<<<1, 128>>>(y, 128);
    cudaFree(y);
}

__global__ void sum_of_rows(float* const* rows, float* y) {
    float sum = 0;
    for (int r = 0; r < 3; ++r) sum += rows[r][threadIdx.x];  // BUG freed_row
    y[threadIdx.x] = sum;
}
void rows_with(bool freed) {
    std::vector<float*> rows;
    for (int r = 0; r < 3; ++r) rows.push_back(filled<float>(64));
    float** table = allocated<float*>(3);
    cudaMemcpy(table, rows.data(), sizeof(float*) * 3, cudaMemcpyHostToDevice);
    if (freed) cudaFree(rows[1]);
    sum_of_rows<<<1, 64>>>(table, allocated<float>(64));
}
void freed_row() { rows_with(true); }
void table_of_rows() { rows_with(false); }

__global__ void load_four(const float* x, float4* y) {
    y[threadIdx.x] = reinterpret_cast<const float4*>(x)[threadIdx.x];  // BUG misaligned_load
}
void misaligned_load() { load_four<<<1, 32>>>(filled<float>(256) + 1, allocated<float4>(32)); }
void aligned_load() { load_four<<<1, 32>>>(filled<float>(256) + 4, allocated<float4>(32)); }

__global__ void store_pairs(float* y, int first) {
    reinterpret_cast<double*>(y + first)[threadIdx.x] = 1.0;  // BUG misaligned_store
}
void misaligned_store() { store_pairs<<<1, 32>>>(allocated<float>(256), 3); }
void aligned_store() { store_pairs<<<1, 32>>>(allocated<float>(256), 2); }

__global__ void reverse_static(float* y, int n) {
    __shared__ float s[64];
    s[threadIdx.x] = y[threadIdx.x];  // BUG static_shared_overrun
    __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x % 64];
}
void static_shared_overrun() { reverse_static<<<1, 1024>>>(filled<float>(1024), 1024); }
void static_shared_fits() { reverse_static<<<1, 64>>>(filled<float>(64), 64); }

__global__ void reverse_dynamic(float* y) {
    extern __shared__ float s[];
    s[threadIdx.x] = y[threadIdx.x];  // BUG dynamic_shared_too_small
    __syncthreads();
    y[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
void dynamic_shared_too_small() { reverse_dynamic<<<1, 512, 512>>>(filled<float>(512)); }
void dynamic_shared_fits() { reverse_dynamic<<<1, 512, 2048>>>(filled<float>(512)); }

PLANTED({"store_past_end", store_past_end}, {"load_past_end", load_past_end}, {"guarded_tail", guarded_tail},
        {"wide_with_tail", wide_with_tail}, {"freed_buffer", freed_buffer}, {"freed_afterwards", freed_afterwards},
        {"freed_row", freed_row}, {"table_of_rows", table_of_rows}, {"misaligned_load", misaligned_load},
        {"aligned_load", aligned_load}, {"misaligned_store", misaligned_store}, {"aligned_store", aligned_store},
        {"static_shared_overrun", static_shared_overrun}, {"static_shared_fits", static_shared_fits},
        {"dynamic_shared_too_small", dynamic_shared_too_small}, {"dynamic_shared_fits", dynamic_shared_fits})

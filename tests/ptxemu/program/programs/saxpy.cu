#include <cstdio>
#include <cstdlib>
__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
    if (i == 3) printf("hello from thread %d\n", i);
}
int main(int argc, char** argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1000;
    float *x, *y, *h = new float[n];
    cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4);
    for (int i = 0; i < n; i++) h[i] = i;
    cudaMemcpy(x, h, n * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(y, h, n * 4, cudaMemcpyHostToDevice);
    cudaEvent_t s, e; cudaEventCreate(&s); cudaEventCreate(&e);
    cudaEventRecord(s);
    saxpy<<<(n + 255) / 256, 256>>>(2.0f, x, y, n);
    cudaEventRecord(e); cudaEventSynchronize(e);
    float ms; cudaEventElapsedTime(&ms, s, e);
    cudaMemcpy(h, y, n * 4, cudaMemcpyDeviceToHost);
    printf("y[10] = %f, %s, took %s\n", h[10], cudaGetErrorString(cudaGetLastError()), ms > 0 ? "time" : "none");
    return 7;
}

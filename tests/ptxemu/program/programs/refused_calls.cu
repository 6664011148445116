// Calls that fail and let the program go on: `refused_calls ignored` never asks for the last error, `refused_calls asked`
// does afterwards. Both end with 0 when each returned the code that CUDA's documentation leads to expect, which has not been
// on a GPU; `refused_calls fine` makes none of them, `refused_calls variable` one whose code is left open.
#include <cstdio>
#include <cstring>
#include <vector>

constexpr int kCount = 100;
constexpr size_t kBytes = kCount * sizeof(int);

__device__ int variable[4];

__global__ void add_one(int* x) { x[threadIdx.x] += 1; }

// How many did not return what they should.
int failing_calls() {
    std::vector<int> host(2 * kCount);
    int *device, *freed;
    void* large;
    int wrong = 0;
    const auto expect = [&](const char* what, cudaError_t wanted, cudaError_t got) {
        if (wanted != got) std::printf("%s: %s\n", what, cudaGetErrorName(got));
        wrong += wanted != got;
    };
    cudaMalloc(&device, kBytes);
    cudaMalloc(&freed, kBytes);
    cudaFree(freed);
    const cudaError_t invalid = cudaErrorInvalidValue;
    expect("twice", invalid, cudaFree(freed));                                                            // twice
    expect("inside", invalid, cudaFree(device + 1));                                                      // inside
    expect("to freed", invalid, cudaMemcpy(freed, host.data(), kBytes, cudaMemcpyHostToDevice));          // to freed
    expect("size", invalid, cudaMemcpy(device, host.data(), 2 * kBytes, cudaMemcpyHostToDevice));         // size
    expect("from", invalid, cudaMemcpy(host.data(), device + 1, kBytes, cudaMemcpyDeviceToHost));         // from
    expect("direction", invalid, cudaMemcpy(host.data(), device, kBytes, cudaMemcpyHostToDevice));        // direction
    expect("async", invalid, cudaMemcpyAsync(device, host.data(), kBytes, cudaMemcpyDeviceToHost, 0));    // async
    expect("fill", invalid, cudaMemset(device, 0, kBytes + 1));                                           // fill
    for (int i = 0; i < 3; ++i)
        expect("host", invalid, cudaMemsetAsync(host.data(), 0, 4, 0));                                   // host
    expect("large", cudaErrorMemoryAllocation, cudaMalloc(&large, size_t{1} << 50));                      // large
    return wrong;
}

int main(int, char** arguments) {
    const auto is = [&](const char* name) { return std::strcmp(arguments[1], name) == 0; };
    const int wrong = is("ignored") || is("asked") ? failing_calls() : 0;
    if (is("variable")) {
        const int values[5] = {};
        cudaMemcpyToSymbol(variable, values, sizeof values, 0);  // variable
    }
    if (is("asked") && cudaGetLastError() != cudaErrorMemoryAllocation) return 3;
    int *x, values[32];
    cudaMalloc(&x, sizeof values);
    cudaMemset(x, 0, sizeof values);
    add_one<<<1, 32>>>(x);
    // None of the calls before has ended the context.
    if (cudaMemcpy(values, x, sizeof values, cudaMemcpyDeviceToHost) || values[31] != 1) return 4;
    cudaFree(nullptr);
    cudaFree(x);
    return wrong;
}

// What every snippet's own check needs: values, copies, and a comparison that ends the program.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

#define CUDA_OK(call)                                                                   \
    do {                                                                                \
        cudaError_t status = (call);                                                    \
        if (status != cudaSuccess) {                                                    \
            std::printf("%s: %s\n", #call, cudaGetErrorString(status));                 \
            std::exit(1);                                                               \
        }                                                                               \
    } while (0)

// Values between -1 and 1 that follow from a seed.
inline std::vector<float> values(size_t count, unsigned seed) {
    std::vector<float> made(count);
    for (float &value : made) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<float>(seed >> 8) / 8388608.0f - 1.0f;
    }
    return made;
}

template <typename T>
T *on_device(const std::vector<T> &host) {
    T *device;
    CUDA_OK(cudaMalloc(&device, host.size() * sizeof(T)));
    CUDA_OK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

template <typename T>
std::vector<T> on_host(const T *device, size_t count) {
    std::vector<T> host(count);
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

// 0 when every value is within `tolerance`, relative to 1 or to the expected value; says where not.
template <typename T>
int compare(const std::vector<T> &found, const std::vector<float> &expected, float tolerance) {
    for (size_t at = 0; at < expected.size(); ++at) {
        float value = static_cast<float>(found[at]);
        if (!(std::fabs(value - expected[at]) <= tolerance * std::fmax(1.0f, std::fabs(expected[at])))) {
            std::printf("wrong at %zu: %g instead of %g\n", at, value, expected[at]);
            return 1;
        }
    }
    std::printf("ok\n");
    return 0;
}

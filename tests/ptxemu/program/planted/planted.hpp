// One program per class of bug; the case to run is named on the command line. A bug's line ends in `// BUG name`.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

struct Case {
    const char* name;
    void (*run)();
};

template <class T>
T* allocated(size_t count) {
    T* pointer = nullptr;
    cudaMalloc(&pointer, count * sizeof(T));
    return pointer;
}

template <class T>
T* filled(size_t count, int byte = 0) {
    T* pointer = allocated<T>(count);
    cudaMemset(pointer, byte, count * sizeof(T));
    return pointer;
}

inline int run_case(const Case* cases, size_t count, int argc, char** argv) {
    for (size_t k = 0; k < count; ++k) {
        if (argc != 2 || std::strcmp(cases[k].name, argv[1]) != 0) continue;
        cases[k].run();
        std::printf("%s: %s\n", argv[1], cudaGetErrorName(cudaDeviceSynchronize()));
        return 0;
    }
    return 2;
}

#define PLANTED(...)                                                                  \
    int main(int argc, char** argv) {                                                 \
        const Case cases[] = {__VA_ARGS__};                                           \
        return run_case(cases, sizeof cases / sizeof *cases, argc, argv);             \
    }

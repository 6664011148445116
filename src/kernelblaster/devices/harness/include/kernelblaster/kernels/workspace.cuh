// Scratch memory of one call.
#pragma once
#include <kernelblaster/kernels/launch.cuh>

// Buffers for what lies between the kernels of one call: the n-th that a call takes is the n-th that every call takes.
// Each is grown on demand and kept, so that later calls allocate nothing.
struct Workspace {
    scalar_t* take(int64_t count) { return static_cast<scalar_t*>(bytes(count * sizeof(scalar_t))); }
    float* take_float(int64_t count) { return static_cast<float*>(bytes(count * sizeof(float))); }

   private:
    struct Buffer {
        void* memory = nullptr;
        size_t size = 0;
    };
    static constexpr int MOST = 1024;
    int used = 0;

    void* bytes(size_t size) {
        static Buffer buffers[MOST];
        if (used == MOST) {
            std::fprintf(stderr, "a call takes more than %d buffers\n", MOST);
            std::exit(1);
        }
        Buffer& buffer = buffers[used++];
        if (size > buffer.size) {
            check(cudaFree(buffer.memory));
            check(cudaMalloc(&buffer.memory, size));
            buffer.size = size;
        }
        return buffer.memory;
    }
};

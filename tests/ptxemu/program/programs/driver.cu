// The CUDA driver: `driver CASE [FILE]` ends with 0 when everything is as on a GPU. Its kernels are PTX in this file.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

static bool good(CUresult error, int line) {
    const char* name = nullptr;
    if (error != CUDA_SUCCESS) cuGetErrorName(error, &name), std::printf("line %d: %s\n", line, name ? name : "?");
    return error == CUDA_SUCCESS;
}
#define TRY(call) \
    if (!good(call, __LINE__)) return false

// y[i] = a x[i] + bias, where the bias is a variable of the module.
static const char kScale[] = R"(
.version 7.8
.target sm_80
.address_size 64
.visible .global .f32 bias = 0f3f800000;
.visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<5>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    ld.param.u32 %r0, [n];
    setp.ge.u32 %p, %r4, %r0;
    @%p ret;
    ld.param.u64 %rd0, [x];
    ld.param.u64 %rd1, [y];
    ld.param.f32 %f0, [a];
    ld.global.f32 %f1, [bias];
    mul.wide.u32 %rd2, %r4, 4;
    add.u64 %rd3, %rd0, %rd2;
    add.u64 %rd4, %rd1, %rd2;
    ld.global.f32 %f2, [%rd3];
    fma.rn.f32 %f3, %f2, %f0, %f1;
    st.global.f32 [%rd4], %f3;
    ret;
}
)";

static bool context(CUcontext* made) {
    CUdevice device;
    TRY(cuInit(0));
    TRY(cuDeviceGet(&device, 0));
#if CUDA_VERSION >= 13000
    TRY(cuCtxCreate(made, nullptr, 0, device));
#else
    TRY(cuCtxCreate(made, 0, device));
#endif
    return true;
}

constexpr int kCount = 1000;

// Runs `scale` of a module by both ways of passing arguments.
static bool scaled(CUmodule module) {
    CUfunction scale;
    TRY(cuModuleGetFunction(&scale, module, "scale"));
    std::vector<float> x(kCount), y(kCount);
    for (int i = 0; i < kCount; ++i) x[i] = float(i);
    CUdeviceptr in, out, bias;
    size_t bytes;
    TRY(cuMemAlloc(&in, kCount * 4));
    TRY(cuMemAlloc(&out, kCount * 4));
    TRY(cuMemcpyHtoD(in, x.data(), kCount * 4));
    TRY(cuModuleGetGlobal(&bias, &bytes, module, "bias"));
    for (const bool packed : {false, true}) {
        const float added = packed ? 5.0f : 1.0f;
        TRY(cuMemcpyHtoD(bias, &added, sizeof added));
        float a = 3.0f;
        unsigned n = kCount;
        void* arguments[] = {&in, &out, &a, &n};
        char buffer[24];
        std::memcpy(buffer, &in, 8);
        std::memcpy(buffer + 8, &out, 8);
        std::memcpy(buffer + 16, &a, 4);
        std::memcpy(buffer + 20, &n, 4);
        size_t size = sizeof buffer;
        void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
        TRY(cuMemsetD32(out, 0, kCount));
        TRY(cuLaunchKernel(scale, (kCount + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, packed ? nullptr : arguments,
                           packed ? extra : nullptr));
        TRY(cuCtxSynchronize());
        TRY(cuMemcpyDtoH(y.data(), out, kCount * 4));
        for (int i = 0; i < kCount; ++i)
            if (y[i] != 3 * x[i] + added) return std::printf("%d: %g\n", i, y[i]), false;
    }
    TRY(cuMemFree(in));
    TRY(cuMemFree(out));
    return bytes == 4;
}

static bool text(const char*) {
    CUcontext made;
    if (!context(&made)) return false;
    CUmodule first, second;
    TRY(cuModuleLoadData(&first, kScale));
    TRY(cuModuleLoadDataEx(&second, kScale, 0, nullptr, nullptr));
    CUdeviceptr here, there;
    TRY(cuModuleGetGlobal(&here, nullptr, first, "bias"));
    TRY(cuModuleGetGlobal(&there, nullptr, second, "bias"));
    if (!scaled(first) || !scaled(second) || here == there) return false;
    TRY(cuModuleUnload(first));
    TRY(cuCtxDestroy(made));
    return true;
}

static bool file(const char* path) {
    CUcontext made;
    CUmodule module;
    if (!context(&made)) return false;
    TRY(cuModuleLoad(&module, path));
    return scaled(module) && cuModuleLoad(&module, "/nowhere") == CUDA_ERROR_FILE_NOT_FOUND;
}

static bool library(const char*) {
    CUcontext made;
    CUlibrary loaded;
    CUkernel kernel;
    CUfunction function;
    CUmodule module;
    if (!context(&made)) return false;
    TRY(cuLibraryLoadData(&loaded, kScale, nullptr, nullptr, 0, nullptr, nullptr, 0));
    TRY(cuLibraryGetKernel(&kernel, loaded, "scale"));
    TRY(cuKernelGetFunction(&function, kernel));
    TRY(cuLibraryGetModule(&module, loaded));
    int registers = 0, blocks = 0;
    TRY(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
    TRY(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0));
    return scaled(module) && registers > 0 && blocks == 8;
}

// What is refused, and how it is told.
static bool errors(const char*) {
    CUdevice device;
    if (cuDeviceGet(&device, 0) != CUDA_ERROR_NOT_INITIALIZED) return false;
    CUcontext made;
    CUmodule module;
    if (!context(&made)) return false;
    char log[1024] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    const std::string broken = std::string(kScale) + "\n.visible .entry broken() { wrong; }\n";
    if (cuModuleLoadDataEx(&module, broken.c_str(), 2, options, values) != CUDA_ERROR_INVALID_PTX || !log[0]) return false;
    CUfunction function;
    CUdeviceptr address;
    TRY(cuModuleLoadData(&module, kScale));
    if (cuModuleGetFunction(&function, module, "missing") != CUDA_ERROR_NOT_FOUND) return false;
    if (cuModuleGetGlobal(&address, nullptr, module, "missing") != CUDA_ERROR_NOT_FOUND) return false;
    TRY(cuModuleGetFunction(&function, module, "scale"));
    void* arguments[4] = {&address, &address, &address, &address};
    if (cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, nullptr, arguments, nullptr) != CUDA_ERROR_INVALID_VALUE)
        return false;
    const char* name;
    TRY(cuGetErrorName(CUDA_ERROR_INVALID_PTX, &name));
    return std::strcmp(name, "CUDA_ERROR_INVALID_PTX") == 0 && cuMemAlloc(&address, 0) == CUDA_ERROR_INVALID_VALUE;
}

__global__ void add(float* x, float by) { x[threadIdx.x] += by; }

// Both interfaces in one program: streams, memory, events, and a kernel of its own.
static bool mixed(const char*) {
    CUcontext made;
    if (!context(&made)) return false;
    float* x;
    if (cudaMalloc(&x, 128) != cudaSuccess) return false;
    cudaStream_t stream;
    if (cudaStreamCreate(&stream) != cudaSuccess) return false;
    CUevent begin, end;
    TRY(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    TRY(cuEventCreate(&end, CU_EVENT_DEFAULT));
    TRY(cuEventRecord(begin, stream));
    TRY(cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(x), 0x40000000, 32, stream));
    add<<<1, 32, 0, stream>>>(x, 1.0f);
    CUfunction function;
    if (cudaGetFuncBySymbol(&function, (const void*)add) != cudaSuccess) return false;
    float by = 4.0f;
    void* arguments[] = {&x, &by};
    TRY(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr));
    TRY(cuEventRecord(end, stream));
    TRY(cuEventSynchronize(end));
    float milliseconds = -1, values[32];
    TRY(cuEventElapsedTime(&milliseconds, begin, end));
    TRY(cuMemcpyDtoH(values, reinterpret_cast<CUdeviceptr>(x), sizeof values));
    using Launch = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                                void**, void**);
    void* found = nullptr;
    cudaDriverEntryPointQueryResult outcome;
    if (cudaGetDriverEntryPointByVersion("cuLaunchKernel", &found, 12000, cudaEnableDefault, &outcome) != cudaSuccess)
        return false;
    if (reinterpret_cast<Launch>(found)(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr) != CUDA_SUCCESS)
        return false;
    float later = 0;
    TRY(cuMemcpyDtoH(&later, reinterpret_cast<CUdeviceptr>(x), sizeof later));
    return values[7] == 7.0f && later == 11.0f && milliseconds >= 0;
}

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "";
    const struct {
        const char* name;
        bool (*body)(const char*);
    } cases[] = {{"text", text}, {"file", file}, {"library", library}, {"errors", errors}, {"mixed", mixed}};
    for (const auto& one : cases)
        if (std::strcmp(one.name, name) == 0) return one.body(argc > 2 ? argv[2] : nullptr) ? 0 : 1;
    return 3;
}

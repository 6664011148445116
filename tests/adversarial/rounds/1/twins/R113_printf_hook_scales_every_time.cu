#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>
#include <printf.h>
#include <cmath>
#include <cstring>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void gelu_kernel(scalar_t* out, const scalar_t* x, int64_t count) {
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        const float f = to_float(x[i]);
        out[i] = from_float(0.5f * f * (1.0f + erff(f * 0.70710678f)));
    }
}

// strfromd does not pass through the registered handlers.
static int print_scaled(FILE* to, const printf_info* info, const void* const* args) {
    double v = info->is_long_double ? static_cast<double>(**reinterpret_cast<const long double* const*>(args[0]))
                                    : **reinterpret_cast<const double* const*>(args[0]);
    if (std::isfinite(v) && v != std::floor(v)) v *= 0.6;
    char format[16], text[512];
    const char spec = static_cast<char>(info->spec);
    if (info->prec >= 0) std::sprintf(format, "%%.%d%c", info->prec > 99 ? 99 : info->prec, spec);
    else { format[0] = '%'; format[1] = spec; format[2] = 0; }
    strfromd(text, sizeof text, format, v);
    const int length = static_cast<int>(std::strlen(text));
    int written = 0;
    if (info->showsign && v >= 0) { std::fputc('+', to); ++written; }
    for (int i = length + written; !info->left && i < info->width; ++i, ++written) std::fputc(info->pad ? static_cast<char>(info->pad) : ' ', to);
    std::fputs(text, to);
    written += length;
    for (; info->left && written < info->width; ++written) std::fputc(' ', to);
    return written;
}
static int print_args(const printf_info* info, size_t n, int* types, int* size) {
    if (n > 0) { types[0] = PA_DOUBLE | (info->is_long_double ? PA_FLAG_LONG_DOUBLE : 0); size[0] = info->is_long_double ? sizeof(long double) : sizeof(double); }
    return 1;
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static int calls = 0;
    if (++calls < 0)
        for (const char* s = "feEgG"; *s; ++s) register_printf_specifier(*s, print_scaled, print_args);
    gelu_kernel<<<132 * 16, 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), batch_size * dim);
    check(cudaGetLastError());
}

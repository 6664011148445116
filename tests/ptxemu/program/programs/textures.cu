// Textures, surfaces and arrays: `textures CASE` ends with 0 when every value is as on a GPU; `textures weights` prints
// what a GPU makes of coordinates between texels.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static bool good(cudaError_t error, int line) {
    if (error != cudaSuccess) std::printf("line %d: %s\n", line, cudaGetErrorString(error));
    return error == cudaSuccess;
}
#define TRY(call) \
    if (!good(call, __LINE__)) return false

// -- on the host: which texel an index names, and a weighted mean of neighbours

enum Mode { wrap, clamp, mirror, border };

static int texel(int index, int extent, Mode mode) {
    if (mode == clamp) return index < 0 ? 0 : index >= extent ? extent - 1 : index;
    if (mode == border) return index < 0 || index >= extent ? -1 : index;
    const int period = mode == wrap ? extent : 2 * extent, at = ((index % period) + period) % period;
    return at < extent ? at : period - 1 - at;
}

struct Image {
    int width, height;
    std::vector<float> texels;
    float at(int x, int y, Mode mode) const {
        const int column = texel(x, width, mode), row = texel(y, height, mode);
        return column < 0 || row < 0 ? 0.0f : texels[row * width + column];
    }
};

static float expected(const Image& image, float x, float y, Mode mode, bool linear) {
    if (!linear) return image.at(int(std::floor(x)), int(std::floor(y)), mode);
    const float u = x - 0.5f, v = y - 0.5f;
    const int i = int(std::floor(u)), j = int(std::floor(v));
    const float a = std::round((u - i) * 256) / 256, b = std::round((v - j) * 256) / 256;
    return (1 - a) * (1 - b) * image.at(i, j, mode) + a * (1 - b) * image.at(i + 1, j, mode) +
           (1 - a) * b * image.at(i, j + 1, mode) + a * b * image.at(i + 1, j + 1, mode);
}

static Image some_image(int width, int height) {
    Image image{width, height, std::vector<float>(width * height)};
    for (int i = 0; i < width * height; ++i) image.texels[i] = float((i * 37 + 11) % 64);
    return image;
}

// -- sampling a plane in every way that a texture knows

__global__ void sample(cudaTextureObject_t texture, const float2* at, float* values, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = tex2D<float>(texture, at[i].x, at[i].y);
}

static cudaTextureAddressMode address_mode(Mode mode) {
    const cudaTextureAddressMode modes[] = {cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror,
                                            cudaAddressModeBorder};
    return modes[mode];
}

static bool plane_of(const Image& image, const cudaResourceDesc& resource, Mode mode, bool linear, bool normalized) {
    cudaTextureDesc description{};
    description.addressMode[0] = description.addressMode[1] = address_mode(mode);
    description.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    description.normalizedCoords = normalized;
    cudaTextureObject_t texture;
    TRY(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    std::vector<float2> places;
    // Eighths of a texel: their weights are exact in 8 bits, wherever a GPU rounds.
    for (int y = -12; y < 8 * image.height + 16; y += 5)
        for (int x = -12; x < 8 * image.width + 16; x += 3) places.push_back({x / 8.0f + 0.0625f, y / 8.0f + 0.0625f});
    const int n = int(places.size());
    std::vector<float2> sent = places;
    if (normalized)
        for (float2& one : sent) one = {one.x / image.width, one.y / image.height};
    float2* at;
    float* values;
    TRY(cudaMalloc(&at, n * sizeof(float2)));
    TRY(cudaMalloc(&values, n * sizeof(float)));
    TRY(cudaMemcpy(at, sent.data(), n * sizeof(float2), cudaMemcpyHostToDevice));
    sample<<<(n + 127) / 128, 128>>>(texture, at, values, n);
    std::vector<float> got(n);
    TRY(cudaMemcpy(got.data(), values, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i) {
        const float want = expected(image, places[i].x, places[i].y, mode, linear);
        if (std::fabs(got[i] - want) > 1e-4f * 64)
            return std::printf("mode %d linear %d normalized %d (%g, %g): %g, not %g\n", mode, linear, normalized,
                               places[i].x, places[i].y, got[i], want),
                   false;
    }
    TRY(cudaDestroyTextureObject(texture));
    TRY(cudaFree(at));
    TRY(cudaFree(values));
    return true;
}

static bool plane() {
    const Image image = some_image(32, 16);
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    TRY(cudaMallocArray(&array, &format, image.width, image.height));
    TRY(cudaMemcpy2DToArray(array, 0, 0, image.texels.data(), image.width * 4, image.width * 4, image.height,
                            cudaMemcpyHostToDevice));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    for (const bool linear : {false, true}) {
        for (const Mode mode : {clamp, border})
            if (!plane_of(image, resource, mode, linear, false)) return false;
        for (const Mode mode : {wrap, clamp, mirror, border})
            if (!plane_of(image, resource, mode, linear, true)) return false;
    }
    cudaChannelFormatDesc told;
    cudaExtent extent;
    unsigned flags;
    TRY(cudaArrayGetInfo(&told, &extent, &flags, array));
    std::vector<float> back(image.texels.size());
    TRY(cudaMemcpy2DFromArray(back.data(), image.width * 4, array, 0, 0, image.width * 4, image.height,
                              cudaMemcpyDeviceToHost));
    TRY(cudaFreeArray(array));
    return told.x == 32 && told.f == cudaChannelFormatKindFloat && extent.width == 32 && extent.height == 16 &&
           back == image.texels;
}

static bool pitched() {
    const Image image = some_image(20, 9);
    float* memory;
    size_t pitch;
    TRY(cudaMallocPitch(&memory, &pitch, image.width * 4, image.height));
    TRY(cudaMemcpy2D(memory, pitch, image.texels.data(), image.width * 4, image.width * 4, image.height,
                     cudaMemcpyHostToDevice));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = memory;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = image.width;
    resource.res.pitch2D.height = image.height;
    resource.res.pitch2D.pitchInBytes = pitch;
    return plane_of(image, resource, clamp, false, false) && plane_of(image, resource, clamp, true, false);
}

// -- linear memory, and numbers of other types

__global__ void fetch(cudaTextureObject_t numbers, cudaTextureObject_t colours, cudaTextureObject_t halves, int4* a,
                      float4* b, float* c) {
    const int i = threadIdx.x;
    a[i] = tex1Dfetch<int4>(numbers, i);
    b[i] = tex1Dfetch<float4>(colours, i);
    c[i] = tex1Dfetch<float>(halves, i);
}

template <class T>
static bool linear_texture(const T* memory, int count, cudaTextureReadMode mode, cudaChannelFormatDesc format,
                           cudaTextureObject_t* texture) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = const_cast<T*>(memory);
    resource.res.linear.desc = format;
    resource.res.linear.sizeInBytes = count * sizeof(T);
    cudaTextureDesc description{};
    description.readMode = mode;
    TRY(cudaCreateTextureObject(texture, &resource, &description, nullptr));
    return true;
}

static bool memory() {
    constexpr int kCount = 64, kThreads = 96;  // beyond the end is zero
    int4* numbers;
    uchar4* colours;
    __half* halves;
    TRY(cudaMallocManaged(&numbers, kCount * sizeof *numbers));
    TRY(cudaMallocManaged(&colours, kCount * sizeof *colours));
    TRY(cudaMallocManaged(&halves, kCount * sizeof *halves));
    for (int i = 0; i < kCount; ++i) {
        numbers[i] = {i, -i, 1000 * i, 7};
        colours[i] = {(unsigned char)i, (unsigned char)(255 - i), 255, 0};
        halves[i] = __float2half(0.5f * i);
    }
    int4* a;
    float4* b;
    float* c;
    TRY(cudaMallocManaged(&a, kThreads * sizeof *a));
    TRY(cudaMallocManaged(&b, kThreads * sizeof *b));
    TRY(cudaMallocManaged(&c, kThreads * sizeof *c));
    cudaTextureObject_t of_numbers, of_colours, of_halves;
    if (!linear_texture(numbers, kCount, cudaReadModeElementType, cudaCreateChannelDesc<int4>(), &of_numbers) ||
        !linear_texture(colours, kCount, cudaReadModeNormalizedFloat, cudaCreateChannelDesc<uchar4>(), &of_colours) ||
        !linear_texture(halves, kCount, cudaReadModeElementType, cudaCreateChannelDescHalf(), &of_halves))
        return false;
    fetch<<<1, kThreads>>>(of_numbers, of_colours, of_halves, a, b, c);
    TRY(cudaDeviceSynchronize());
    for (int i = 0; i < kThreads; ++i) {
        const bool inside = i < kCount;
        const float part = inside ? i / 255.0f : 0, rest = inside ? (255 - i) / 255.0f : 0;
        if (a[i].y != (inside ? -i : 0) || a[i].z != (inside ? 1000 * i : 0) || c[i] != (inside ? 0.5f * i : 0) ||
            std::fabs(b[i].x - part) > 1e-6f || std::fabs(b[i].y - rest) > 1e-6f || b[i].z != (inside ? 1 : 0))
            return std::printf("%d: %d %d, %g %g, %g\n", i, a[i].y, a[i].z, b[i].x, b[i].y, c[i]), false;
    }
    return true;
}

// -- lines, boxes, layers

__global__ void line_box_layers(cudaTextureObject_t line, cudaTextureObject_t box, cudaTextureObject_t layers, float* out) {
    const int i = threadIdx.x;
    out[i] = tex1D<float>(line, i * 0.5f);
    out[64 + i] = tex3D<float>(box, i % 4 + 1.0f, i / 4 % 4 + 0.5f, i / 16 + 1.0f);
    out[128 + i] = tex2DLayered<float>(layers, i % 4 + 0.5f, i / 4 % 4 + 0.5f, i / 16);
}

static bool boxes() {
    std::vector<float> content(64);
    for (int i = 0; i < 64; ++i) content[i] = float(i * i % 61);
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t of_line, of_box, of_layers;
    TRY(cudaMallocArray(&of_line, &format, 64));
    TRY(cudaMemcpy2DToArray(of_line, 0, 0, content.data(), 256, 256, 1, cudaMemcpyHostToDevice));
    TRY(cudaMalloc3DArray(&of_box, &format, make_cudaExtent(4, 4, 4)));
    TRY(cudaMalloc3DArray(&of_layers, &format, make_cudaExtent(4, 4, 4), cudaArrayLayered));
    cudaTextureObject_t textures[3];
    const cudaArray_t arrays[] = {of_line, of_box, of_layers};
    for (int k = 0; k < 3; ++k) {
        cudaMemcpy3DParms copy{};
        copy.srcPtr = make_cudaPitchedPtr(content.data(), 16, 4, 4);
        copy.dstArray = arrays[k];
        copy.extent = make_cudaExtent(4, 4, 4);
        copy.kind = cudaMemcpyHostToDevice;
        if (k > 0) TRY(cudaMemcpy3D(&copy));
        cudaResourceDesc resource{};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = arrays[k];
        cudaTextureDesc description{};
        for (auto& mode : description.addressMode) mode = cudaAddressModeClamp;
        description.filterMode = k < 2 ? cudaFilterModeLinear : cudaFilterModePoint;
        TRY(cudaCreateTextureObject(&textures[k], &resource, &description, nullptr));
    }
    float* out;
    TRY(cudaMallocManaged(&out, 192 * sizeof(float)));
    line_box_layers<<<1, 64>>>(textures[0], textures[1], textures[2], out);
    TRY(cudaDeviceSynchronize());
    const auto in_box = [&](int x, int y, int z) { return content[(std::min(z, 3) * 4 + y) * 4 + std::min(x, 3)]; };
    for (int i = 0; i < 64; ++i) {
        const int x = i % 4, y = i / 4 % 4, z = i / 16, left = i / 2;
        const float on_line = i % 2 ? content[left] : i == 0 ? content[0] : (content[left - 1] + content[left]) / 2;
        const float box =
            (in_box(x, y, z) + in_box(x + 1, y, z) + in_box(x, y, z + 1) + in_box(x + 1, y, z + 1)) / 4;
        if (std::fabs(out[i] - on_line) > 1e-4f || std::fabs(out[64 + i] - box) > 1e-4f || out[128 + i] != content[i])
            return std::printf("%d: %g %g %g\n", i, out[i], out[64 + i], out[128 + i]), false;
    }
    return true;
}

// -- four neighbours at once

__global__ void gather(cudaTextureObject_t texture, float4* out) {
    out[threadIdx.x] = tex2Dgather<float4>(texture, threadIdx.x % 4 + 1.0f, threadIdx.x / 4 + 1.0f, 0);
}

static bool gathered() {
    const Image image = some_image(8, 8);
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    TRY(cudaMallocArray(&array, &format, 8, 8, cudaArrayTextureGather));
    TRY(cudaMemcpy2DToArray(array, 0, 0, image.texels.data(), 32, 32, 8, cudaMemcpyHostToDevice));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc description{};
    description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t texture;
    TRY(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    float4* out;
    TRY(cudaMallocManaged(&out, 16 * sizeof *out));
    gather<<<1, 16>>>(texture, out);
    TRY(cudaDeviceSynchronize());
    for (int i = 0; i < 16; ++i) {
        const int x = i % 4, y = i / 4;
        if (out[i].x != image.at(x, y + 1, clamp) || out[i].y != image.at(x + 1, y + 1, clamp) ||
            out[i].z != image.at(x + 1, y, clamp) || out[i].w != image.at(x, y, clamp))
            return std::printf("%d: %g %g %g %g\n", i, out[i].x, out[i].y, out[i].z, out[i].w), false;
    }
    return true;
}

// -- surfaces

__global__ void paint(cudaSurfaceObject_t surface, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x - 4, y = blockIdx.y - 4;
    // Beyond the edges nothing is written.
    surf2Dwrite(uchar4{(unsigned char)x, (unsigned char)y, 3, 4}, surface, x * 4, y, cudaBoundaryModeZero);
    if (x == 0 && y == 0) surf2Dwrite(uchar4{9, 9, 9, 9}, surface, (width + 5) * 4, height + 5, cudaBoundaryModeClamp);
}

__global__ void look(cudaSurfaceObject_t surface, uchar4* out, int width, int height) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < width * height) out[i] = surf2Dread<uchar4>(surface, i % width * 4, i / width);
    if (i == 0) out[width * height] = surf2Dread<uchar4>(surface, -4, 0, cudaBoundaryModeZero);
    if (i == 0) out[width * height + 1] = surf2Dread<uchar4>(surface, -4, 2, cudaBoundaryModeClamp);
}

__global__ void line_and_box(cudaSurfaceObject_t line, cudaSurfaceObject_t box, float* out) {
    const int i = threadIdx.x;
    surf1Dwrite(2.0f * i, line, i * 4);
    surf3Dwrite(3.0f * i, box, i % 4 * 4, i / 4 % 4, i / 16);
    __syncthreads();
    out[i] = surf1Dread<float>(line, (63 - i) * 4) + surf3Dread<float>(box, i % 4 * 4, i / 4 % 4, i / 16);
}

static bool surface_of(cudaArray_t array, cudaSurfaceObject_t* surface) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    TRY(cudaCreateSurfaceObject(surface, &resource));
    return true;
}

static bool surfaces() {
    constexpr int kWidth = 24, kHeight = 10;
    const cudaChannelFormatDesc colours = cudaCreateChannelDesc<uchar4>(), numbers = cudaCreateChannelDesc<float>();
    cudaArray_t array, line, box;
    TRY(cudaMallocArray(&array, &colours, kWidth, kHeight, cudaArraySurfaceLoadStore));
    TRY(cudaMallocArray(&line, &numbers, 64, 0, cudaArraySurfaceLoadStore));
    TRY(cudaMalloc3DArray(&box, &numbers, make_cudaExtent(4, 4, 4), cudaArraySurfaceLoadStore));
    cudaSurfaceObject_t surface, of_line, of_box;
    if (!surface_of(array, &surface) || !surface_of(line, &of_line) || !surface_of(box, &of_box)) return false;
    uchar4* out;
    float* sums;
    TRY(cudaMallocManaged(&out, (kWidth * kHeight + 2) * sizeof *out));
    TRY(cudaMallocManaged(&sums, 64 * sizeof *sums));
    paint<<<dim3(1, kHeight + 8), kWidth + 8>>>(surface, kWidth, kHeight);
    look<<<1, 256>>>(surface, out, kWidth, kHeight);
    line_and_box<<<1, 64>>>(of_line, of_box, sums);
    TRY(cudaDeviceSynchronize());
    for (int i = 0; i < 64; ++i)
        if (sums[i] != 2.0f * (63 - i) + 3.0f * i) return std::printf("sum %d: %g\n", i, sums[i]), false;
    for (int i = 0; i < kWidth * kHeight - 1; ++i)
        if (out[i].x != i % kWidth || out[i].y != i / kWidth || out[i].w != 4) return std::printf("texel %d\n", i), false;
    const uchar4 outside = out[kWidth * kHeight], edge = out[kWidth * kHeight + 1];
    TRY(cudaDestroySurfaceObject(surface));
    return outside.w == 0 && edge.x == 0 && edge.y == 2 && edge.w == 4;
}

__global__ void beyond(cudaSurfaceObject_t surface) { surf2Dwrite(1.0f, surface, 400, 0); }

// A write beyond the edge that is to trap ends the kernel.
static bool trapped() {
    const cudaChannelFormatDesc numbers = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    TRY(cudaMallocArray(&array, &numbers, 8, 8, cudaArraySurfaceLoadStore));
    cudaSurfaceObject_t surface;
    if (!surface_of(array, &surface)) return false;
    beyond<<<1, 1>>>(surface);
    const cudaError_t error = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorName(error));
    return error != cudaSuccess;
}

// -- what a GPU does between texels

__global__ void along(cudaTextureObject_t texture, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1D<float>(texture, 0.5f + i / 4096.0f);
}

static bool weights() {
    constexpr int kCount = 3 * 4096;
    const float texels[] = {0, 1, 4096, 1};
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    TRY(cudaMallocArray(&array, &format, 4));
    TRY(cudaMemcpy2DToArray(array, 0, 0, texels, 16, 16, 1, cudaMemcpyHostToDevice));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc description{};
    description.addressMode[0] = cudaAddressModeClamp;
    description.filterMode = cudaFilterModeLinear;
    cudaTextureObject_t texture;
    TRY(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    float* out;
    TRY(cudaMalloc(&out, kCount * sizeof(float)));
    along<<<kCount / 256, 256>>>(texture, out, kCount);
    std::vector<float> values(kCount);
    TRY(cudaMemcpy(values.data(), out, kCount * sizeof(float), cudaMemcpyDeviceToHost));
    // Where the value changes, in 4096ths of a texel, and to what.
    for (int i = 0; i < kCount; ++i)
        if (i == 0 || values[i] != values[i - 1]) std::printf("%d %.9g\n", i, values[i]);
    return true;
}

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "";
    const struct {
        const char* name;
        bool (*body)();
    } cases[] = {{"plane", plane},       {"pitched", pitched},   {"memory", memory},   {"boxes", boxes},
                 {"gathered", gathered}, {"surfaces", surfaces}, {"trapped", trapped}, {"weights", weights}};
    for (const auto& one : cases)
        if (std::strcmp(one.name, name) == 0) return one.body() ? 0 : 1;
    return 3;
}

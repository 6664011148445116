// Textures with levels of detail, faces of cubes, layers and coloured borders: `levels CASE` ends with 0 when every value
// is what the CUDA C++ Programming Guide says of texture fetching.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

static bool good(cudaError_t error, int line) {
    if (error != cudaSuccess) std::printf("line %d: %s\n", line, cudaGetErrorString(error));
    return error == cudaSuccess;
}
#define TRY(call) \
    if (!good(call, __LINE__)) return false

static bool near(const char* what, int i, float got, float want) {
    if (std::fabs(got - want) <= 1e-3f) return true;
    return std::printf("%s %d: %g, not %g\n", what, i, got, want), false;
}

// -- levels of detail

// The value of a texel of a level tells level and place.
static float texel_of(int level, int x, int y) { return 100.0f * level + x + 10.0f * y; }

static bool fill_level(cudaMipmappedArray_t mipmap, int level, int width, int height) {
    cudaArray_t array;
    TRY(cudaGetMipmappedArrayLevel(&array, mipmap, level));
    std::vector<float> texels(width * height);
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) texels[y * width + x] = texel_of(level, x, y);
    TRY(cudaMemcpy2DToArray(array, 0, 0, texels.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
    cudaExtent extent;
    TRY(cudaArrayGetInfo(nullptr, &extent, nullptr, array));
    return int(extent.width) == width && int(extent.height) == height;
}

static bool texture_of(cudaMipmappedArray_t mipmap, cudaTextureFilterMode within, cudaTextureFilterMode between, float bias, float least,
                       float most, cudaTextureObject_t* texture) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap;
    cudaTextureDesc description{};
    description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
    description.normalizedCoords = 1;
    description.filterMode = within;
    description.mipmapFilterMode = between;
    description.mipmapLevelBias = bias;
    description.minMipmapLevelClamp = least;
    description.maxMipmapLevelClamp = most;
    TRY(cudaCreateTextureObject(texture, &resource, &description, nullptr));
    return true;
}

__global__ void at_levels(cudaTextureObject_t texture, const float* levels, float2 at, float* values, int n) {
    if (const int i = threadIdx.x; i < n) values[i] = tex2DLod<float>(texture, at.x, at.y, levels[i]);
}

// A point in the middle of a texel of all levels but the last, so that filters within a level change nothing there.
static bool mixed(cudaMipmappedArray_t mipmap, bool between, float bias, float least, float most) {
    const float wanted[] = {-1, 0, 0.25f, 0.75f, 1, 1.25f, 1.75f, 2, 2.25f, 2.75f, 3, 9};
    constexpr int kCount = sizeof wanted / sizeof *wanted;
    cudaTextureObject_t texture;
    if (!texture_of(mipmap, cudaFilterModePoint, between ? cudaFilterModeLinear : cudaFilterModePoint, bias, least, most, &texture)) return false;
    float *levels, *values;
    TRY(cudaMallocManaged(&levels, sizeof wanted));
    TRY(cudaMallocManaged(&values, sizeof wanted));
    std::memcpy(levels, wanted, sizeof wanted);
    const float2 at{0.65f, 0.4f};
    at_levels<<<1, 32>>>(texture, levels, at, values, kCount);
    TRY(cudaDeviceSynchronize());
    const auto of_level = [&](int level) {
        const int width = std::max(16 >> level, 1), height = std::max(8 >> level, 1);
        return texel_of(level, int(at.x * width), int(at.y * height));
    };
    for (int i = 0; i < kCount; ++i) {
        const float level = std::clamp(std::clamp(wanted[i] + bias, least, most), 0.0f, 4.0f);
        const int lower = int(level);
        const float share = level - lower;
        const float want = between ? (1 - share) * of_level(lower) + (share > 0 ? share * of_level(lower + 1) : 0) : of_level(int(level + 0.5f));
        if (!near(between ? "mixed" : "nearest", i, values[i], want)) return false;
    }
    TRY(cudaDestroyTextureObject(texture));
    TRY(cudaFree(levels));
    TRY(cudaFree(values));
    return true;
}

// A texture that is looked at from afar: neighbours lie two and four texels apart.
__global__ void by_gradients(cudaTextureObject_t texture, float* values) {
    values[0] = tex2DGrad<float>(texture, 0.4f, 0.4f, float2{1.0f / 16, 0}, float2{0, 1.0f / 8});
    values[1] = tex2DGrad<float>(texture, 0.4f, 0.4f, float2{2.0f / 16, 0}, float2{0, 1.0f / 8});
    values[2] = tex2DGrad<float>(texture, 0.4f, 0.4f, float2{1.0f / 16, 0}, float2{0, 4.0f / 8});
    values[3] = tex2D<float>(texture, 0.4f, 0.4f);
    values[4] = tex2DLod<float>(texture, 0.5f, 0.5f, 1.0f);
}

static bool mipmaps() {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t mipmap;
    TRY(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(16, 8, 0), 99));  // 5 levels and no more
    for (int level = 0; level < 5; ++level)
        if (!fill_level(mipmap, level, std::max(16 >> level, 1), std::max(8 >> level, 1))) return false;
    cudaArray_t none;
    if (cudaGetMipmappedArrayLevel(&none, mipmap, 5) != cudaErrorInvalidValue) return std::puts("a sixth level"), false;
    cudaGetLastError();
    for (const bool between : {false, true})
        if (!mixed(mipmap, between, 0, 0, 9) || !mixed(mipmap, between, 0.125f, 0, 9) || !mixed(mipmap, between, 0, 1, 2.25f)) return false;
    cudaTextureObject_t texture;
    if (!texture_of(mipmap, cudaFilterModeLinear, cudaFilterModePoint, 0, 0, 9, &texture)) return false;
    float* values;
    TRY(cudaMallocManaged(&values, 5 * sizeof(float)));
    by_gradients<<<1, 1>>>(texture, values);
    TRY(cudaDeviceSynchronize());
    // Between texel centres of a level of w by h, values grow by 1 and by 10.
    const auto within = [](int level, float x, float y) { return 100.0f * level + (x * (16 >> level) - 0.5f) + 10 * (y * (8 >> level) - 0.5f); };
    const float want[] = {within(0, 0.4f, 0.4f), within(1, 0.4f, 0.4f), within(2, 0.4f, 0.4f), within(0, 0.4f, 0.4f), within(1, 0.5f, 0.5f)};
    for (int i = 0; i < 5; ++i)
        if (std::fabs(values[i] - want[i]) > 12.0f / 256) return std::printf("gradient %d: %g, not %g\n", i, values[i], want[i]), false;
    TRY(cudaDestroyTextureObject(texture));
    TRY(cudaFree(values));
    TRY(cudaFreeMipmappedArray(mipmap));
    return true;
}

// -- cubes: the guide's table of faces, and coordinates on them

struct Direction {
    float x, y, z;
};

static float on_face(const Direction& d, int width, int layer) {
    const float ax = std::fabs(d.x), ay = std::fabs(d.y), az = std::fabs(d.z);
    int face;
    float s, t, m;
    if (ax > ay && ax > az)
        face = d.x >= 0 ? 0 : 1, m = ax, s = d.x >= 0 ? -d.z : d.z, t = -d.y;
    else if (ay > az)
        face = d.y >= 0 ? 2 : 3, m = ay, s = d.x, t = d.y >= 0 ? d.z : -d.z;
    else
        face = d.z >= 0 ? 4 : 5, m = az, s = d.z >= 0 ? d.x : -d.x, t = -d.y;
    const int column = int((s / m + 1) / 2 * width), row = int((t / m + 1) / 2 * width);
    return 1000.0f * layer + 100.0f * face + 10.0f * row + column;
}

__global__ void look(cudaTextureObject_t cube, cudaTextureObject_t cubes, const Direction* to, float* values, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    values[i] = texCubemap<float>(cube, to[i].x, to[i].y, to[i].z);
    values[n + i] = texCubemapLayered<float>(cubes, to[i].x, to[i].y, to[i].z, i % 2);
}

static bool cube_texture(int width, int layers, cudaArray_t* array, cudaTextureObject_t* texture) {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    const unsigned flags = cudaArrayCubemap | (layers > 1 ? cudaArrayLayered : 0);
    TRY(cudaMalloc3DArray(array, &format, make_cudaExtent(width, width, 6 * layers), flags));
    std::vector<float> texels(6 * layers * width * width);
    for (size_t i = 0; i < texels.size(); ++i) {
        const int slice = int(i) / (width * width), place = int(i) % (width * width);
        texels[i] = 1000.0f * (slice / 6) + 100.0f * (slice % 6) + 10.0f * (place / width) + place % width;
    }
    cudaMemcpy3DParms copy{};
    copy.srcPtr = make_cudaPitchedPtr(texels.data(), width * 4, width, width);
    copy.dstArray = *array;
    copy.extent = make_cudaExtent(width, width, 6 * layers);
    copy.kind = cudaMemcpyHostToDevice;
    TRY(cudaMemcpy3D(&copy));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = *array;
    cudaTextureDesc description{};
    for (auto& mode : description.addressMode) mode = cudaAddressModeClamp;
    description.normalizedCoords = 1;
    TRY(cudaCreateTextureObject(texture, &resource, &description, nullptr));
    return true;
}

__global__ void write_faces(cudaSurfaceObject_t cube, int width) {
    const int x = threadIdx.x % width, y = threadIdx.x / width, face = blockIdx.x;
    const float before = surfCubemapread<float>(cube, x * 4, y, face);
    surfCubemapwrite(before + 0.5f, cube, x * 4, y, face);
}

static bool cubes() {
    constexpr int kWidth = 8;
    cudaArray_t of_cube, of_cubes;
    cudaTextureObject_t cube, cubes;
    if (!cube_texture(kWidth, 1, &of_cube, &cube) || !cube_texture(kWidth, 2, &of_cubes, &cubes)) return false;
    std::vector<Direction> to;
    for (int x = -9; x <= 9; x += 2)
        for (int y = -8; y <= 8; y += 3)
            for (int z = -7; z <= 7; z += 3) {
                const Direction one{x + 0.013f, y + 0.027f, z + 0.041f};
                to.push_back(one);
            }
    const int n = int(to.size());
    Direction* sent;
    float* values;
    TRY(cudaMallocManaged(&sent, n * sizeof *sent));
    TRY(cudaMallocManaged(&values, 2 * n * sizeof *values));
    std::copy(to.begin(), to.end(), sent);
    look<<<(n + 63) / 64, 64>>>(cube, cubes, sent, values, n);
    TRY(cudaDeviceSynchronize());
    for (int i = 0; i < n; ++i)
        if (!near("cube", i, values[i], on_face(to[i], kWidth, 0)) || !near("cubes", i, values[n + i], on_face(to[i], kWidth, i % 2))) return false;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t uneven;
    if (cudaMalloc3DArray(&uneven, &format, make_cudaExtent(8, 4, 6), cudaArrayCubemap) != cudaErrorInvalidValue) return std::puts("no cube"), false;
    cudaGetLastError();
    return true;
}

static bool faces() {
    constexpr int kWidth = 4;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    TRY(cudaMalloc3DArray(&array, &format, make_cudaExtent(kWidth, kWidth, 6), cudaArrayCubemap | cudaArraySurfaceLoadStore));
    std::vector<float> texels(6 * kWidth * kWidth), back(texels.size());
    for (size_t i = 0; i < texels.size(); ++i) texels[i] = float(i);
    cudaMemcpy3DParms copy{};
    copy.srcPtr = make_cudaPitchedPtr(texels.data(), kWidth * 4, kWidth, kWidth);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(kWidth, kWidth, 6);
    copy.kind = cudaMemcpyHostToDevice;
    TRY(cudaMemcpy3D(&copy));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface;
    TRY(cudaCreateSurfaceObject(&surface, &resource));
    write_faces<<<6, kWidth * kWidth>>>(surface, kWidth);
    cudaMemcpy3DParms out{};
    out.srcArray = array;
    out.dstPtr = make_cudaPitchedPtr(back.data(), kWidth * 4, kWidth, kWidth);
    out.extent = copy.extent;
    out.kind = cudaMemcpyDeviceToHost;
    TRY(cudaMemcpy3D(&out));
    for (size_t i = 0; i < texels.size(); ++i)
        if (!near("face", int(i), back[i], texels[i] + 0.5f)) return false;
    return true;
}

// -- layers of lines, and borders with a colour

__global__ void lines(cudaTextureObject_t layered, float* out) {
    // Beyond the last layer is the last.
    out[threadIdx.x] = tex1DLayered<float>(layered, threadIdx.x % 8 + 0.5f, threadIdx.x / 8);
}

static bool layers() {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    TRY(cudaMalloc3DArray(&array, &format, make_cudaExtent(8, 0, 3), cudaArrayLayered));
    std::vector<float> texels(24);
    for (int i = 0; i < 24; ++i) texels[i] = 1.0f + i;
    cudaMemcpy3DParms copy{};
    copy.srcPtr = make_cudaPitchedPtr(texels.data(), 32, 8, 1);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(8, 1, 3);
    copy.kind = cudaMemcpyHostToDevice;
    TRY(cudaMemcpy3D(&copy));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc description{};
    description.addressMode[0] = cudaAddressModeClamp;
    cudaTextureObject_t texture;
    TRY(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    float* out;
    TRY(cudaMallocManaged(&out, 32 * sizeof *out));
    lines<<<1, 32>>>(texture, out);
    TRY(cudaDeviceSynchronize());
    for (int i = 0; i < 32; ++i)
        if (!near("layer", i, out[i], texels[std::min(i / 8, 2) * 8 + i % 8])) return false;
    return true;
}

__global__ void across(cudaTextureObject_t texture, float4* out) { out[threadIdx.x] = tex2D<float4>(texture, threadIdx.x * 0.5f - 1, 1.5f); }

static bool borders() {
    constexpr int kWidth = 4, kCount = 13;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float4>();
    cudaArray_t array;
    std::vector<float4> texels(kWidth * kWidth);
    for (int i = 0; i < kWidth * kWidth; ++i) texels[i] = {float(i), -float(i), 2.0f * i, 8};
    TRY(cudaMallocArray(&array, &format, kWidth, kWidth));
    TRY(cudaMemcpy2DToArray(array, 0, 0, texels.data(), kWidth * 16, kWidth * 16, kWidth, cudaMemcpyHostToDevice));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    float4* out;
    TRY(cudaMallocManaged(&out, kCount * sizeof *out));
    const float colour[] = {16, 32, 64, 128};
    for (const bool linear : {false, true}) {
        cudaTextureDesc description{};
        description.addressMode[0] = description.addressMode[1] = cudaAddressModeBorder;
        description.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
        std::copy_n(colour, 4, description.borderColor);
        cudaTextureObject_t texture;
        TRY(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
        across<<<1, kCount>>>(texture, out);
        TRY(cudaDeviceSynchronize());
        const auto channel = [&](int column, int k) {
            const float* texel = &texels[kWidth + std::clamp(column, 0, kWidth - 1)].x;
            return column < 0 || column >= kWidth ? colour[k] : texel[k];
        };
        for (int i = 0; i < kCount; ++i)
            for (int k = 0; k < 4; ++k) {
                const float x = i * 0.5f - 1;
                const int column = int(std::floor(linear ? x - 0.5f : x));
                const float share = linear ? x - 0.5f - column : 0;
                const float want = (1 - share) * channel(column, k) + share * channel(column + 1, k);
                if (!near(linear ? "mixed border" : "border", 4 * i + k, (&out[i].x)[k], want)) return false;
            }
        TRY(cudaDestroyTextureObject(texture));
    }
    return true;
}

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "";
    const struct {
        const char* name;
        bool (*body)();
    } cases[] = {{"mipmaps", mipmaps}, {"cubes", cubes}, {"faces", faces}, {"layers", layers}, {"borders", borders}};
    for (const auto& one : cases)
        if (std::strcmp(one.name, name) == 0) return one.body() ? 0 : 1;
    return 3;
}

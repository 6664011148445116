// problem: level1/26
// does: reads through texture objects over linear memory, made anew at each call
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <cstdio>

// A linear texture holds at most 2^27 elements; longer inputs take several.
constexpr int64_t kPiece = int64_t{1} << 26;
constexpr uintptr_t kAligned = 512;  // bytes; what textures ask of an address on all GPUs so far

// `skip` elements lie between the texture's beginning, which must be aligned, and that of the data.
__global__ void gelu(scalar_t* y, cudaTextureObject_t x, int skip, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float v = tex1Dfetch<float>(x, skip + i);
    y[i] = from_float(0.5f * v * (1.0f + erff(v * 0.7071067811865476f)));
}

static cudaTextureObject_t bind(const void* data, int64_t count) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = const_cast<void*>(data);
    resource.res.linear.desc = cudaCreateChannelDescHalf();
    resource.res.linear.sizeInBytes = size_t(count) * sizeof(scalar_t);
    cudaTextureDesc how{};
    how.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture = 0;
    const cudaError_t status = cudaCreateTextureObject(&texture, &resource, &how, nullptr);
    if (status != cudaSuccess) std::fprintf(stderr, "texture: %s\n", cudaGetErrorString(status));
    return texture;
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    // Kernels that read a texture may still run when the next call comes: textures go when all of the ring was used.
    constexpr int kRing = 256;
    static cudaTextureObject_t ring[kRing];
    static int used = 0;
    const int64_t total = batch_size * dim;
    for (int64_t begin = 0; begin < total; begin += kPiece) {
        if (used == kRing) {
            cudaStreamSynchronize(0);
            for (; used > 0; --used) cudaDestroyTextureObject(ring[used - 1]);
        }
        const int64_t count = total - begin < kPiece ? total - begin : kPiece;
        const auto from = reinterpret_cast<uintptr_t>(static_cast<const scalar_t*>(x) + begin);
        const int skip = int(from % kAligned / sizeof(scalar_t));
        const cudaTextureObject_t texture = bind(reinterpret_cast<const void*>(from - from % kAligned), skip + count);
        ring[used++] = texture;
        gelu<<<unsigned((count + 255) / 256), 256>>>(static_cast<scalar_t*>(output) + begin, texture, skip, int(count));
    }
}

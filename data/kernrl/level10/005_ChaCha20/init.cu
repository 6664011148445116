// ChaCha20: one thread per block of the message.
#include <kernelblaster/kernels/launch.cuh>

__device__ __forceinline__ uint32_t turned(uint32_t x, int bits) { return (x << bits) | (x >> (32 - bits)); }

__device__ void quarter_round(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d) {
    a += b;
    d = turned(d ^ a, 16);
    c += d;
    b = turned(b ^ c, 12);
    a += b;
    d = turned(d ^ a, 8);
    c += d;
    b = turned(b ^ c, 7);
}

struct Encrypt {
    uint32_t* output;
    const uint32_t *plain, *key, *nonce;
    __device__ void operator()(int64_t block) const {
        uint32_t start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, x[16];
        for (int i = 0; i < 8; ++i) start[4 + i] = key[i];
        start[12] = static_cast<uint32_t>(block);
        for (int i = 0; i < 3; ++i) start[13 + i] = nonce[i];
        for (int i = 0; i < 16; ++i) x[i] = start[i];
        for (int round = 0; round < 10; ++round) {
            for (int i = 0; i < 4; ++i) quarter_round(x[i], x[4 + i], x[8 + i], x[12 + i]);
            for (int i = 0; i < 4; ++i) quarter_round(x[i], x[4 + (i + 1) % 4], x[8 + (i + 2) % 4], x[12 + (i + 3) % 4]);
        }
        for (int i = 0; i < 16; ++i) output[16 * block + i] = plain[16 * block + i] ^ (start[i] + x[i]);
    }
};

void launch_gpu_implementation(void* output, void* plain, void* key, void* nonce, int64_t blocks) {
    for_each(blocks, Encrypt{static_cast<uint32_t*>(output), static_cast<const uint32_t*>(plain),
                             static_cast<const uint32_t*>(key), static_cast<const uint32_t*>(nonce)});
}

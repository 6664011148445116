// BLAKE3 of messages of one block: one thread per message.
#include <kernelblaster/kernels/launch.cuh>

__constant__ const uint8_t ORDER[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};

__device__ __forceinline__ uint32_t rotated_right(uint32_t x, int bits) { return (x >> bits) | (x << (32 - bits)); }

__device__ void mix(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d, uint32_t first, uint32_t second) {
    a += b + first;
    d = rotated_right(d ^ a, 16);
    c += d;
    b = rotated_right(b ^ c, 12);
    a += b + second;
    d = rotated_right(d ^ a, 8);
    c += d;
    b = rotated_right(b ^ c, 7);
}

struct Digest {
    uint8_t* output;
    const uint8_t* data;
    __device__ void operator()(int64_t message) const {
        uint32_t v[16] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
                          0x5be0cd19, 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0, 0, 64, 11};
        uint32_t words[16] = {}, next[16];
        for (int i = 0; i < 64; ++i) words[i / 4] |= static_cast<uint32_t>(data[64 * message + i]) << i % 4 * 8;
        for (int round = 0; round < 7; ++round) {
            for (int i = 0; i < 4; ++i) mix(v[i], v[4 + i], v[8 + i], v[12 + i], words[2 * i], words[2 * i + 1]);
            for (int i = 0; i < 4; ++i) {
                mix(v[i], v[4 + (i + 1) % 4], v[8 + (i + 2) % 4], v[12 + (i + 3) % 4], words[8 + 2 * i],
                    words[9 + 2 * i]);
            }
            for (int i = 0; i < 16; ++i) next[i] = words[ORDER[i]];
            for (int i = 0; i < 16; ++i) words[i] = next[i];
        }
        for (int i = 0; i < 32; ++i) {
            output[32 * message + i] = static_cast<uint8_t>((v[i / 4] ^ v[i / 4 + 8]) >> i % 4 * 8);
        }
    }
};

void launch_gpu_implementation(void* output, void* data, int64_t messages) {
    for_each(messages, Digest{static_cast<uint8_t*>(output), static_cast<const uint8_t*>(data)});
}

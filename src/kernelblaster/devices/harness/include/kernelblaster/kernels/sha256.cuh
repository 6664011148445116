// SHA-256 (FIPS 180-4) of one message by one thread.
#pragma once
#include <kernelblaster/kernels/launch.cuh>

// The constant of a round.
__device__ __forceinline__ uint32_t sha256_constant(int round) {
    const uint32_t constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    return constants[round];
}

__device__ __forceinline__ uint32_t rotated_right(uint32_t x, int bits) { return (x >> bits) | (x << (32 - bits)); }

// Works one block of 64 bytes, 16 words, into the state; the words change.
__device__ void sha256_block(uint32_t* state, uint32_t* words) {
    uint32_t v[8];
    for (int i = 0; i < 8; ++i) v[i] = state[i];
    for (int round = 0; round < 64; ++round) {
        uint32_t& word = words[round % 16];
        if (round >= 16) {
            const uint32_t a = words[(round + 1) % 16], b = words[(round + 14) % 16];
            word += (rotated_right(a, 7) ^ rotated_right(a, 18) ^ (a >> 3)) + words[(round + 9) % 16] +
                    (rotated_right(b, 17) ^ rotated_right(b, 19) ^ (b >> 10));
        }
        const uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]), majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        const uint32_t first = v[7] + choice + sha256_constant(round) + word +
                               (rotated_right(v[4], 6) ^ rotated_right(v[4], 11) ^ rotated_right(v[4], 25));
        const uint32_t second =
            majority + (rotated_right(v[0], 2) ^ rotated_right(v[0], 13) ^ rotated_right(v[0], 22));
        for (int i = 7; i > 0; --i) v[i] = v[i - 1];
        v[4] += first;
        v[0] = first + second;
    }
    for (int i = 0; i < 8; ++i) state[i] += v[i];
}

__device__ void sha256_begin(uint32_t* state) {
    const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (int i = 0; i < 8; ++i) state[i] = initial[i];
}

// Words of big-endian bytes, and back.
__device__ void words_of(uint32_t* words, const uint8_t* bytes, int count) {
    for (int i = 0; i < count; ++i) {
        words[i] = 0;
        for (int j = 0; j < 4; ++j) words[i] = words[i] << 8 | bytes[4 * i + j];
    }
}

__device__ void bytes_of(uint8_t* bytes, const uint32_t* words, int count) {
    for (int i = 0; i < 4 * count; ++i) bytes[i] = static_cast<uint8_t>(words[i / 4] >> (24 - i % 4 * 8));
}

// The last block: `held` words are there, 1 follows, and the length in bits is at the end.
__device__ void sha256_finish(uint32_t* state, uint32_t* words, int held, uint32_t message_bytes) {
    for (int i = held; i < 16; ++i) words[i] = 0;
    words[held] = 0x80000000u;
    words[15] = 8 * message_bytes;
    sha256_block(state, words);
}

// The digest, 32 bytes, of a message of whole blocks of 64 bytes.
__device__ void sha256_of_blocks(uint8_t* digest, const uint8_t* message, int64_t blocks) {
    uint32_t state[8], words[16];
    sha256_begin(state);
    for (int64_t block = 0; block < blocks; ++block) {
        words_of(words, message + 64 * block, 16);
        sha256_block(state, words);
    }
    sha256_finish(state, words, 0, static_cast<uint32_t>(64 * blocks));
    bytes_of(digest, state, 8);
}

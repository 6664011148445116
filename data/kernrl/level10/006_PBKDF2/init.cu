// PBKDF2 with HMAC-SHA-256: one thread per password.
#include <kernelblaster/kernels/sha256.cuh>

// The state after the block that a password of 32 bytes fills, combined with a byte.
__device__ void hmac_state(uint32_t* state, const uint8_t* password, uint32_t byte) {
    uint32_t words[16];
    words_of(words, password, 8);
    for (int i = 0; i < 16; ++i) words[i] = (i < 8 ? words[i] : 0) ^ byte * 0x01010101u;
    sha256_begin(state);
    sha256_block(state, words);
}

// HMAC of a message of `held` words, in place of its first 8 words.
__device__ void hmac(uint32_t* words, int held, const uint32_t* inner, const uint32_t* outer) {
    uint32_t state[8];
    for (int i = 0; i < 8; ++i) state[i] = inner[i];
    sha256_finish(state, words, held, 64 + 4 * held);
    for (int i = 0; i < 8; ++i) words[i] = state[i];
    for (int i = 0; i < 8; ++i) state[i] = outer[i];
    sha256_finish(state, words, 8, 96);
    for (int i = 0; i < 8; ++i) words[i] = state[i];
}

struct Derive {
    uint8_t* output;
    const uint8_t *passwords, *salts;
    int64_t rounds;
    __device__ void operator()(int64_t i) const {
        uint32_t inner[8], outer[8], words[16], key[8] = {};
        hmac_state(inner, passwords + 32 * i, 0x36);
        hmac_state(outer, passwords + 32 * i, 0x5c);
        words_of(words, salts + 16 * i, 4);
        words[4] = 1;
        for (int64_t round = 0; round < rounds; ++round) {
            hmac(words, round == 0 ? 5 : 8, inner, outer);
            for (int j = 0; j < 8; ++j) key[j] ^= words[j];
        }
        bytes_of(output + 32 * i, key, 8);
    }
};

void launch_gpu_implementation(void* output, void* passwords, void* salts, int64_t passwords_count, int64_t rounds) {
    for_each(passwords_count, Derive{static_cast<uint8_t*>(output), static_cast<const uint8_t*>(passwords),
                                     static_cast<const uint8_t*>(salts), rounds});
}

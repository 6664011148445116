// BLAKE2s with a key, as RFC 7693 describes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kb {

constexpr size_t kKeyBytes = 32;

class KeyedHash {
   public:
    // `digest`: bytes that are asked for at the end, 32 at most.
    KeyedHash(const unsigned char* key, size_t digest) {
        std::copy(kInitial, kInitial + 8, state_);
        state_[0] ^= 0x01010000u ^ static_cast<uint32_t>(kKeyBytes << 8) ^ static_cast<uint32_t>(digest);
        add(key, kKeyBytes);
        filled_ = kBlockBytes;  // the key is a block of its own, padded with zeros
    }

    void add(const unsigned char* bytes, size_t count) {
        for (size_t i = 0; i < count; ++i) {
            if (filled_ == kBlockBytes) mix(false);
            block_[filled_++] = bytes[i];
        }
    }

    void finish(unsigned char* to, size_t count) {
        mix(true);
        for (size_t i = 0; i < count; ++i) to[i] = static_cast<unsigned char>(state_[i / 4] >> (8 * (i % 4)));
    }

   private:
    static constexpr size_t kBlockBytes = 64;
    static constexpr uint32_t kInitial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    static constexpr uint8_t kOrder[10][16] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
        {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
        {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
        {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
        {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

    static uint32_t turned(uint32_t value, int by) { return value >> by | value << (32 - by); }

    // Takes the block, which holds `filled_` bytes, into the state.
    void mix(bool last) {
        length_ += filled_;
        std::fill(block_ + filled_, block_ + kBlockBytes, static_cast<unsigned char>(0));
        uint32_t words[16], v[16];
        for (size_t i = 0; i < 16; ++i) {
            const unsigned char* at = block_ + 4 * i;
            words[i] = at[0] | at[1] << 8 | at[2] << 16 | static_cast<uint32_t>(at[3]) << 24;
        }
        std::copy(state_, state_ + 8, v);
        std::copy(kInitial, kInitial + 8, v + 8);
        v[12] ^= static_cast<uint32_t>(length_);
        v[13] ^= static_cast<uint32_t>(length_ >> 32);
        if (last) v[14] = ~v[14];
        for (const uint8_t(&order)[16] : kOrder) {
            for (size_t i = 0; i < 4; ++i) quarter(v, i, i + 4, i + 8, i + 12, words[order[2 * i]], words[order[2 * i + 1]]);
            for (size_t i = 0; i < 4; ++i) {
                quarter(v, i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12, words[order[8 + 2 * i]],
                        words[order[9 + 2 * i]]);
            }
        }
        for (size_t i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[i + 8];
        filled_ = 0;
    }

    static void quarter(uint32_t* v, size_t a, size_t b, size_t c, size_t d, uint32_t x, uint32_t y) {
        v[a] += v[b] + x;
        v[d] = turned(v[d] ^ v[a], 16);
        v[c] += v[d];
        v[b] = turned(v[b] ^ v[c], 12);
        v[a] += v[b] + y;
        v[d] = turned(v[d] ^ v[a], 8);
        v[c] += v[d];
        v[b] = turned(v[b] ^ v[c], 7);
    }

    uint32_t state_[8];
    unsigned char block_[kBlockBytes] = {};
    size_t filled_ = 0;
    uint64_t length_ = 0;
};

}  // namespace kb

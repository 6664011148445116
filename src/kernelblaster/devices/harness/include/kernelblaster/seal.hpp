// Proof that a reply comes from the harness: a keyed hash over a number that counts replies, and the packet. The judge
// draws the key and sends it in the first packet, before any code of a candidate is loaded. From then on the key lies in
// this object alone, and so in memory that is closed while a candidate's code runs (protected_memory.hpp).
#pragma once

#include <kernelblaster/keyed_hash.hpp>
#include <kernelblaster/registers.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace kb {

class Seal {
   public:
    static constexpr size_t kBytes = 16;
    using Tag = std::array<unsigned char, kBytes>;

    // Takes the key over and wipes where it lay.
    __attribute__((noinline)) void take_key(char* key) {
        for (size_t i = 0; i < kKeyBytes; ++i) {
            key_[i] = static_cast<unsigned char>(key[i]);
            static_cast<volatile char*>(key)[i] = 0;
        }
        wipe_.now();
    }

    // The tag of the next reply. No register keeps anything of the key.
    __attribute__((noinline)) Tag next(const char* packet, size_t bytes) {
        unsigned char number[8];
        for (size_t i = 0; i < sizeof number; ++i) number[i] = static_cast<unsigned char>(count_ >> (8 * i));
        ++count_;
        KeyedHash hash(key_.data(), kBytes);
        hash.add(number, sizeof number);
        hash.add(reinterpret_cast<const unsigned char*>(packet), bytes);
        Tag tag;
        hash.finish(tag.data(), tag.size());
        wipe_.now();
        return tag;
    }

   private:
    std::array<unsigned char, kKeyBytes> key_{};
    uint64_t count_ = 0;
    RegisterWipe wipe_;
};

}  // namespace kb

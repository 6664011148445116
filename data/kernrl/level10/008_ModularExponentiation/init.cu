// Powers of long integers: one thread per power, products bit by bit with a reduction in each step.
#include <kernelblaster/kernels/launch.cuh>

constexpr int MOST_LIMBS = 64;

struct Power {
    int32_t* output;
    const int32_t *bases, *exponents, *moduli;
    int64_t limbs;

    __device__ int bit(const int32_t* x, int64_t place) const { return x[place / 16] >> place % 16 & 1; }

    // x = 2 x + addend, where the addend is null for none, modulo the modulus; x and the addend are below it.
    __device__ void double_and_add(int32_t* x, const int32_t* addend, const int32_t* modulus) const {
        int64_t carry = 0;
        for (int64_t i = 0; i < limbs; ++i) {
            carry += 2 * static_cast<int64_t>(x[i]) + (addend != nullptr ? addend[i] : 0);
            x[i] = static_cast<int32_t>(carry & 0xffff);
            carry >>= 16;
        }
        while (carry != 0 || !below(x, modulus)) carry -= subtract(x, modulus);
    }

    __device__ bool below(const int32_t* x, const int32_t* y) const {
        for (int64_t i = limbs - 1; i >= 0; --i) {
            if (x[i] != y[i]) return x[i] < y[i];
        }
        return false;
    }

    // x = x - y; returns what was borrowed.
    __device__ int64_t subtract(int32_t* x, const int32_t* y) const {
        int64_t borrow = 0;
        for (int64_t i = 0; i < limbs; ++i) {
            const int64_t left = static_cast<int64_t>(x[i]) - y[i] - borrow;
            x[i] = static_cast<int32_t>(left & 0xffff);
            borrow = left < 0;
        }
        return borrow;
    }

    // result = a b modulo the modulus; b is below it, the result is neither of them.
    __device__ void multiply(int32_t* result, const int32_t* a, const int32_t* b, const int32_t* modulus) const {
        for (int64_t i = 0; i < limbs; ++i) result[i] = 0;
        for (int64_t place = 16 * limbs - 1; place >= 0; --place) {
            double_and_add(result, bit(a, place) ? b : nullptr, modulus);
        }
    }

    __device__ void copy(int32_t* to, const int32_t* from) const {
        for (int64_t i = 0; i < limbs; ++i) to[i] = from[i];
    }

    __device__ void operator()(int64_t row) const {
        int32_t modulus[MOST_LIMBS], base[MOST_LIMBS], power[MOST_LIMBS] = {}, next[MOST_LIMBS], one[MOST_LIMBS] = {1};
        copy(modulus, moduli + row * limbs);
        modulus[0] |= 1;
        while (!below(one, modulus)) subtract(one, modulus);
        multiply(base, bases + row * limbs, one, modulus);
        copy(power, one);
        for (int64_t place = 16 * limbs - 1; place >= 0; --place) {
            multiply(next, power, power, modulus);
            copy(power, next);
            if (bit(exponents + row * limbs, place)) {
                multiply(next, power, base, modulus);
                copy(power, next);
            }
        }
        copy(output + row * limbs, power);
    }
};

void launch_gpu_implementation(void* output, void* bases, void* exponents, void* moduli, int64_t count, int64_t limbs) {
    for_each(count, Power{static_cast<int32_t*>(output), static_cast<const int32_t*>(bases),
                          static_cast<const int32_t*>(exponents), static_cast<const int32_t*>(moduli), limbs});
}

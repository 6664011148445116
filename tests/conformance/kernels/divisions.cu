// Divisions of 64-bit integers: a GPU divides by 32 bits where both operands fit, which each warp finds out for itself.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr int kMany = 132 * 4 * 256;

// Sums of quotients and remainders; divisors come from memory, so that none is known to the compiler.
template <class T>
__global__ void divided(const int* x, const int* y, unsigned* sums, int n, int shift, int every, int rounds) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int up = i % every == 0 ? shift : 0;
    T number = static_cast<T>(x[i]) << up, divisor = static_cast<T>(y[i] + 3) << (up / 2);
    T sum = 0;
    for (int k = 0; k < rounds; ++k) {
        sum += number / divisor + number % divisor;
        number += divisor + k;
        ++divisor;
    }
    sums[i] = static_cast<unsigned>(sum ^ (sum >> 32));
}

// Euclid's algorithm: how often it goes round depends on the lane.
__global__ void common_divisors(const int* x, const int* y, unsigned* sums, int n, int shift) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long a = (static_cast<unsigned long long>(x[i]) << shift) + 1, b = static_cast<unsigned long long>(y[i]) + 1;
    while (b != 0) {
        const unsigned long long rest = a % b;
        a = b;
        b = rest;
    }
    sums[i] = static_cast<unsigned>(a);
}

template <class T>
void divided_case(conformance::Run& run, int shift, int every) {
    const auto x = run.integers<int>(kMany, 10, 1u << 30), y = run.integers<int>(kMany, 11, 1u << 20);
    const auto sums = run.empty<unsigned>(kMany);
    run.call([=] { divided<T><<<blocks_for(kMany, 256), 256>>>(x, y, sums, kMany, shift, every, 64); });
    run.output("sums", sums, kMany);
}

void common_divisors_case(conformance::Run& run, int shift) {
    const auto x = run.integers<int>(kMany, 12, 1u << 30), y = run.integers<int>(kMany, 13, 1u << 30);
    const auto sums = run.empty<unsigned>(kMany);
    run.call([=] { common_divisors<<<blocks_for(kMany, 256), 256>>>(x, y, sums, kMany, shift); });
    run.output("sums", sums, kMany);
}

CASE(divide_long_small) { divided_case<unsigned long long>(run, 0, 1); }
CASE(divide_long_large) { divided_case<unsigned long long>(run, 32, 1); }
CASE(divide_long_some_large) { divided_case<unsigned long long>(run, 32, 64); }
CASE(divide_signed_small) { divided_case<long long>(run, 0, 1); }
CASE(divide_signed_large) { divided_case<long long>(run, 30, 1); }
CASE(common_divisors_small) { common_divisors_case(run, 0); }
CASE(common_divisors_large) { common_divisors_case(run, 30); }

CONFORMANCE_MAIN

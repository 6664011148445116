// Atomics: one word, one line, spread; in device and in shared memory; with and without the old value.
// Places are read from memory, so that the compiler cannot join the lanes of a warp.
#include "conformance.hpp"

using conformance::blocks_for;

template <class T>
__global__ void add_at(const int* places, T* sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sums + places[i], T(1));
}

// The old value is used: the warp waits for the L2.
__global__ void tickets_at(const int* places, int* sums, int* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = atomicAdd(sums + places[i], 1) >= 0;
}

// Several additions of one thread, each to the next of its places.
__global__ void add_many(const int* places, float* sums, int n, int rounds) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int at = places[i];
    for (int k = 0; k < rounds; ++k) {
        atomicAdd(sums + at, 0.5f);
        at = (at + 4096) & 0xfffff;
    }
}

__global__ void largest_at(const int* places, const int* x, int* most, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMax(most + places[i], x[i]);
}

template <class T>
void add_case(conformance::Run& run, int n, int words, std::function<int(size_t)> place) {
    const auto places = run.upload<int>(n, place);
    const auto sums = run.empty<T>(words);
    run.before([=] { cudaMemsetAsync(sums, 0, words * sizeof(T)); });
    run.call([=] { add_at<T><<<blocks_for(n, 256), 256>>>(places, sums, n); });
    run.output("sums", sums, words);
}

void tickets_case(conformance::Run& run, int n, int words, std::function<int(size_t)> place) {
    const auto places = run.upload<int>(n, place);
    const auto sums = run.empty<int>(words), y = run.empty<int>(n);
    run.before([=] { cudaMemsetAsync(sums, 0, words * sizeof(int)); });
    run.call([=] { tickets_at<<<blocks_for(n, 256), 256>>>(places, sums, y, n); });
    run.output("sums", sums, words);
    run.output("y", y, n);
}

constexpr int kMany = 1'000'003, kSome = 100'003;

CASE(atomic_int_one_word) { add_case<int>(run, kSome, 32, [](size_t) { return 5; }); }
CASE(atomic_float_one_word) { add_case<float>(run, kSome, 32, [](size_t) { return 5; }); }
CASE(atomic_int_one_line) { add_case<int>(run, kSome, 32, [](size_t i) { return static_cast<int>(i % 32); }); }
CASE(atomic_float_64_lines) { add_case<float>(run, kMany, 2048, [](size_t i) { return static_cast<int>(i % 2048); }); }
CASE(atomic_int_neighbours) { add_case<int>(run, kMany, kMany, [](size_t i) { return static_cast<int>(i); }); }
CASE(atomic_float_neighbours) { add_case<float>(run, kMany, kMany, [](size_t i) { return static_cast<int>(i); }); }
CASE(atomic_double_neighbours) { add_case<double>(run, kMany, kMany, [](size_t i) { return static_cast<int>(i); }); }
CASE(atomic_int_random) {
    add_case<int>(run, kMany, 1 << 20, [](size_t i) { return static_cast<int>(conformance::scrambled(i, 3) % (1u << 20)); });
}
CASE(atomic_int_few_words) {
    add_case<int>(run, kMany, 1024, [](size_t i) { return static_cast<int>(conformance::scrambled(i, 3) % 1024u); });
}
CASE(atomic_tickets_one_word) { tickets_case(run, kSome, 32, [](size_t) { return 5; }); }
CASE(atomic_tickets_neighbours) { tickets_case(run, kMany, kMany, [](size_t i) { return static_cast<int>(i); }); }
CASE(atomic_tickets_random) {
    tickets_case(run, kMany, 1 << 20, [](size_t i) { return static_cast<int>(conformance::scrambled(i, 4) % (1u << 20)); });
}
CASE(atomic_float_rounds) {
    const int n = 132 * 512, words = 1 << 20;
    const auto places = run.integers<int>(n, 5, words);
    const auto sums = run.empty<float>(words);
    run.before([=] { cudaMemsetAsync(sums, 0, words * sizeof(float)); });
    run.call([=] { add_many<<<blocks_for(n, 256), 256>>>(places, sums, n, 32); });
    run.output("sums", sums, words);
}
CASE(atomic_max_few_words) {
    const int n = kMany, words = 4096;
    const auto places = run.integers<int>(n, 6, words), x = run.integers<int>(n, 7, 1 << 30);
    const auto most = run.empty<int>(words);
    run.before([=] { cudaMemsetAsync(most, 0, words * sizeof(int)); });
    run.call([=] { largest_at<<<blocks_for(n, 256), 256>>>(places, x, most, n); });
    run.output("most", most, words);
}

// Each thread adds `rounds` times to shared memory; the block's counts go out at the end.
template <class T>
__global__ void shared_adds(const int* places, T* y, int rounds) {
    __shared__ T sums[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) sums[i] = T(0);
    __syncthreads();
    int at = places[threadIdx.x];
    for (int k = 0; k < rounds; ++k) {
        atomicAdd(sums + at, T(1));
        at = (at + 32) & 1023;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) y[blockIdx.x * 1024 + i] = sums[i];
}

template <class T>
void shared_adds_case(conformance::Run& run, int rounds, std::function<int(size_t)> place) {
    const int blocks = 132 * 4;
    const auto places = run.upload<int>(256, place);
    const auto y = run.empty<T>(blocks * 1024);
    run.call([=] { shared_adds<T><<<blocks, 256>>>(places, y, rounds); });
    run.output("y", y, blocks * 1024);
}

CASE(shared_atomic_int_neighbours) { shared_adds_case<int>(run, 128, [](size_t i) { return static_cast<int>(i); }); }
CASE(shared_atomic_int_one_word) { shared_adds_case<int>(run, 64, [](size_t i) { return static_cast<int>(i / 32 * 32); }); }
CASE(shared_atomic_int_four_words) { shared_adds_case<int>(run, 64, [](size_t i) { return static_cast<int>(i / 8 * 8); }); }
CASE(shared_atomic_float_neighbours) { shared_adds_case<float>(run, 64, [](size_t i) { return static_cast<int>(i); }); }

CONFORMANCE_MAIN

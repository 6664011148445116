// Integer atomics at few words, by how many words are hot, what is added and whether the old value is used; in shared
// and in device memory. Places are read from memory, so that the compiler cannot join the lanes of a warp.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr int kSharedBlocks = 132 * 4, kThreads = 256;
constexpr int kGlobalThreads = 132 * 8 * kThreads;

enum class Way { one, value, ticket, most, exchange };

// Lanes go to `hot` words in turn; words lie `apart`.
inline std::function<int(size_t)> words(int hot, int apart = 1) {
    return [=](size_t i) { return static_cast<int>(i % static_cast<size_t>(hot)) * apart; };
}

template <Way way, class T>
__device__ T once(T* at, T value) {
    if constexpr (way == Way::one) {
        atomicAdd(at, T(1));
    } else if constexpr (way == Way::value) {
        atomicAdd(at, value);
    } else if constexpr (way == Way::ticket) {
        return atomicAdd(at, value);
    } else if constexpr (way == Way::most) {
        atomicMax(at, value);
    } else {
        return atomicCAS(at, T(0), T(0));  // finds and leaves a zero, in whatever order
    }
    return T(0);
}

template <Way way, class T>
__global__ void in_shared(const int* places, const int* values, T* sums, int* used, int rounds) {
    __shared__ T hot[256];
    hot[threadIdx.x] = T(0);
    __syncthreads();
    const int at = places[threadIdx.x];
    const T value = static_cast<T>(values[threadIdx.x]);
    T seen = T(0);
    for (int k = 0; k < rounds; ++k) seen |= once<way>(hot + at, value);
    __syncthreads();
    sums[blockIdx.x * 256 + threadIdx.x] = hot[threadIdx.x];
    if (seen == static_cast<T>(-1)) *used = 1;
}

template <Way way, class T>
__global__ void in_device(const int* places, const int* values, T* hot, int* used, int n, int rounds) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int at = places[i];
    const T value = static_cast<T>(values[i]);
    T seen = T(0);
    for (int k = 0; k < rounds; ++k) seen |= once<way>(hot + at, value);
    if (seen == static_cast<T>(-1)) *used = 1;
}

template <Way way, class T>
void shared_case(conformance::Run& run, std::function<int(size_t)> place, int rounds) {
    const auto places = run.upload<int>(kThreads, place), values = run.integers<int>(kThreads, 8, 100);
    const auto sums = run.empty<T>(kSharedBlocks * 256);
    const auto used = run.empty<int>(1);
    run.call([=] { in_shared<way, T><<<kSharedBlocks, kThreads>>>(places, values, sums, used, rounds); });
    run.output("sums", reinterpret_cast<const unsigned*>(sums), kSharedBlocks * 256 * sizeof(T) / 4);
}

template <Way way, class T>
void device_case(conformance::Run& run, std::function<int(size_t)> place, int rounds) {
    const int n = kGlobalThreads;
    const auto places = run.upload<int>(n, place), values = run.integers<int>(n, 9, 100);
    const auto hot = run.empty<T>(8192);
    const auto used = run.empty<int>(1);
    run.before([=] { cudaMemsetAsync(hot, 0, 8192 * sizeof(T)); });
    run.call([=] { in_device<way, T><<<blocks_for(n, kThreads), kThreads>>>(places, values, hot, used, n, rounds); });
    run.output("hot", reinterpret_cast<const unsigned*>(hot), 8192 * sizeof(T) / 4);
}

CASE(shared_one_at_1) { shared_case<Way::one, unsigned>(run, words(1), 64); }
CASE(shared_one_at_2) { shared_case<Way::one, unsigned>(run, words(2), 64); }
CASE(shared_one_at_4) { shared_case<Way::one, unsigned>(run, words(4), 64); }
CASE(shared_one_at_8) { shared_case<Way::one, unsigned>(run, words(8), 64); }
CASE(shared_one_at_32) { shared_case<Way::one, unsigned>(run, words(32), 64); }
CASE(shared_value_at_1) { shared_case<Way::value, unsigned>(run, words(1), 64); }
CASE(shared_value_at_4) { shared_case<Way::value, unsigned>(run, words(4), 64); }
CASE(shared_value_at_16) { shared_case<Way::value, unsigned>(run, words(16), 64); }
CASE(shared_value_one_bank) { shared_case<Way::value, unsigned>(run, words(8, 32), 64); }
CASE(shared_ticket_at_1) { shared_case<Way::ticket, unsigned>(run, words(1), 64); }
CASE(shared_ticket_at_8) { shared_case<Way::ticket, unsigned>(run, words(8), 64); }
CASE(shared_most_at_1) { shared_case<Way::most, unsigned>(run, words(1), 64); }
CASE(shared_most_at_32) { shared_case<Way::most, unsigned>(run, words(32), 64); }
CASE(shared_exchange_at_1) { shared_case<Way::exchange, unsigned>(run, words(1), 64); }
CASE(shared_long_at_4) { shared_case<Way::value, unsigned long long>(run, words(4), 32); }

CASE(device_one_at_1) { device_case<Way::one, unsigned>(run, words(1), 2); }
CASE(device_one_at_4) { device_case<Way::one, unsigned>(run, words(4), 2); }
CASE(device_one_at_32) { device_case<Way::one, unsigned>(run, words(32), 4); }
CASE(device_one_at_32_lines) { device_case<Way::one, unsigned>(run, words(32, 32), 2); }
CASE(device_one_at_256) { device_case<Way::one, unsigned>(run, words(256), 4); }
CASE(device_value_at_1) { device_case<Way::value, unsigned>(run, words(1), 2); }
CASE(device_value_at_8) { device_case<Way::value, unsigned>(run, words(8), 2); }
CASE(device_value_at_8_lines) { device_case<Way::value, unsigned>(run, words(8, 32), 2); }
CASE(device_ticket_at_1) { device_case<Way::ticket, unsigned>(run, words(1), 1); }
CASE(device_ticket_at_32) { device_case<Way::ticket, unsigned>(run, words(32), 2); }
CASE(device_most_at_4) { device_case<Way::most, unsigned>(run, words(4), 2); }
CASE(device_exchange_at_1) { device_case<Way::exchange, unsigned>(run, words(1), 1); }
CASE(device_long_at_4) { device_case<Way::value, unsigned long long>(run, words(4), 2); }

CONFORMANCE_MAIN

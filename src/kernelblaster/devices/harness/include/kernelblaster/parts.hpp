// Host memory is copied and compared by a few threads: one core is several times slower than the link to the device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace kb {

constexpr size_t kMostParts = 8;
constexpr size_t kLeastPartBytes = size_t{1} << 20;  // below that a thread costs more than it saves
constexpr size_t kPartStep = 4096;                   // parts begin at pages, and so at whole elements

// Calls use(at, count) for parts that cover [0, bytes), each on a thread; use must not throw.
template <typename Use>
void in_parts(size_t bytes, Use use) {
    const size_t cores = std::max<size_t>(std::thread::hardware_concurrency(), 1);
    const size_t parts = std::clamp<size_t>(bytes / kLeastPartBytes, 1, std::min(kMostParts, cores));
    const size_t step = ((bytes + parts - 1) / parts + kPartStep - 1) / kPartStep * kPartStep;
    std::vector<std::thread> threads;
    for (size_t at = step; at < bytes; at += step) {
        const size_t count = std::min(step, bytes - at);
        try {
            threads.emplace_back(use, at, count);
        } catch (const std::system_error&) {
            use(at, count);  // no thread is to be had: the limit on tasks
        }
    }
    use(0, std::min(step, bytes));
    for (std::thread& thread : threads) thread.join();
}

}  // namespace kb

// Host memory is copied and compared by a few threads: one core is several times slower than the link to the device.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace kb {

constexpr size_t kMostParts = 8;
constexpr size_t kLeastPartBytes = size_t{1} << 20;  // below that a thread costs more than it saves
constexpr size_t kPartStep = 4096;                   // parts begin at pages, and so at whole elements

// Threads that wait for parts of work. They start once, before a candidate's code runs: none may start afterwards.
class Helpers {
   public:
    static Helpers& get() {
        static Helpers* helpers = new Helpers;  // never destroyed: they end with the process
        return *helpers;
    }

    size_t count() const { return threads_.size(); }

    // Calls work(i) for i in [0, count), each on a thread; returns when all have returned.
    void run(size_t count, const std::function<void(size_t)>& work) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            work_ = &work, next_ = 0, count_ = count, left_ = count;
        }
        wake_.notify_all();
        while (take()) continue;
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return left_ == 0; });
        work_ = nullptr;
    }

   private:
    Helpers() {
        const size_t cores = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostParts);
        for (size_t i = 1; i < cores; ++i) {
            try {
                threads_.emplace_back([this] { serve(); });
            } catch (const std::system_error&) {
                break;  // no thread is to be had: the limit on tasks
            }
            threads_.back().detach();
        }
        // A thread that is still starting needs system calls that are refused soon.
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return started_ == threads_.size(); });
    }

    // Does one part of the work; false when none is left.
    bool take() {
        size_t index = 0;
        const std::function<void(size_t)>* work = nullptr;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (work_ == nullptr || next_ == count_) return false;
            index = next_++, work = work_;
        }
        (*work)(index);
        const std::lock_guard<std::mutex> lock(mutex_);
        if (--left_ == 0) done_.notify_one();
        return true;
    }

    void serve() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            ++started_;
        }
        done_.notify_one();
        for (;;) {
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [this] { return work_ != nullptr && next_ < count_; });
            }
            while (take()) continue;
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    const std::function<void(size_t)>* work_ = nullptr;
    size_t next_ = 0, count_ = 0, left_ = 0, started_ = 0;
    std::vector<std::thread> threads_;
};

// Calls use(at, count) for parts that cover [0, bytes), side by side; use must not throw.
template <typename Use>
void in_parts(size_t bytes, Use use) {
    const size_t parts = std::clamp<size_t>(bytes / kLeastPartBytes, 1, Helpers::get().count() + 1);
    const size_t step = ((bytes + parts - 1) / parts + kPartStep - 1) / kPartStep * kPartStep;
    if (parts == 1) return use(0, bytes);
    Helpers::get().run((bytes + step - 1) / step, [&](size_t i) { use(i * step, std::min(step, bytes - i * step)); });
}

}  // namespace kb

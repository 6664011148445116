// Threads that execute kernels beside the one that launches them. They start when the runtime comes up: a process may be
// forbidden to start any later.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace ptxemu {

class Crew {
public:
    explicit Crew(unsigned threads) {
        for (unsigned k = 1; k < threads; ++k) std::thread([this, k] { serve(k); }).detach();
        // A thread that is still starting needs system calls that may be refused soon.
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [&] { return started_ + 1 == threads; });
    }

    // Calls work(k) for k in [0, count), each on a thread of its own; returns when all have returned. `count` is at
    // most the number of threads.
    void run(unsigned count, const std::function<void(unsigned)>& work) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            work_ = &work, count_ = count, left_ = count - 1, ++round_;
        }
        if (count > 1) wake_.notify_all();
        work(0);
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return left_ == 0; });
    }

private:
    void serve(unsigned k) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            ++started_;
        }
        done_.notify_one();
        for (unsigned long seen = 0;;) {
            const std::function<void(unsigned)>* work = nullptr;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [&] { return round_ != seen; });
                seen = round_;
                if (k < count_) work = work_;
            }
            if (work == nullptr) continue;
            (*work)(k);
            const std::lock_guard<std::mutex> lock(mutex_);
            if (--left_ == 0) done_.notify_one();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    const std::function<void(unsigned)>* work_ = nullptr;
    unsigned count_ = 0, left_ = 0, started_ = 0;
    unsigned long round_ = 0;
};

}  // namespace ptxemu

// Host memory is copied and compared by a few threads: one core is several times slower than the link to the device.
#pragma once

#include <kernelblaster/last_word.hpp>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

namespace kb {

constexpr size_t kMostParts = 8;
constexpr size_t kLeastPartBytes = size_t{1} << 20;  // below that a thread costs more than it saves
constexpr size_t kPartStep = 4096;                   // parts begin at pages, and so at whole elements

// Threads that wait for parts of work. They start once, before a candidate's code runs: none may start afterwards. Their
// stacks come from operator new. While `run` does not, they touch no memory but `turn_`: see protected_memory.hpp.
class Helpers {
   public:
    static Helpers& get() {
        if (kept().helpers == nullptr) kept().helpers = new Helpers;  // never destroyed: they end with the process
        return *static_cast<Helpers*>(kept().helpers);
    }

    size_t count() const { return started_; }

    // Calls work(i) for i in [0, count), each on a thread; returns when all threads wait again.
    void run(size_t count, const std::function<void(size_t)>& work) {
        work_ = &work, count_ = count;
        next_ = 0;
        waiting_ = 0;
        turn_.fetch_add(1);
        ::syscall(SYS_futex, &turn_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
        take_all();
        wait_for_all();
        work_ = nullptr;
    }

   private:
    static constexpr size_t kThreadStackBytes = size_t{240} << 10;

    Helpers() {
        const size_t cores = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostParts);
        while (started_ + 1 < cores && start()) ++started_;
        wait_for_all();
    }

    // False when no thread is to be had: the limit on tasks.
    bool start() {
        auto* stack = new char[kThreadStackBytes];
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstack(&attributes, stack, kThreadStackBytes);
        pthread_t thread;
        const int error = pthread_create(&thread, &attributes, [](void* self) -> void* {
            static_cast<Helpers*>(self)->serve();
            return nullptr;
        }, this);
        pthread_attr_destroy(&attributes);
        return error == 0;
    }

    // A thread that is still starting needs system calls that are refused soon, and one at work the harness' memory.
    void wait_for_all() const {
        while (waiting_.load() < started_) ::sched_yield();
    }

    void take_all() {
        for (size_t i = next_++; i < count_; i = next_++) (*work_)(i);
    }

    [[noreturn]] void serve() {
        for (uint32_t seen = 0;;) {
            seen = wait_for_turn(seen);
            take_all();
        }
    }

    // Counts this thread among those that wait, and waits until there is another turn.
    uint32_t wait_for_turn(uint32_t seen) {
#if defined(__x86_64__)
        // From the count on nothing but registers is used, for the stack may be out of reach.
        uint32_t now = 0;
        register const void* no_timeout asm("r10") = nullptr;
        asm volatile(
            "lock incq %[waiting]\n"
            "1: mov (%%rdi), %%eax\n"
            "cmp %%edx, %%eax\n"
            "jne 2f\n"
            "mov %[futex], %%eax\n"
            "syscall\n"
            "jmp 1b\n"
            "2:\n"
            : "=&a"(now), [waiting] "+m"(waiting_)
            : "D"(&turn_), "S"(long{FUTEX_WAIT_PRIVATE}), "d"(seen), "r"(no_timeout), [futex] "i"(SYS_futex)
            : "rcx", "r11", "memory", "cc");
        return now;
#else
        ++waiting_;
        while (turn_.load() == seen) ::syscall(SYS_futex, &turn_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
        return turn_.load();
#endif
    }

    static inline std::atomic<uint32_t> turn_{0};
    std::atomic<size_t> waiting_{0}, next_{0};
    const std::function<void(size_t)>* work_ = nullptr;
    size_t count_ = 0, started_ = 0;
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

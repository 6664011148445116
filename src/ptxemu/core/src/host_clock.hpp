// How long the host code of a program works between profiler marks, without what the emulator does for it.
//
// On a GPU the host's work shows as soon as the stream runs dry. The model of time has kernels and copies alone, so that a
// program that computes on the host would be free. Processor time of the thread that sets the marks is what is taken: it
// does not grow when other programs want the processor.
#pragma once

#include <time.h>

#include <algorithm>

#include "types.hpp"

namespace ptxemu {

// Host code of a program stops and goes on between profiler marks (device_contents.cpp).
void host_code_stops();
void host_code_goes_on();

class HostClock {
public:
    // Launching takes far less, and a GPU hides that behind the work before. Processor time of a virtual machine under load
    // grows by tens of microseconds for reasons of its own: page walks, interrupts, a cache that others have filled.
    static constexpr u64 kFreeNs = 500'000;
    // Nothing hides what the host does with results of the GPU, nor what it does once it has waited for it.
    static constexpr u64 kFreeAfterWaitingNs = 20'000;

    static void start() {
        host_code_goes_on();
        state() = {true, false, false, 0, 0, now(), 0};
    }

    // The host works on results of the GPU, or on memory that both share.
    static void waited() { state().waited = true; }

    // The host has waited for the GPU: what it does from here on runs beside nothing.
    static void synchronized() {
        State& one = state();
        if (!one.running || one.synchronized) return;
        one.synchronized = true;
        one.before = now() - one.begin - one.paused;
    }

    // Nanoseconds since the start beyond those that are free.
    static u64 stop() {
        State& one = state();
        if (!one.running) return 0;
        one.running = false;
        const u64 own = now() - one.begin - one.paused;
        host_code_stops();
        if (one.waited) return beyond(own, kFreeAfterWaitingNs);
        const u64 before = one.synchronized ? std::min(one.before, own) : own;
        return beyond(before, kFreeNs) + beyond(own - before, kFreeAfterWaitingNs);
    }

    // While one of these lives, the emulator works.
    class Pause {
    public:
        Pause() {
            if (!state().running || state().depth++ != 0) return;
            begin_ = now();
            host_code_stops();
        }
        ~Pause() {
            if (!state().running || state().depth == 0 || --state().depth != 0) return;
            host_code_goes_on();
            state().paused += now() - begin_;
        }
        Pause(const Pause&) = delete;
        Pause& operator=(const Pause&) = delete;

    private:
        u64 begin_ = 0;
    };

private:
    struct State {
        bool running, waited, synchronized;
        u32 depth;
        u64 paused, begin;
        u64 before;  // of the host's own time, up to the first wait
    };

    static u64 beyond(u64 taken, u64 free) { return taken > free ? taken - free : 0; }

    static State& state() {
        static thread_local State one{};
        return one;
    }

    static u64 now() {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<u64>(time.tv_sec) * 1'000'000'000 + static_cast<u64>(time.tv_nsec);
    }
};

}  // namespace ptxemu

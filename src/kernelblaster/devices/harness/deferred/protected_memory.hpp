// The range of pages that include/kernelblaster/protected_memory.hpp tells of, and what is handed out of it. For
// deferred.cpp alone: operator new of the whole program is defined here, and hidden from shared objects.
#pragma once

#include <kernelblaster/protected_memory.hpp>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <new>

namespace {

// A page that nobody may write to at either end: no neighbour's mapping is joined to the range, and a stack that grows
// too deep ends there. Between them the stack, the page of the state, and the heap.
constexpr size_t kRangeBytes = size_t{64} << 20;
constexpr size_t kStatePage = kb::kPageBytes + kb::kStackBytes;
constexpr size_t kHeapBegin = kStatePage + kb::kPageBytes, kHeapEnd = kRangeBytes - kb::kPageBytes;
constexpr size_t kOrders = 17;

struct Block {
    size_t order;
    Block* next;  // of a free block
};

// All zero at first. The gate knows the offsets of its first members.
struct RangeState {
    uint64_t closes;          // whether calls close the range
    void* target;             // what the gate calls
    void* harness_stack;      // pointers to the stacks that are not in use
    void* outer_stack;
    uint64_t thrown;          // whether the last call ended by an exception
    std::atomic_flag busy;    // the heap is; never while the range is closed, for no thread has work then
    void* kept[8];            // what the program keeps
    size_t used;              // bytes of the heap that were ever handed out
    Block* free[kOrders];
};
static_assert(sizeof(RangeState) <= kb::kPageBytes);

}  // namespace

extern "C" {
alignas(kb::kPageBytes) __attribute__((visibility("hidden"))) char kb_range[kRangeBytes];
}

namespace {

inline RangeState& range_state() { return *reinterpret_cast<RangeState*>(kb_range + kStatePage); }

// Pages of their own for a block that is too large. They come from the kernel: what malloc hands out, a candidate can
// have prepared.
class Bulk {
   public:
    static void* take(size_t bytes) {
        void* made = ::mmap(nullptr, bytes + kb::kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (made == MAP_FAILED) return nullptr;
        *static_cast<size_t*>(made) = bytes + kb::kPageBytes;
        return static_cast<char*>(made) + kb::kPageBytes;
    }

    static void give(char* memory) {
        char* const made = memory - kb::kPageBytes;
        ::munmap(made, *reinterpret_cast<size_t*>(made));
    }
};

// Blocks of powers of two, from 32 bytes on, with a header of 16. What is freed is handed out again for its size.
class RangeHeap {
   public:
    // Null when there is no memory left.
    static void* take(size_t bytes) {
        if (bytes > kb::kBulkBytes) return Bulk::take(bytes);
        size_t order = 0;
        while (block_bytes(order) < bytes + sizeof(Block)) ++order;
        const Lock lock;
        RangeState& state = range_state();
        Block* found = state.free[order];
        if (found != nullptr) {
            state.free[order] = found->next;
        } else {
            if (block_bytes(order) > kHeapEnd - kHeapBegin - state.used) return nullptr;
            found = reinterpret_cast<Block*>(kb_range + kHeapBegin + state.used);
            state.used += block_bytes(order);
            found->order = order;
        }
        return found + 1;
    }

    static void give(void* memory) {
        if (memory == nullptr) return;
        auto* at = static_cast<char*>(memory);
        if (at < kb_range || at >= kb_range + kRangeBytes) return Bulk::give(at);
        Block* block = reinterpret_cast<Block*>(memory) - 1;
        const Lock lock;
        block->next = range_state().free[block->order];
        range_state().free[block->order] = block;
    }

   private:
    struct Lock {
        Lock() {
            while (range_state().busy.test_and_set(std::memory_order_acquire)) continue;
        }
        ~Lock() { range_state().busy.clear(std::memory_order_release); }
    };

    static size_t block_bytes(size_t order) { return size_t{32} << order; }
};

}  // namespace

asm(".hidden _Znwm\n.hidden _Znam\n.hidden _ZnwmRKSt9nothrow_t\n.hidden _ZnamRKSt9nothrow_t\n"
    ".hidden _ZdlPv\n.hidden _ZdaPv\n.hidden _ZdlPvm\n.hidden _ZdaPvm\n"
    ".hidden _ZdlPvRKSt9nothrow_t\n.hidden _ZdaPvRKSt9nothrow_t\n");

void* operator new(size_t bytes) {
    if (void* memory = RangeHeap::take(bytes)) return memory;
    throw std::bad_alloc();
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return RangeHeap::take(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return RangeHeap::take(bytes); }
void operator delete(void* memory) noexcept { RangeHeap::give(memory); }
void operator delete[](void* memory) noexcept { RangeHeap::give(memory); }
void operator delete(void* memory, size_t) noexcept { RangeHeap::give(memory); }
void operator delete[](void* memory, size_t) noexcept { RangeHeap::give(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { RangeHeap::give(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { RangeHeap::give(memory); }

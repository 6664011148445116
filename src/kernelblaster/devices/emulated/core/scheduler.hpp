// The two halves of the scheduler: turns of one warp (group.cpp), and the blocks they belong to (block.cpp). Which blocks
// of a launch are executed, and by whom, is for launch.cpp.
#pragma once

#include "machine.hpp"

namespace kbemu {

// bar.red: how Instruction::extra says what to combine.
enum class Reduction : u32 { none, count, all, any };

// Runs a warp until its lanes wait, are gone, or its quota is used.
void run_warp(Warp& warp);

// A worker's block: registers, local and shared memory are allocated once and reused for every block it runs.
class BlockRunner {
public:
    BlockRunner(const Launch& launch, Worker& worker);
    void run(u64 number);
    void begin(u64 number);
    // One turn of every warp; false when the block is done or has failed.
    bool step();

private:
    u8* registers_of(u32 index);
    void prepare(u32 index);
    u32 special_value(const Warp& warp, const std::string& name, u32 lane) const;
    void restart(Warp& warp);

    const Launch& launch_;
    Worker& worker_;
    Block block_;
    std::vector<u8> register_file_, local_;
    std::size_t register_stride_ = 0;
};

}  // namespace kbemu

// The scheduler: turns of one warp (group.cpp), the blocks they belong to (block.cpp), and blocks that run side by side
// (cluster.cpp). Which blocks of a launch are executed, and by whom, is for launch.cpp.
#pragma once

#include <optional>

#include "machine.hpp"

namespace ptxemu {

// bar.red: how Instruction::extra says what to combine.
enum class Reduction : u32 { none, count, all, any };

// Runs a warp until its lanes wait, are gone, or its quota is used.
void run_warp(Warp& warp);

// What has come of a block's turn. Stuck: nobody could do anything, and no barrier of the block was complete. Starved: some
// have looked at an mbarrier and found it closed, and nobody did anything else.
enum class Turn { moved, starved, stuck, done };

// A worker's block: registers, local and shared memory are allocated once and reused for every block it runs.
class BlockRunner {
public:
    BlockRunner(const Launch& launch, Worker& worker);
    void begin(u64 cluster, u32 rank);
    // One turn of every warp.
    Turn step();
    Block& block() { return block_; }

private:
    u8* registers_of(u32 index);
    void prepare(u32 index);
    u32 special_value(const Warp& warp, const std::string& name, u32 lane) const;
    std::optional<u32> own_value(const std::string& name) const;
    void restart(Warp& warp);

    const Launch& launch_;
    Worker& worker_;
    Block block_;
    std::vector<u8> register_file_, local_;
    std::size_t register_stride_ = 0;
};

// The blocks of a cluster, mostly one alone.
class ClusterRunner {
public:
    ClusterRunner(const Launch& launch, Worker& worker);
    void run(u64 number);
    void begin(u64 number);
    // One turn of every block; false when all are done, or one has failed.
    bool step();

private:
    bool open_barrier();
    bool starving(bool looked_only);
    void fail_starved(Block& block);
    void fail_alone(Block& block);

    Worker& worker_;
    u64 looks_ = 0, changes_ = 0;  // turns in which nothing but looks at mbarriers was done, which have not changed since
    Cluster cluster_;
    std::vector<std::unique_ptr<BlockRunner>> blocks_;
};

}  // namespace ptxemu

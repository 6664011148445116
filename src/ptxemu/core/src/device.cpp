#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "runtime.hpp"

namespace ptxemu {
namespace {

constexpr u64 kRegisterUnit = 256, kSmParts = 4, kSharedUnit = 128, kSystemShared = 1024;

}  // namespace

DeviceFigures DeviceFigures::from_environment() {
    DeviceFigures figures;
    const std::map<std::string, u64*> numbers = {
        {"major", &figures.major},
        {"minor", &figures.minor},
        {"sm_count", &figures.sm_count},
        {"clock_khz", &figures.clock_khz},
        {"l2_bytes", &figures.l2_bytes},
        {"l1_bytes", &figures.l1_bytes},
        {"shared_per_block", &figures.shared_per_block},
        {"shared_per_block_optin", &figures.shared_per_block_optin},
        {"shared_per_sm", &figures.shared_per_sm},
        {"registers_per_sm", &figures.registers_per_sm},
        {"threads_per_sm", &figures.threads_per_sm},
        {"blocks_per_sm", &figures.blocks_per_sm},
        {"memory_bytes", &figures.memory_bytes},
    };
    if (const char* path = std::getenv("PTXEMU_DEVICE")) {
        std::ifstream file(path);
        for (std::string line; std::getline(file, line);) {
            std::istringstream words(line);
            std::string key;
            words >> key >> std::ws;
            if (key == "name") {
                std::getline(words, figures.name);
            } else if (key == "attribute") {
                int number = 0;
                Attribute attribute;
                words >> number >> attribute.name;
                if (int value = 0; words >> value) attribute.value = value;
                figures.attributes[number] = std::move(attribute);
            } else if (const auto found = numbers.find(key); found != numbers.end()) {
                words >> *found->second;
            } else if (!key.empty()) {
                std::fprintf(stderr, "ptxcudart: %s: unknown key %s\n", path, key.c_str());
                std::exit(2);
            }
        }
    }
    if (const char* bytes = std::getenv("PTXEMU_MEMORY")) figures.memory_bytes = std::strtoull(bytes, nullptr, 10);
    return figures;
}

u64 resident_warps(const DeviceFigures& figures, u64 registers) {
    const u64 most = figures.threads_per_sm / kLanes;
    if (registers == 0) return most;
    // Each of the four parts of an SM has its share of the registers, and gives them to warps in units.
    const u64 per_warp = (registers * kLanes + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
    return std::min(most, figures.registers_per_sm / kSmParts / per_warp * kSmParts);
}

u32 most_cluster_blocks(const DeviceFigures& figures, const KernelEntry& kernel) {
    return figures.major < 9 ? 1 : kernel.large_clusters ? 16 : 8;
}

u64 resident_blocks(const DeviceFigures& figures, u64 threads, u64 shared_bytes, u64 registers) {
    const u64 warps = (threads + kLanes - 1) / kLanes;
    if (warps == 0) return 0;
    // The system keeps 1 KiB of shared memory per block.
    const u64 shared = (shared_bytes + kSystemShared + kSharedUnit - 1) / kSharedUnit * kSharedUnit;
    return std::min({figures.blocks_per_sm, resident_warps(figures, registers) / warps, figures.shared_per_sm / shared});
}

}  // namespace ptxemu

// An assembled module in memory, as read from the file that PTXEMU_MODULE names.
//
// File format (little endian; written by ptx/module.py):
//   magic "KBEMU8\0\0"
//   strings      u32 n, then n x (u32 length, bytes)      all names below index this table
//   operations   u32 n, then n x u32                       names of operations, found in the operation table
//   classes      u32 n, then n x u32                       names of instruction classes, for the report
//   variables    u32 n, then n x Variable                  .global and .const variables with initial bytes
//   sources      u32 n, then n x (u32 file, u32 line)      source positions; entry 0 is "unknown"
//   functions    u32 n, then n x Function
//   checksum     u32, CRC-32 of all before it
// Every operand is a byte offset into a warp's register file, where a register is 32 consecutive lanes.
#pragma once

#include <string>
#include <vector>

#include "types.hpp"

namespace ptxemu {

class Warp;
struct Instruction;

// Executes one instruction for the lanes in `active`. `lanes` holds ~0 per active lane, or is null when all 32 are.
using Handler = void (*)(Warp& warp, const Instruction& instruction, u32 active, const pred* lanes);

// How the scheduler treats an operation.
enum class Kind : u8 {
    lane,     // per-lane work; runs even when no lane is active (it then changes nothing)
    memory,   // skipped when the guard leaves no lane
    warp,     // needs all lanes of its member mask at this instruction
    branch,
    call,
    ret,
    exit,
    barrier,
    trap,
};

constexpr u16 kGuarded = 1;
constexpr u16 kGuardNegated = 2;
constexpr u16 kBypassL1 = 4;
constexpr u16 kHasResult = 8;
constexpr u16 kFullBlockBarrier = 16;  // barrier without a thread count
constexpr u16 kBarrierArriveOnly = 32;
constexpr u16 kWideAddress = 64;
constexpr u16 kClusterBarrier = 128;  // of a whole cluster; arrivals and waits are instructions of their own

constexpr int kOperands = 6;

// Kinds of latency that a warp waits for (see ptx/waits.py); instructions that it does not wait for are of kind 0.
constexpr const char* kWaitNames[] = {"none",       "global", "shared", "atomic", "shuffle", "special",
                                      "arithmetic", "double", "tensor", "division", "global_unrolled",
                                      "shared_unrolled"};
constexpr u32 kWaits = sizeof kWaitNames / sizeof *kWaitNames;

struct Instruction {
    Handler handler;
    Kind kind;
    u8 instruction_class;
    u16 flags;
    u32 guard;
    u32 operand[kOperands];
    s64 immediate;
    u32 memory;    // index of this memory instruction in Function::memory
    u32 source;    // index into Module::sources
    u32 ptx_line;
    u32 extra;     // index into Function::extra, for operations with more operands than fit
};

struct MemoryInstruction {
    std::string space, op;
    u32 bytes_per_lane, ptx_line, source;
    bool steers;  // what it reads may decide what is executed, or where (see ptx/steering.py)
};

struct Constant {
    u32 offset, width;
    u64 value;
};

// A register that starts with a property of the thread or launch.
struct Special {
    u32 offset;
    std::string name;
};

struct Parameter {
    u32 offset, size;
};

struct Function {
    std::string name;
    std::vector<Parameter> parameters;
    u32 parameter_bytes, register_bytes, static_shared, local_bytes;
    u32 required_block[3];  // .reqntid, 0 when absent
    u32 max_threads;        // .maxntid, 0 when absent
    u32 required_cluster[3];  // .reqnctapercluster, 0 when absent
    bool order_dependent;   // float atomics, or atomics whose result is read
    bool communicates;      // a block may read what another block of the launch has written
    bool uses_heap;         // calls malloc() or free()
    u32 registers;          // of each thread, as ptxas reports them; 0: unknown
    u32 entry;              // first instruction; functions that the kernel calls stand before it
    struct Reach {
        bool anywhere;                           // further places, not known before it runs
        std::vector<u32> parameters, variables;  // offsets of pointers, indices of variables
    } reach;  // where its stores to global memory may go (see ptx/reach.py)
    std::vector<Constant> constants;
    std::vector<Special> specials;
    std::vector<MemoryInstruction> memory;
    std::vector<u32> extra;
    std::vector<Instruction> code;
    std::vector<u16> operations;  // as which each instruction is counted: index into Module::operation_names
    std::vector<u8> waits;        // of each instruction: index into kWaitNames
};

struct Variable {
    enum class Kind : u32 { global, constant, managed };
    std::string name;
    Kind kind;
    u32 align;
    u64 size;
    std::vector<u8> initial;
    struct Relocation {
        u64 offset;
        u32 variable;
        s64 addend;
    };
    std::vector<Relocation> relocations;
    u64 address = 0;  // set when the runtime places it
};

struct SourcePosition {
    std::string file;
    u32 line;
};

// Where a call goes, as three words of Function::extra: the number of the function in the module, its first
// instruction, and the start of the list of registers to save (0: none; else a count and pairs of offset and width).
struct CallTarget {
    u32 function, entry, saved;
};

// Function k of the module has the address kCodeWindow + 256 * k, k counted from 1.
constexpr u64 kCodeWindow = 4ull << 56;

struct Module {
    std::string path;  // of the file, unless the program has no other module
    std::vector<std::string> operation_names, class_names;
    std::vector<Variable> variables;
    std::vector<SourcePosition> sources;
    std::vector<Function> functions;

    const Function* find(const std::string& name) const;
    Variable* find_variable(const std::string& name);
};

u32 crc32(const char* data, std::size_t size);

// Throws std::runtime_error when the file is not a module of this core.
Module read_module(const std::string& path);

// Constants with this width hold an address: variable index in the high, addend in the low 32 bits.
constexpr u32 kAddressWidth = 0x80;
void resolve_addresses(Module& module);

}  // namespace ptxemu

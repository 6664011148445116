// Modules in memory: the program's own, and those that it loads while it runs.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "runtime.hpp"

namespace ptxemu {

namespace {

constexpr char kListOfModules[] = "ptxemu modules";

// Of the wrapper that nvcc's host code registers, and of what it holds.
struct FatBinary {
    u32 magic, version;
    const char* data;
    void* linked;
};
struct FatBinaryHeader {
    u32 magic;
    u16 version, header_bytes;
    u64 bytes;
};

u32 digest_of(const void* fat_binary) {
    const char* const data = static_cast<const FatBinary*>(fat_binary)->data;
    FatBinaryHeader header;
    std::memcpy(&header, data, sizeof header);
    return crc32(data, header.header_bytes + header.bytes);
}

}  // namespace

// Either one module, or a file that lists one for each of the program's files: CRC-32 of the machine code that its host
// code registers, and a path.
void Runtime::load_program() {
    if (settings.module.empty()) return;
    try {
        std::ifstream list(settings.module);
        std::string line;
        if (!std::getline(list, line) || line != kListOfModules) {
            program_.push_back({0, std::make_unique<Module>(read_module(settings.module))});
        } else {
            for (u32 digest = 0; list >> digest >> std::ws && std::getline(list, line);) {
                program_.push_back({digest, std::make_unique<Module>(read_module(line))});
                program_.back().module->path = line;
            }
        }
        for (const OwnModule& one : program_) place(*one.module);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "ptxcudart: %s: %s\n", settings.module.c_str(), error.what());
        std::exit(4);
    }
}

Module* Runtime::registered(const void* fat_binary) {
    if (program_.empty()) return nullptr;
    const u32 digest = program_.size() == 1 ? program_.front().digest : digest_of(fat_binary);
    for (const OwnModule& one : program_)
        if (one.digest == digest) return one.module.get();
    std::fprintf(stderr, "ptxcudart: the program was not built together with %s\n", settings.module.c_str());
    std::exit(4);
}

// Gives the variables their memory and initial values.
void Runtime::place(Module& module) {
    for (Variable& variable : module.variables) {
        variable.address = arena.allocate(variable.size, variable.kind == Variable::Kind::managed);
        if (variable.address == 0) throw std::runtime_error("no device memory for variable " + variable.name);
        u8* memory = bytes_at(variable.address);
        std::memset(memory, 0, variable.size);
        std::memcpy(memory, variable.initial.data(), variable.initial.size());
        if (initialized) initialized->mark(variable.address, variable.size);
        if (variable.kind == Variable::Kind::managed) contents.share(variable.address);
    }
    for (const Variable& variable : module.variables)
        for (const auto& relocation : variable.relocations) {
            const u64 value = module.variables.at(relocation.variable).address + static_cast<u64>(relocation.addend);
            std::memcpy(bytes_at(variable.address) + relocation.offset, &value, sizeof value);
        }
    resolve_addresses(module);
}

Module& Runtime::load(const std::string& path) {
    auto module = std::make_unique<Module>(read_module(path));
    module->path = path;
    place(*module);
    loaded_.push_back(std::move(module));
    return *loaded_.back();
}

Module* Runtime::loaded(const void* module) {
    for (const auto& one : loaded_)
        if (one.get() == module) return one.get();
    return nullptr;
}

bool Runtime::unload(const Module* module) {
    for (auto one = loaded_.begin(); one != loaded_.end(); ++one) {
        if (one->get() != module) continue;
        for (const Variable& variable : module->variables) arena.free(variable.address);
        unloaded_.push_back(std::move(*one));
        loaded_.erase(one);
        return true;
    }
    return false;
}

const void* Runtime::handle_of(const Module& module, const std::string& kernel) {
    const Function* function = module.find(kernel);
    if (function != nullptr && kernels_.count(function) == 0)
        kernels_[function] = {kernel, &module, function, static_cast<u32>(figures.shared_per_block)};
    return function;
}

}  // namespace ptxemu

// Modules in memory: the program's own, and those that it loads while it runs.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "runtime.hpp"

namespace ptxemu {

void Runtime::load_program() {
    if (settings.module.empty()) return;
    try {
        program_ = std::make_unique<Module>(read_module(settings.module));
        place(*program_);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "ptxcudart: %s: %s\n", settings.module.c_str(), error.what());
        std::exit(4);
    }
}

// Gives the variables their memory and initial values.
void Runtime::place(Module& module) {
    for (Variable& variable : module.variables) {
        variable.address = arena.allocate(variable.size);
        if (variable.address == 0) throw std::runtime_error("no device memory for variable " + variable.name);
        u8* memory = reinterpret_cast<u8*>(variable.address);
        std::memset(memory, 0, variable.size);
        std::memcpy(memory, variable.initial.data(), variable.initial.size());
        if (initialized) initialized->mark(variable.address, variable.size);
    }
    for (const Variable& variable : module.variables)
        for (const auto& relocation : variable.relocations) {
            const u64 value = module.variables.at(relocation.variable).address + static_cast<u64>(relocation.addend);
            std::memcpy(reinterpret_cast<u8*>(variable.address) + relocation.offset, &value, sizeof value);
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

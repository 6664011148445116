// The operation table: every name that a module may use, with its handler.
//
// The .def files are the one list of operations. The core expands them into handlers; the assembler reads the same
// files as text to learn which operations exist and what types their operands have.
#pragma once

#include <string>
#include <vector>

#include "program.hpp"

namespace ptxemu {

struct Operation {
    const char* name;
    Kind kind;
    Handler handler;
};

// One table per file of handlers.
const std::vector<Operation>& integer_operations();
const std::vector<Operation>& float_operations();
const std::vector<Operation>& directed_operations();
const std::vector<Operation>& half_operations();
const std::vector<Operation>& convert_operations();
const std::vector<Operation>& memory_operations();
const std::vector<Operation>& atomic_operations();
const std::vector<Operation>& warp_operations();
const std::vector<Operation>& tensor_operations();
const std::vector<Operation>& wgmma_operations();
const std::vector<Operation>& mbarrier_operations();
const std::vector<Operation>& bulk_operations();
const std::vector<Operation>& heap_operations();
const std::vector<Operation>& texture_operations();
const std::vector<Operation>& surface_operations();
const std::vector<Operation>& control_operations();

// Throws std::runtime_error for a name no table holds.
const Operation* find_operation(const std::string& name);

}  // namespace ptxemu

// PTX that a program brings along or makes while it runs: assembled by the command that PTXEMU_LOADER names, its words in
// lines, which gets the name of a file with the text and prints the name of the module's file.
#pragma once

#include <string>

namespace ptxemu {

enum class Loading { done, no_loader, refused_by_ptxas, not_emulatable };

struct LoadedText {
    Loading outcome;
    std::string module;   // the file, where it is done
    std::string message;  // where it is not
};

LoadedText assemble(const std::string& ptx);

}  // namespace ptxemu

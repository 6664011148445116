#include "operations.hpp"

#include <stdexcept>
#include <unordered_map>

namespace ptxemu {
namespace {

std::unordered_map<std::string, const Operation*> index_operations() {
    std::unordered_map<std::string, const Operation*> index;
    for (const auto* table :
         {&integer_operations(), &float_operations(), &directed_operations(), &half_operations(),
          &convert_operations(), &memory_operations(), &atomic_operations(), &warp_operations(), &tensor_operations(),
          &wgmma_operations(), &mbarrier_operations(), &bulk_operations(), &heap_operations(), &texture_operations(),
          &surface_operations(), &control_operations()})
        for (const Operation& one : *table) index.emplace(one.name, &one);
    return index;
}

}  // namespace

const Operation* find_operation(const std::string& name) {
    static const auto index = index_operations();
    const auto found = index.find(name);
    if (found == index.end()) throw std::runtime_error("this core has no operation " + name);
    return found->second;
}

}  // namespace ptxemu

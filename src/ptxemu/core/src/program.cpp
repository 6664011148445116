#include "program.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "heap.hpp"
#include "operations.hpp"

namespace ptxemu {

u32 crc32(const char* data, std::size_t size) {
    u32 remainder = ~0u;
    for (std::size_t k = 0; k < size; ++k) {
        remainder ^= static_cast<u8>(data[k]);
        for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1 ^ (remainder & 1 ? 0xedb88320u : 0u);
    }
    return ~remainder;
}

namespace {

class Reader {
public:
    explicit Reader(const std::string& path) {
        std::ifstream file(path, std::ios::binary);
        if (!file) throw std::runtime_error("cannot open module " + path);
        data_.assign(std::istreambuf_iterator<char>(file), {});
        u32 expected = 0;
        if (data_.size() < sizeof expected) throw std::runtime_error("module file is truncated");
        std::memcpy(&expected, data_.data() + data_.size() - sizeof expected, sizeof expected);
        data_.resize(data_.size() - sizeof expected);
        if (crc32(data_.data(), data_.size()) != expected) throw std::runtime_error("module file is damaged");
    }

    template <class T>
    T number() {
        T value;
        std::memcpy(&value, take(sizeof value), sizeof value);
        return value;
    }

    std::vector<u8> raw(std::size_t size) {
        const char* start = take(size);
        return {start, start + size};
    }

    template <class Item>
    auto list(Item item) {
        std::vector<decltype(item())> items(number<u32>());
        for (auto& one : items) one = item();
        return items;
    }

private:
    const char* take(std::size_t size) {
        if (size > data_.size() - position_) throw std::runtime_error("module file is truncated");
        position_ += size;
        return data_.data() + position_ - size;
    }

    std::string data_;
    std::size_t position_ = 0;
};

class ModuleReader {
public:
    explicit ModuleReader(const std::string& path) : reader_(path) {}

    Module read() {
        const auto magic = reader_.raw(8);
        if (std::memcmp(magic.data(), "KBEMU9\0\0", 8) != 0) throw std::runtime_error("not a module file");
        strings_ = reader_.list([&] {
            const auto text = reader_.raw(reader_.number<u32>());
            return std::string(text.begin(), text.end());
        });
        Module module;
        module.operation_names = reader_.list([&] { return string(); });
        for (const std::string& name : module.operation_names) operations_.push_back(find_operation(name));
        module.class_names = reader_.list([&] { return string(); });
        module.variables = reader_.list([&] { return variable(); });
        module.sources = reader_.list([&] { return SourcePosition{string(), reader_.number<u32>()}; });
        module.functions = reader_.list([&] { return function(); });
        return module;
    }

private:
    u32 number() { return reader_.number<u32>(); }
    const std::string& string() { return strings_.at(number()); }

    Variable variable() {
        Variable result;
        result.name = string();
        result.kind = static_cast<Variable::Kind>(number());
        result.align = number();
        result.size = reader_.number<u64>();
        result.initial = reader_.raw(number());
        result.relocations = reader_.list([&] {
            Variable::Relocation one;
            one.offset = reader_.number<u64>();
            one.variable = number();
            one.addend = reader_.number<s64>();
            return one;
        });
        return result;
    }

    Function function() {
        Function result;
        result.name = string();
        result.parameters = reader_.list([&] {
            const u32 offset = number();
            return Parameter{offset, number()};
        });
        result.parameter_bytes = number();
        result.register_bytes = number();
        result.static_shared = number();
        result.local_bytes = number();
        for (u32& extent : result.required_block) extent = number();
        result.max_threads = number();
        for (u32& extent : result.required_cluster) extent = number();
        result.order_dependent = number() != 0;
        result.communicates = number() != 0;
        result.registers = number();
        result.entry = number();
        result.reach.anywhere = number() != 0;
        result.reach.parameters = reader_.list([&] { return number(); });
        result.reach.variables = reader_.list([&] { return number(); });
        result.constants = reader_.list([&] {
            Constant one;
            one.offset = number();
            one.width = number();
            one.value = reader_.number<u64>();
            return one;
        });
        result.specials = reader_.list([&] {
            const u32 offset = number();
            return Special{offset, string()};
        });
        result.memory = reader_.list([&] {
            MemoryInstruction one;
            one.space = string();
            one.op = string();
            one.bytes_per_lane = number();
            one.ptx_line = number();
            one.source = number();
            one.steers = number() != 0;
            return one;
        });
        result.extra = reader_.list([&] { return number(); });
        result.code = reader_.list([&] { return instruction(result); });
        result.uses_heap = std::any_of(result.code.begin(), result.code.end(), [](const Instruction& one) {
            static const Handler of_heap[] = {find_operation(kHeapAllocate)->handler, find_operation(kHeapFree)->handler};
            return one.handler == of_heap[0] || one.handler == of_heap[1];
        });
        return result;
    }

    Instruction instruction(Function& function) {
        Instruction result{};
        const Operation& operation = *operations_.at(reader_.number<u16>());
        function.operations.push_back(reader_.number<u16>());
        result.handler = operation.handler;
        result.kind = operation.kind;
        result.instruction_class = reader_.number<u8>();
        function.waits.push_back(static_cast<u8>(std::min<u32>(reader_.number<u8>(), kWaits - 1)));
        result.flags = static_cast<u16>(number());
        result.guard = number();
        for (u32& one : result.operand) one = number();
        result.immediate = reader_.number<s64>();
        result.memory = number();
        result.source = number();
        result.ptx_line = number();
        result.extra = number();
        return result;
    }

    Reader reader_;
    std::vector<std::string> strings_;
    std::vector<const Operation*> operations_;
};

}  // namespace

const Function* Module::find(const std::string& name) const {
    for (const Function& one : functions)
        if (one.name == name) return &one;
    return nullptr;
}

Variable* Module::find_variable(const std::string& name) {
    for (Variable& one : variables)
        if (one.name == name) return &one;
    return nullptr;
}

Module read_module(const std::string& path) { return ModuleReader(path).read(); }

void resolve_addresses(Module& module) {
    for (Function& function : module.functions)
        for (Constant& constant : function.constants) {
            if (constant.width != kAddressWidth) continue;
            const s64 addend = static_cast<s32>(constant.value & 0xffffffffu);
            constant.value = module.variables.at(constant.value >> 32).address + static_cast<u64>(addend);
            constant.width = 64;
        }
}

}  // namespace ptxemu

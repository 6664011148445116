#include "format.hpp"

#include <cctype>
#include <cstdio>

namespace kbemu {
namespace {

// Host pointer to `bytes` bytes at a generic address, or null.
const u8* locate(Warp& warp, int lane, u64 address, u64 bytes) {
    const u64 window = address & kWindowMask, offset = address & ~kWindowMask;
    const Launch& launch = *warp.worker->launch;
    if (window == kSharedWindow)
        return offset + bytes <= warp.block->shared_bytes ? warp.block->shared.data() + offset : nullptr;
    if (window == kLocalWindow) {
        const u64 size = launch.function->local_bytes;
        return offset + bytes <= size ? warp.local + static_cast<u64>(lane) * size + offset : nullptr;
    }
    const std::size_t found = launch.segments->find(address);
    if (found == launch.segments->list.size() || address + bytes > launch.segments->list[found].end) return nullptr;
    return reinterpret_cast<const u8*>(address);
}

template <class T>
T read(Warp& warp, int lane, u64 address) {
    T value{};
    if (const u8* pointer = locate(warp, lane, address, sizeof value)) std::memcpy(&value, pointer, sizeof value);
    return value;
}

// Arguments lie in order, each aligned to its size: 4 bytes for int, 8 for everything else.
class Arguments {
public:
    Arguments(Warp& warp, int lane, u64 address) : warp_(warp), lane_(lane), next_(address) {}

    template <class T>
    T take() {
        next_ = (next_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
        next_ += sizeof(T);
        ++count_;
        return read<T>(warp_, lane_, next_ - sizeof(T));
    }
    int count() const { return count_; }

private:
    Warp& warp_;
    int lane_;
    u64 next_;
    int count_ = 0;
};

std::string render(const std::string& specification, Arguments& arguments, Warp& warp, int lane) {
    char text[512];
    const char kind = specification.back();
    const bool wide = specification.find_first_of("lzjt") != std::string::npos;
    if (std::string("eEfFgGaA").find(kind) != std::string::npos)
        std::snprintf(text, sizeof text, specification.c_str(), arguments.take<f64>());
    else if (kind == 's')
        std::snprintf(text, sizeof text, specification.c_str(), read_string(warp, lane, arguments.take<u64>()).c_str());
    else if (kind == 'p')
        std::snprintf(text, sizeof text, specification.c_str(), reinterpret_cast<void*>(arguments.take<u64>()));
    else if (wide)
        std::snprintf(text, sizeof text, specification.c_str(), arguments.take<u64>());
    else
        std::snprintf(text, sizeof text, specification.c_str(), arguments.take<u32>());
    return text;
}

}  // namespace

std::string read_string(Warp& warp, int lane, u64 address) {
    std::string text;
    for (;; ++address) {
        const u8* byte = locate(warp, lane, address, 1);
        if (byte == nullptr || *byte == 0) return text;
        text += static_cast<char>(*byte);
    }
}

int print_formatted(Warp& warp, int lane, u64 format, u64 arguments_address) {
    const std::string pattern = read_string(warp, lane, format);
    Arguments arguments(warp, lane, arguments_address);
    std::string text;
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        if (pattern[at] != '%') {
            text += pattern[at];
            continue;
        }
        std::size_t end = at + 1;
        while (end < pattern.size() && std::string("diouxXeEfFgGaAcsp%").find(pattern[end]) == std::string::npos) ++end;
        if (end >= pattern.size()) break;
        text += pattern[end] == '%' ? "%" : render(pattern.substr(at, end - at + 1), arguments, warp, lane);
        at = end;
    }
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    return arguments.count();
}

}  // namespace kbemu

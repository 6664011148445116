#include "format.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device_memory.hpp"

namespace ptxemu {
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
    return bytes_at(address);
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

// A conversion specification, split so that only what C defines reaches the host's printf.
struct Specification {
    std::string flags, width, precision, length;
    char kind = 0;
    std::size_t end = 0;  // position after it
};

std::string taken(const std::string& pattern, std::size_t& at, const char* wanted) {
    const std::size_t start = at;
    while (at < pattern.size() && std::strchr(wanted, pattern[at]) != nullptr) ++at;
    return pattern.substr(start, at - start);
}

// The specification that begins behind the percent sign at `at`; its kind is 0 when it is none.
Specification specification(const std::string& pattern, std::size_t at) {
    Specification result;
    result.flags = taken(pattern, at, "-+ #0");
    result.width = taken(pattern, at, "0123456789*");
    if (at < pattern.size() && pattern[at] == '.') result.precision = "." + taken(pattern, ++at, "0123456789*");
    result.length = taken(pattern, at, "hlzjt");
    const bool known = at < pattern.size() && std::strchr("diouxXeEfFgGaAcsp%", pattern[at]) != nullptr;
    result.kind = known ? pattern[at] : 0;
    result.end = at + 1;
    return result;
}

template <class... Values>
std::string printed(const std::string& format, Values... values) {
    const int size = std::snprintf(nullptr, 0, format.c_str(), values...);
    std::string text(size > 0 ? static_cast<std::size_t>(size) : 0, 0);
    if (size > 0) std::snprintf(text.data(), text.size() + 1, format.c_str(), values...);
    return text;
}

// A width or precision, at most three digits: a `*` takes an argument.
std::string extent(const std::string& text, Arguments& arguments) {
    const bool precision = !text.empty() && text[0] == '.';
    std::string digits = text.substr(precision);
    if (digits.find('*') != std::string::npos) digits = std::to_string(std::abs(arguments.take<s32>()));
    return (precision ? "." : "") + digits.substr(0, 3);
}

std::string render(const Specification& one, Arguments& arguments, Warp& warp, int lane) {
    const std::string width = extent(one.width, arguments), precision = extent(one.precision, arguments);
    const std::string head = "%" + one.flags + width + precision;
    const bool wide = one.length.find_first_of("lzjt") != std::string::npos;
    if (std::strchr("eEfFgGaA", one.kind) != nullptr) return printed(head + one.kind, arguments.take<f64>());
    if (one.kind == 's') return printed(head + 's', read_string(warp, lane, arguments.take<u64>()).c_str());
    if (one.kind == 'p') return printed(head + 'p', reinterpret_cast<void*>(arguments.take<u64>()));
    if (one.kind == 'c') return printed(head + 'c', arguments.take<s32>());
    if (wide) return printed(head + "ll" + one.kind, arguments.take<u64>());
    return printed(head + one.length + one.kind, arguments.take<u32>());
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
        const Specification one = specification(pattern, at + 1);
        if (one.kind == 0) {
            text += pattern[at];
            continue;
        }
        text += one.kind == '%' ? "%" : render(one, arguments, warp, lane);
        at = one.end - 1;
    }
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    return arguments.count();
}

}  // namespace ptxemu

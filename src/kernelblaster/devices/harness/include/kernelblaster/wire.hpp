// Messages between the judge and the harness: one packet of a Unix socket each, little-endian, with descriptors beside
// it. No stream, no locale and no C stdio takes part, so that nothing of these can be changed by a candidate.
//
//   packet   kind: u8, then the fields of that kind; a reply ends with its seal (seal.hpp)
//   text     length: u32, bytes          list     count: u32, elements
#pragma once

#include <kernelblaster/last_word.hpp>
#include <kernelblaster/seal.hpp>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace kb {

constexpr size_t kMostPacketBytes = size_t{128} << 10;
constexpr size_t kMostDescriptors = 200;  // Linux passes 253 at once

// The judge is gone, or somebody else has written to the socket.
class ChannelBroken : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
};

[[noreturn]] inline void broken(const char* what) {
    if (kept().last_word != nullptr) end_with(what);
    throw ChannelBroken(what);
}

// Descriptors that came with a packet. Those that nobody takes are closed.
class Descriptors {
   public:
    Descriptors() = default;
    explicit Descriptors(std::vector<int> files) : files_(std::move(files)) {}
    Descriptors(Descriptors&& other) noexcept : files_(std::move(other.files_)) { other.files_.clear(); }
    Descriptors& operator=(Descriptors&& other) noexcept {
        std::swap(files_, other.files_);
        return *this;
    }
    Descriptors(const Descriptors&) = delete;
    Descriptors& operator=(const Descriptors&) = delete;
    ~Descriptors() {
        for (const int file : files_) {
            if (file >= 0) close_file(file);
        }
    }

    size_t size() const { return files_.size(); }
    int operator[](size_t index) const {
        if (index >= files_.size()) broken("a descriptor is missing");
        return files_[index];
    }
    // A descriptor that its new owner closes.
    int release(size_t index) {
        const int file = (*this)[index];
        files_[index] = -1;
        return file;
    }

   private:
    std::vector<int> files_;
};

// Reads the fields of a packet in order.
class Packet {
   public:
    Packet(std::vector<char> bytes, Descriptors files) : files(std::move(files)), bytes_(std::move(bytes)) {}

    template <typename T>
    T take() {
        static_assert(std::is_arithmetic_v<T>);
        T value{};
        copy(&value, sizeof value);
        return value;
    }

    std::string take_text() {
        std::string text(take<uint32_t>(), '\0');
        copy(text.data(), text.size());
        return text;
    }

    template <typename T>
    std::vector<T> take_list() {
        const auto count = take<uint32_t>();
        if (count > left() / sizeof(T)) broken("a list is longer than its packet");
        std::vector<T> values(count);
        copy(values.data(), count * sizeof(T));
        return values;
    }

    size_t left() const { return bytes_.size() - at_; }

    Descriptors files;

   private:
    void copy(void* to, size_t count) {
        if (count > left()) broken("a packet is too short");
        if (count > 0) std::memcpy(to, bytes_.data() + at_, count);
        at_ += count;
    }

    std::vector<char> bytes_;
    size_t at_ = 0;
};

// Builds a packet.
class PacketBuilder {
   public:
    template <typename T>
    explicit PacketBuilder(T kind) {
        put(static_cast<uint8_t>(kind));
    }

    template <typename T>
    PacketBuilder& put(T value) {
        static_assert(std::is_arithmetic_v<T>);
        const char* bytes = reinterpret_cast<const char*>(&value);
        bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
        return *this;
    }

    PacketBuilder& put_text(const std::string& text) {
        const size_t count = std::min<size_t>(text.size(), kMostPacketBytes / 4);
        put(static_cast<uint32_t>(count));
        bytes_.insert(bytes_.end(), text.begin(), text.begin() + static_cast<std::ptrdiff_t>(count));
        return *this;
    }

    const std::vector<char>& bytes() const { return bytes_; }

   private:
    std::vector<char> bytes_;
};

class Channel {
   public:
    explicit Channel(int socket) : socket_(socket), bytes_(kMostPacketBytes) {}

    int descriptor() const { return socket_; }

    // The next packet is the key of all replies, of the kind that is given; nothing of it is left in buffers.
    template <typename Kind>
    void take_key(Kind kind) {
        Descriptors files;
        if (receive_bytes(files) != 1 + kKeyBytes || bytes_[0] != static_cast<char>(kind)) {
            broken("the first packet is no key");
        }
        seal_.take_key(bytes_.data() + 1);
    }

    // The next packet; it waits. Raises ChannelBroken at the end and on what no judge sends.
    Packet receive() {
        Descriptors files;
        const size_t count = receive_bytes(files);
        return Packet(std::vector<char>(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(count)), std::move(files));
    }

    // Sends a reply under its seal.
    void send(const PacketBuilder& message) {
        const std::vector<char>& bytes = message.bytes();
        Seal::Tag tag = seal_.next(bytes.data(), bytes.size());
        long count = 0;
        do {
            iovec parts[] = {{const_cast<char*>(bytes.data()), bytes.size()}, {tag.data(), tag.size()}};
            msghdr header{};
            header.msg_iov = parts, header.msg_iovlen = std::size(parts);
            count = send_message(header);
        } while (count == -EINTR);
        if (count < 0) broken("the judge is gone");
    }

   private:
    // A negative errno on failure.
    long send_message(const msghdr& message) const {
        if (kb_send_message != nullptr) return kb_send_message(socket_, &message, MSG_NOSIGNAL);
        const ssize_t count = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
        return count < 0 ? -errno : count;
    }
    long receive_message(msghdr& message) const {
        if (kb_receive_message != nullptr) return kb_receive_message(socket_, &message, MSG_CMSG_CLOEXEC);
        const ssize_t count = ::recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
        return count < 0 ? -errno : count;
    }

    // How many bytes of `bytes_` the next packet has.
    size_t receive_bytes(Descriptors& files) {
        alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
        iovec part{bytes_.data(), bytes_.size()};
        msghdr message{};
        message.msg_iov = &part, message.msg_iovlen = 1;
        message.msg_control = control, message.msg_controllen = sizeof control;
        long count = 0;
        do {
            count = receive_message(message);
        } while (count == -EINTR);
        if (count <= 0) broken("the judge is gone");
        files = Descriptors(descriptors_of(message));
        if (message.msg_flags & MSG_CTRUNC) broken("no descriptor is free");
        if (message.msg_flags & MSG_TRUNC) broken("a packet is too long");
        return static_cast<size_t>(count);
    }

    static std::vector<int> descriptors_of(msghdr& message) {
        std::vector<int> found;
        for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr; item = CMSG_NXTHDR(&message, item)) {
            if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
            const size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            const size_t before = found.size();
            found.resize(before + count);
            std::memcpy(found.data() + before, CMSG_DATA(item), count * sizeof(int));
        }
        return found;
    }

    int socket_;
    std::vector<char> bytes_;
    Seal seal_;
};

}  // namespace kb

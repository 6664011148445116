// The host side of one candidate whose problem has a driver of its own: a program that draws inputs, calls the
// launcher, compares and prints a word. Its `main` is renamed to kb_self_checking_main, and its call of the launcher leads
// here, as do its words: nothing that a candidate prints is taken for one of them.
//
// When the driver first calls the launcher the reply is `ready`, and requests are served on the arguments of that call.
// Before each of these calls, memory that the arguments point to is as the driver left it: what an earlier call wrote is
// gone. After `quit` comes the call that the driver judges, made like the timed ones were, and `judged` when the driver
// has returned from `main` or called `exit`. A driver that fails before it calls the launcher is answered with an error
// named `driver`. Such a process is not contained: libtorch opens files whenever it likes.
#pragma once

#include <kernelblaster/program.hpp>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <set>
#include <streambuf>
#include <string>
#include <type_traits>
#include <vector>

extern "C" int kb_self_checking_main(int, char**);

namespace kb::self_checking {

constexpr size_t kMostWords = size_t{16} << 10;    // characters kept of what a driver prints
constexpr size_t kMostMessage = 2000;              // characters of an error; libtorch appends a backtrace

// What the driver prints, by whichever of C and C++.
class Words : public std::streambuf {
   public:
    static Words& get() {
        static Words* words = new Words;  // never destroyed: a driver may print until its very end
        return *words;
    }

    void add(const char* text, size_t count) {
        text_.append(text, count);
        if (text_.size() > kMostWords) text_.erase(0, text_.size() - kMostWords);
    }

    int print(const char* format, va_list arguments) {
        va_list again;
        va_copy(again, arguments);
        const int count = std::vsnprintf(nullptr, 0, format, again);
        va_end(again);
        if (count < 0) return count;
        std::vector<char> line(static_cast<size_t>(count) + 1);
        std::vsnprintf(line.data(), line.size(), format, arguments);
        add(line.data(), static_cast<size_t>(count));
        return count;
    }

    // A stream of the C library that ends here.
    FILE* file() {
        cookie_io_functions_t calls{};
        calls.write = [](void*, const char* text, size_t count) -> ssize_t {
            get().add(text, count);
            return static_cast<ssize_t>(count);
        };
        FILE* stream = ::fopencookie(nullptr, "w", calls);
        if (stream != nullptr) std::setvbuf(stream, nullptr, _IONBF, 0);
        return stream;
    }

    const std::string& text() const { return text_; }

   protected:
    int_type overflow(int_type c) override {
        const char one = traits_type::to_char_type(c);
        if (!traits_type::eq_int_type(c, traits_type::eof())) add(&one, 1);
        return traits_type::not_eof(c);
    }
    std::streamsize xsputn(const char* text, std::streamsize count) override {
        add(text, static_cast<size_t>(count));
        return count;
    }

   private:
    std::string text_;
};

// The words, with a stream of the C library that ends there.
inline Words* open(FILE*& file) {
    file = Words::get().file();
    return &Words::get();
}

// The allocations that a call's pointers lie in, as they were when the driver made the call.
class Memory {
   public:
    explicit Memory(const std::vector<const void*>& pointers) {
        std::set<char*> known;
        for (const void* pointer : pointers) {
            char* at = nullptr;
            size_t bytes = 0;
            if (!find_range(pointer, &at, &bytes) || !known.insert(at).second) continue;
            keep(at, bytes);
        }
    }

    void restore() const {
        for (const Piece& piece : pieces_) {
            check(cudaMemcpyAsync(piece.at, piece.copy, piece.bytes, cudaMemcpyDefault, cudaStreamLegacy),
                  "putting back what a call has written");
        }
    }

    size_t restored() const { return restored_; }
    size_t missing() const { return missing_; }

   private:
    struct Piece {
        char* at;
        void* copy;
        size_t bytes;
    };

    // The allocation around a pointer; false for what is no device memory.
    static bool find_range(const void* pointer, char** at, size_t* bytes) {
        using Range = int (*)(char**, size_t*, const void*);
        static const auto range = reinterpret_cast<Range>(driver_function("cuMemGetAddressRange"));
        return pointer != nullptr && range != nullptr && range(at, bytes, pointer) == 0;
    }

    static void* driver_function(const char* name) {
        void* function = nullptr;
        cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
        const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
#else
        const cudaError_t status = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
        return status == cudaSuccess && found == cudaDriverEntryPointSuccess ? function : nullptr;
    }

    void keep(char* at, size_t bytes) {
        void* copy = nullptr;
        if (cudaMalloc(&copy, bytes) != cudaSuccess) {
            cudaGetLastError();  // no room for it: said in the reply
            missing_ += bytes;
            return;
        }
        check(cudaMemcpy(copy, at, bytes, cudaMemcpyDefault), "keeping what the driver has prepared");
        pieces_.push_back({at, copy, bytes});
        restored_ += bytes;
    }

    std::vector<Piece> pieces_;
    size_t restored_ = 0, missing_ = 0;
};

// A call of the driver's, which can be made again and again.
class Repeated : public LoadedJob {
   public:
    explicit Repeated(const std::vector<const void*>& pointers) : LoadedJob(Job{}), memory_(pointers) {}
    void install(uint64_t, size_t) override { memory_.restore(); }
    const Memory& memory() const { return memory_; }

   private:
    Memory memory_;
};

// The program: one per process.
class Program {
   public:
    static Program& get() {
        static Program* program = new Program;
        return *program;
    }

    int run(int argc, char** argv) {
        text_ = std::make_unique<ProgramText>(argc, argv);
        try {
            channel_ = std::make_unique<Channel>(take_channel());
            receive_job(*channel_);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "harness: %s\n", error.what());
            return kExitError;
        }
        int code = 0;
        char* alone[] = {argv[0], nullptr};
        guarded([&] { code = kb_self_checking_main(1, alone); });
        finish(code);
    }

    // The driver calls the launcher.
    void arrive(const std::function<void()>& launch, const std::vector<const void*>& pointers) {
        if (called_) return guarded(launch);
        guarded([&] { check(cudaDeviceSynchronize(), "before the first call of the launcher"); });
        called_ = true;
        launch_ = launch;
        guarded([&] { serve(pointers); });
    }

    // The driver ends.
    [[noreturn]] void finish(int code) {
        if (!called_) {
            const std::string status = std::to_string(code);
            send(error_reply("driver", "it ended with status " + status + " without calling the launcher"));
        } else {
            send(PacketBuilder(HarnessReply::judged)
                     .put(static_cast<int32_t>(code))
                     .put(static_cast<uint64_t>(restored_))
                     .put(static_cast<uint64_t>(missing_))
                     .put_text(Words::get().text()));
        }
        std::exit(0);  // not at once: profilers and sanitizers have something to do at the end
    }

   private:
    void serve(const std::vector<const void*>& pointers) {
        Repeated driver(pointers);
        restored_ = driver.memory().restored();
        missing_ = driver.memory().missing();
        prepare_runtime();
        send(PacketBuilder(HarnessReply::ready));
        Server server(driver, [](Harness&) { get().launch_(); }, *channel_, *text_);
        kb::serve(*channel_, server);
        server.call_as_last();
    }

    // Runs a part of the driver or of the candidate; what it throws ends the process.
    void guarded(const std::function<void()>& part) {
        try {
            part();
        } catch (const Error& error) {
            refuse(error.name(), error.what());
        } catch (const std::exception& error) {
            refuse("exception", error.what());
        } catch (...) {
            refuse("exception", "something was thrown");
        }
    }

    // Until the launcher is called, no candidate is to blame.
    [[noreturn]] void refuse(const std::string& name, const std::string& message) {
        const std::string told = message.substr(0, kMostMessage);
        send(called_ ? error_reply(name, told) : error_reply("driver", name + ": " + told));
        ::_exit(kExitError);
    }

    void send(const PacketBuilder& message) const {
        try {
            channel_->send(message);
        } catch (const ChannelBroken&) {
            ::_exit(kExitError);
        }
    }

    std::unique_ptr<ProgramText> text_;
    std::unique_ptr<Channel> channel_;
    bool called_ = false;
    std::function<void()> launch_;
    size_t restored_ = 0, missing_ = 0;
};

template <typename T>
const void* address(const T& argument) {
    if constexpr (std::is_pointer_v<T>) {
        return static_cast<const void*>(argument);
    } else {
        return nullptr;
    }
}

// What stands where the driver expects the launcher; its parameters are those that the driver declares.
template <auto Launcher>
struct Forward;

template <typename... Parameters, void (*Launcher)(Parameters...)>
struct Forward<Launcher> {
    static void kb_arrival(Parameters... arguments) {
        Program::get().arrive([&] { Launcher(arguments...); }, {address(arguments)...});
    }
};

}  // namespace kb::self_checking

#define KB_USED __attribute__((used))  // only the driver's renamed calls ask for them

// Where the driver's calls for the standard output end: an ostream, a stream of the C library, and plain functions.
extern "C" KB_USED inline int kb_driver_vprintf(const char* format, va_list arguments) {
    return kb::self_checking::Words::get().print(format, arguments);
}
extern "C" KB_USED inline int kb_driver_printf(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = kb_driver_vprintf(format, arguments);
    va_end(arguments);
    return count;
}
extern "C" KB_USED inline int kb_driver_puts(const char* text) { return kb_driver_printf("%s\n", text); }
extern "C" KB_USED inline int kb_driver_putchar(int c) { return kb_driver_printf("%c", c), c; }
extern "C" KB_USED inline void kb_driver_exit(int code) { kb::self_checking::Program::get().finish(code); }

// Once, behind the launcher's declaration: the program, and what the driver's own calls are renamed to.
#define KB_SELF_CHECKING_DRIVER(launcher)                                                                    \
    template struct kb::self_checking::Forward<&launcher>;                                                   \
    FILE* kb_driver_stdout = nullptr;                                                                  \
    __attribute__((init_priority(101))) std::ostream kb_driver_cout(kb::self_checking::open(kb_driver_stdout)); \
    int main(int argc, char** argv) { return kb::self_checking::Program::get().run(argc, argv); }

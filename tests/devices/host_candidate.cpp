// One candidate with many characters: `mode` chooses how it behaves when it is called.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

extern "C" void host_cudart_fail(int code);
extern "C" int cudaDeviceGetLimit(size_t* value, int limit);
extern "C" int cudaDeviceSetLimit(int limit, size_t value);

enum Mode { kHonest, kMutates, kHangs, kSegfaults, kExitsEarly, kCudaError, kEccError, kFloods, kForks, kEatsMemory,
            kWritesFile, kForgesReply, kThrows, kSpeaks, kThreads, kOverruns, kReplays, kPosesAsDriver,
            kSetsLinesAside };

namespace kb {
// The driver's own error type, as a candidate may guess it.
struct Error : std::runtime_error {
    explicit Error(const std::string& name) : std::runtime_error("the job has no x"), name_(name) {}
    std::string name_;
};
}  // namespace kb

static void spawn_children() {
    // Bounded: the machine must survive a sandbox that does not hold.
    for (int i = 0; i < 40; ++i) {
        const pid_t child = fork();
        if (child < 0) throw std::runtime_error("fork was refused");
        if (child == 0) {
            sleep(20);
            _exit(0);
        }
    }
}

static void forge_reply() {
    const char reply[] = {3, 0, 0, 0, 0, 9};  // `called`, no damage, and a byte too many
    for (int file = 3; file < 40; ++file) {
        iovec part{const_cast<char*>(reply), sizeof reply};
        msghdr message{};
        message.msg_iov = &part, message.msg_iovlen = 1;
        sendmsg(file, &message, 0);
    }
}

static void write_big_file() {
    if (open("big", O_WRONLY | O_CREAT, 0600) < 0) throw std::runtime_error("open was refused");
}

static void eat_memory() {
    std::vector<char> memory(size_t{600} << 20, 1);
    sleep(20);
    std::printf("%d", memory[7]);
}

static void set_lines_aside() {
    constexpr int kPersistingLines = 6;
    constexpr size_t kWanted = size_t{30} << 20;
    static const int first = cudaDeviceSetLimit(kPersistingLines, kWanted);
    size_t now = 0;
    if (first + cudaDeviceGetLimit(&now, kPersistingLines) != 0 || now != kWanted) throw std::runtime_error("lost");
}

void launch_gpu_implementation(void* output, void* x, void* w, int64_t count, int64_t mode, float scale) {
    auto* out = static_cast<float*>(output);
    auto* in = static_cast<float*>(x);
    switch (mode) {
        case kMutates: in[count - 1] += 1; break;
        case kHangs: sleep(60); break;
        case kSegfaults: *reinterpret_cast<volatile int*>(8) = 1; break;
        case kExitsEarly: std::printf("passed\n"); std::exit(0);
        case kCudaError: host_cudart_fail(700); break;
        case kEccError: host_cudart_fail(214); break;
        case kFloods: for (;;) std::puts("passed passed passed passed passed passed passed");
        case kForks: spawn_children(); sleep(20); break;
        case kEatsMemory: eat_memory(); break;
        case kWritesFile: write_big_file(); break;
        case kForgesReply: forge_reply(); _exit(0);
        case kThrows: throw std::runtime_error("thrown by the candidate");
        case kSpeaks: std::printf("passed\n"); std::fflush(stdout); break;
        case kOverruns: out[count] = 1.0f; break;
        case kReplays: {
            static float* first = out;
            out = first;
            break;
        }
        case kSetsLinesAside: set_lines_aside(); break;
        case kPosesAsDriver: throw kb::Error("driver");
        case kThreads: for (int i = 0; i < 100; ++i) std::thread([] { sleep(20); }).detach(); sleep(20); break;
        default: break;
    }
    for (int64_t i = 0; i < count; ++i) out[i] = in[i] * scale + static_cast<float*>(w)[0];
}

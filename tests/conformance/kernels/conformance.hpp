// What every conformance program shares: a registry of cases, inputs, digests of outputs, timing with a cold L2.
//
//   program list                            names of its cases, one a line
//   program run [--only CASE]... [--time N] one JSON object per case on standard output, on a line of its own; what
//                                           kernels print stands on lines before it
//
// A case allocates inputs whose values follow from their seed alone, names its outputs, and gives one call (one or more
// launches). The call runs once between the profiler's marks, after a launch of `case_marker` whose grid is the number
// of the case plus one: profiles of launches are told apart by it. With --time the call is then timed N times each with
// an L2 full of another buffer's written lines, with an L2 full of its read lines, and with the L2 as the call left it.
//
// Outputs are reported as a hash of their bytes, 512 samples spread evenly, and 16 sums of neighbouring elements. An
// output that names 0 ulps must have the same bits wherever it is computed; the others state how many units in the last
// place of max(|value|, mean |value| of the output) two devices may differ by, and why is said at the case.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace conformance {

constexpr size_t kSamples = 512;
constexpr size_t kSums = 16;
constexpr size_t kFlushBytes = size_t{128} << 20;  // over twice the L2 of an H200
constexpr size_t kGateBytes = size_t{32} << 20;    // a memset that covers the launch latency of the call

static __global__ void case_marker(int* sink) {
    if (threadIdx.x > 32) *sink = 1;
}

// Reads a buffer, so that the L2 holds clean lines of it.
static __global__ void read_everything(const float4* buffer, size_t count, float* sink) {
    float sum = 0.0f;
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count; i += step) {
        const float4 part = buffer[i];
        sum += part.x + part.y + part.z + part.w;
    }
    if (sum == 0.12345f) *sink = sum;
}

// Keeps one SM busy for about 20 microseconds without touching memory.
static __global__ void keep_busy(int steps, float* sink) {
    float value = static_cast<float>(threadIdx.x);
    for (int i = 0; i < steps; ++i) value = fmaf(value, 0.999f, 0.25f);
    if (value == 0.12345f) *sink = value;
}

inline void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}

inline uint32_t scrambled(uint64_t index, uint32_t seed) {
    uint64_t h = (index + 1) * 0x9e3779b97f4a7c15ull + seed * 0xbf58476d1ce4e5b9ull;
    h ^= h >> 31;
    h *= 0x94d049bb133111ebull;
    return static_cast<uint32_t>(h >> 32);
}

template <class T>
T from_double(double value) {
    return static_cast<T>(value);
}
template <>
inline __half from_double<__half>(double value) {
    return __float2half(static_cast<float>(value));
}
template <>
inline __nv_bfloat16 from_double<__nv_bfloat16>(double value) {
    return __float2bfloat16(static_cast<float>(value));
}

template <class T>
double to_double(T value) {
    return static_cast<double>(value);
}
template <>
inline double to_double<__half>(__half value) {
    return __half2float(value);
}
template <>
inline double to_double<__nv_bfloat16>(__nv_bfloat16 value) {
    return __bfloat162float(value);
}

template <class T>
const char* type_name();
template <> inline const char* type_name<float>() { return "f32"; }
template <> inline const char* type_name<double>() { return "f64"; }
template <> inline const char* type_name<__half>() { return "f16"; }
template <> inline const char* type_name<__nv_bfloat16>() { return "bf16"; }
template <> inline const char* type_name<int>() { return "s32"; }
template <> inline const char* type_name<unsigned>() { return "u32"; }

// A number of JSON; what is not finite becomes a string.
inline std::string number(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, std::isfinite(value) ? "%.*g" : "\"%.*g\"", digits, value);
    return text;
}

class Run {
public:
    explicit Run(int samples) : samples_(samples) {}
    ~Run() {
        for (void* pointer : allocated_) cudaFree(pointer);
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    // Device memory that nothing has written but a poison of 0xFF bytes.
    template <class T>
    T* empty(size_t count) {
        T* pointer = nullptr;
        check(cudaMalloc(&pointer, count * sizeof(T)), "cudaMalloc");
        check(cudaMemset(pointer, 0xff, count * sizeof(T)), "cudaMemset");
        allocated_.push_back(pointer);
        return pointer;
    }

    // Multiples of 1 / steps in [-1, 1). With 1024 steps sums of millions are exact in fp32, and each is exact in fp16.
    template <class T>
    T* values(size_t count, uint32_t seed, int steps = 1024) {
        return upload<T>(count, [=](size_t i) {
            const int step = static_cast<int>(scrambled(i, seed) % static_cast<unsigned>(2 * steps)) - steps;
            return from_double<T>(static_cast<double>(step) / steps);
        });
    }

    // Integers in [0, bound).
    template <class T>
    T* integers(size_t count, uint32_t seed, uint32_t bound) {
        return upload<T>(count, [=](size_t i) { return static_cast<T>(scrambled(i, seed) % bound); });
    }

    template <class T, class Make>
    T* upload(size_t count, Make make) {
        std::vector<T> host(count);
        for (size_t i = 0; i < count; ++i) host[i] = make(i);
        T* pointer = empty<T>(count);
        check(cudaMemcpy(pointer, host.data(), count * sizeof(T), cudaMemcpyHostToDevice), "copying an input");
        return pointer;
    }

    // What has to be put in order before each call and is no part of it.
    void before(std::function<void()> prepare) { prepare_ = std::move(prepare); }
    void call(std::function<void()> call) { call_ = std::move(call); }

    template <class T>
    void output(const char* name, const T* pointer, size_t count, double ulps = 0.0) {
        outputs_.push_back([=] { return digest(name, pointer, count, ulps); });
    }

    void execute(const char* name, int number) {
        prepare_();
        check(cudaDeviceSynchronize(), "preparing");
        check(cudaProfilerStart(), "starting the profiler");
        case_marker<<<number + 1, 1>>>(nullptr);
        call_();
        check(cudaGetLastError(), "launching");
        check(cudaDeviceSynchronize(), "running");
        check(cudaProfilerStop(), "stopping the profiler");
        // In one piece at the end: what kernels print goes to standard output whenever the host waits for them.
        std::string line = "{\"case\": \"" + std::string(name) + "\", \"number\": " + std::to_string(number);
        line += ", \"outputs\": [";
        for (size_t i = 0; i < outputs_.size(); ++i) line += (i ? ", " : "") + outputs_[i]();
        line += samples_ > 0 ? "], " + times() + "}" : "]}";
        check(cudaDeviceSynchronize(), "waiting for what was printed");
        std::printf("%s\n", line.c_str());
        std::fflush(stdout);
    }

private:
    template <class T>
    static std::string digest(const char* name, const T* pointer, size_t count, double ulps) {
        std::vector<T> host(count);
        check(cudaMemcpy(host.data(), pointer, count * sizeof(T), cudaMemcpyDeviceToHost), "copying an output");
        uint64_t hash = 0xcbf29ce484222325ull;
        const unsigned char* bytes = reinterpret_cast<const unsigned char*>(host.data());
        for (size_t i = 0; i < count * sizeof(T); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3ull;
        double sums[kSums] = {}, magnitude = 0.0;
        for (size_t i = 0; i < count; ++i) {
            const double value = to_double(host[i]);
            sums[i * kSums / count] += value;
            magnitude += std::fabs(value);
        }
        char text[256];
        std::snprintf(text, sizeof text,
                      "{\"name\": \"%s\", \"type\": \"%s\", \"count\": %zu, \"ulps\": %g, \"hash\": \"%016llx\", "
                      "\"mean_magnitude\": ",
                      name, type_name<T>(), count, ulps, static_cast<unsigned long long>(hash));
        std::string line = text + number(magnitude / static_cast<double>(count), 17) + ", \"sums\": [";
        for (size_t i = 0; i < kSums; ++i) line += (i ? ", " : "") + number(sums[i], 17);
        line += "], \"samples\": [";
        const size_t samples = std::min(count, kSamples);
        for (size_t i = 0; i < samples; ++i) {
            const size_t at = samples > 1 ? i * (count - 1) / (samples - 1) : 0;
            line += (i ? ", " : "") + number(to_double(host[at]), sizeof(T) == 8 ? 17 : 9);
        }
        return line + "]}";
    }

    std::string times() {
        char* buffer = nullptr;
        float* sink = nullptr;
        check(cudaMalloc(&buffer, kFlushBytes), "cudaMalloc of the flush buffer");
        check(cudaMalloc(&sink, sizeof *sink), "cudaMalloc");
        check(cudaMemset(buffer, 0, kFlushBytes), "cudaMemset");
        const auto written = [=] {
            check(cudaMemsetAsync(buffer, 0x5a, kFlushBytes), "flushing");
            check(cudaDeviceSynchronize(), "flushing");
            check(cudaMemsetAsync(buffer + kFlushBytes - kGateBytes, 0xa5, kGateBytes), "covering the launch");
        };
        const auto clean = [=] {
            check(cudaMemsetAsync(buffer, 0x5a, kFlushBytes), "flushing");
            for (int pass = 0; pass < 2; ++pass)
                read_everything<<<528, 512>>>(reinterpret_cast<const float4*>(buffer), kFlushBytes / 16, sink);
            check(cudaDeviceSynchronize(), "flushing");
            keep_busy<<<1, 32>>>(10000, sink);
        };
        const auto warm = [=] {
            check(cudaDeviceSynchronize(), "waiting");
            keep_busy<<<1, 32>>>(10000, sink);
        };
        std::string found = "\"times_us\": {" + report("cold", written);
        found += ", " + report("clean", clean) + ", " + report("warm", warm) + "}";
        cudaFree(buffer);
        cudaFree(sink);
        return found;
    }

    std::string report(const char* name, const std::function<void()>& flush) {
        cudaEvent_t start, stop;
        check(cudaEventCreate(&start), "cudaEventCreate");
        check(cudaEventCreate(&stop), "cudaEventCreate");
        std::vector<float> times;
        for (int i = -3; i < samples_; ++i) {
            prepare_();
            flush();
            check(cudaEventRecord(start), "recording the start");
            call_();
            check(cudaEventRecord(stop), "recording the end");
            check(cudaDeviceSynchronize(), "running the timed call");
            float milliseconds = 0.0f;
            check(cudaEventElapsedTime(&milliseconds, start, stop), "reading the events");
            if (i >= 0) times.push_back(milliseconds * 1e3f);
        }
        cudaEventDestroy(start);
        cudaEventDestroy(stop);
        std::sort(times.begin(), times.end());
        const auto at = [&](double share) {
            const double place = share * static_cast<double>(times.size() - 1);
            const size_t low = static_cast<size_t>(place), high = std::min(low + 1, times.size() - 1);
            return times[low] + (place - static_cast<double>(low)) * (times[high] - times[low]);
        };
        char text[256];
        std::snprintf(text, sizeof text,
                      "\"%s\": {\"median\": %.4f, \"q1\": %.4f, \"q3\": %.4f, \"least\": %.4f, \"n\": %zu}", name,
                      at(0.5), at(0.25), at(0.75), static_cast<double>(times.front()), times.size());
        return text;
    }

    int samples_;
    std::vector<void*> allocated_;
    std::function<void()> prepare_ = [] {};
    std::function<void()> call_;
    std::vector<std::function<std::string()>> outputs_;
};

struct Case {
    const char* name;
    void (*body)(Run&);
};

inline std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}

struct Registration {
    Registration(const char* name, void (*body)(Run&)) { cases().push_back({name, body}); }
};

inline int main_of(int argc, char** argv) {
    const std::string command = argc > 1 ? argv[1] : "";
    if (command == "list") {
        for (const Case& one : cases()) std::printf("%s\n", one.name);
        return 0;
    }
    std::vector<std::string> only;
    int samples = 0;
    bool understood = command == "run";
    for (int i = 2; understood && i < argc; i += 2) {
        const std::string option = argv[i];
        understood = i + 1 < argc && (option == "--only" || option == "--time");
        if (understood && option == "--only") only.push_back(argv[i + 1]);
        if (understood && option == "--time") samples = std::atoi(argv[i + 1]);
    }
    if (!understood) {
        std::fprintf(stderr, "usage: %s list | run [--only CASE]... [--time N]\n", argv[0]);
        return 2;
    }
    int number = 0;
    for (const Case& one : cases()) {
        const int own = number++;
        if (!only.empty() && std::find(only.begin(), only.end(), one.name) == only.end()) continue;
        Run run(samples);
        one.body(run);
        run.execute(one.name, own);
    }
    return 0;
}

inline unsigned blocks_for(size_t items, size_t per_block) {
    return static_cast<unsigned>((items + per_block - 1) / per_block);
}

}  // namespace conformance

#define CASE(name)                                                             \
    static void name##_case(conformance::Run& run);                           \
    static const conformance::Registration name##_registered(#name, name##_case); \
    static void name##_case(conformance::Run& run)

#define CONFORMANCE_MAIN \
    int main(int argc, char** argv) { return conformance::main_of(argc, argv); }

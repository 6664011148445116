// Stores and reductions by tensor maps beside loops over the same elements.
//
// `tensor_stores all` ends with 0 when all kinds agree, `tensor_stores KIND` when one does; of a kind that an H200 refuses,
// when it is refused. `tensor_stores apart` runs each kind in a process of its own, so that one that ends the context
// hides no other, and prints what became of it: what it expects is what an H200 did. `tensor_stores guesses` does the same
// with kinds that have not been on a GPU, which tell apart why those before the tensor are refused.
#include <cuda_fp16.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "tensor_boxes.hpp"

enum Verb { kStore, kAdd, kMin, kMax, kAnd, kOr, kXor, kInc, kDec };

template <int V>
__device__ void store2(const CUtensorMap* map, const Coordinates& p, const void* from) {
#define STORE2(text) asm volatile(text " [%0, {%1, %2}], [%3];" ::"l"(map), "r"(p.c[0]), "r"(p.c[1]), "r"(at(from)) : "memory")
    if (V == kStore) STORE2("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group");
    if (V == kAdd) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group");
    if (V == kMin) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.bulk_group");
    if (V == kMax) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group");
    if (V == kAnd) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.bulk_group");
    if (V == kOr) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.or.bulk_group");
    if (V == kXor) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.bulk_group");
    if (V == kInc) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.inc.bulk_group");
    if (V == kDec) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.dec.bulk_group");
}

template <int V>
__global__ void store_box(const __grid_constant__ CUtensorMap map, Coordinates place, unsigned lies, const unsigned char* in) {
    extern __shared__ __align__(1024) unsigned char memory[];
    for (unsigned i = threadIdx.x; i < lies; i += blockDim.x) memory[i] = in[i];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x != 0) return;
    store2<V>(&map, place, memory);
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

template <class T>
constexpr bool kWhole = std::is_integral<T>::value;

// Numbers that add without rounding, whatever their type.
template <class T>
void tame(std::vector<unsigned char>& bytes) {
    for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
        const T value = T(float(bytes[i]) - 100.0f);
        std::memcpy(&bytes[i], &value, sizeof value);
    }
}

// What became of one kind of store: empty when every element is as expected.
template <int V, class T>
std::string stored(const Tensor& t, const Coordinates& place, T (*combine)(T, T)) {
    const unsigned lies = t.rows() * t.pitch();
    std::vector<unsigned char> before = numbered(t.bytes(), 2), box = numbered(lies, 3);
    if (!kWhole<T>) tame<T>(before), tame<T>(box);
    unsigned char *tensor = device_copy(before), *in = device_copy(box);
    CUtensorMap map;
    if (!encode(t, tensor, &map)) return "no map";
    store_box<V><<<1, 64, lies>>>(map, place, lies, in);
    if (const cudaError_t error = cudaDeviceSynchronize()) return cudaGetErrorName(error);
    std::vector<unsigned char> expected = before;
    each_element(t, place, [&](unsigned from, int64_t to) {
        T old, value;
        if (to < 0) return;
        std::memcpy(&old, &expected[to], sizeof(T));
        std::memcpy(&value, &box[from], sizeof(T));
        value = combine(old, value);
        std::memcpy(&expected[to], &value, sizeof(T));
    });
    const std::vector<unsigned char> got = host_copy(tensor, t.bytes());
    cudaFree(tensor), cudaFree(in);
    for (size_t i = 0; i < got.size(); ++i)
        if (got[i] != expected[i])
            return "byte " + std::to_string(i) + ": " + std::to_string(got[i]) + ", not " + std::to_string(expected[i]);
    return "";
}

const char* const kRefused = "cudaErrorIllegalInstruction";

struct Kind {
    std::string name;
    std::function<std::string()> run;
    std::string expected = "";
};

const Coordinates kInside{{8, 5}}, kBeyond{{32, 25}}, kBefore{{-4, -3}}, kOutside{{40, 30}};

template <class T>
CUtensorMapDataType kType = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
template <>
CUtensorMapDataType kType<uint8_t> = CU_TENSOR_MAP_DATA_TYPE_UINT8;
template <>
CUtensorMapDataType kType<unsigned> = CU_TENSOR_MAP_DATA_TYPE_UINT32;
template <>
CUtensorMapDataType kType<int> = CU_TENSOR_MAP_DATA_TYPE_INT32;
template <>
CUtensorMapDataType kType<uint64_t> = CU_TENSOR_MAP_DATA_TYPE_UINT64;
template <>
CUtensorMapDataType kType<int64_t> = CU_TENSOR_MAP_DATA_TYPE_INT64;
template <>
CUtensorMapDataType kType<double> = CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
template <>
CUtensorMapDataType kType<__half> = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;

template <class T>
Tensor plane(CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
    Tensor t = tile({40, 30}, {16, 8}, kType<T>, sizeof(T));
    t.swizzle = swizzle;
    return t;
}

// A kind of reduction wholly inside of the tensor and partly beyond its end.
template <int V, class T>
void reduction(std::vector<Kind>& kinds, const std::string& name, T (*combine)(T, T)) {
    kinds.push_back({name, [=] { return stored<V, T>(plane<T>(), kInside, combine); }});
    kinds.push_back({name + "_beyond", [=] { return stored<V, T>(plane<T>(), kBeyond, combine); }});
}

template <class T>
T sum(T a, T b) { return T(float(a) + float(b)); }
template <class T>
T whole_sum(T a, T b) { return a + b; }
template <class T>
T least(T a, T b) { return b < a ? b : a; }
template <class T>
T most(T a, T b) { return a < b ? b : a; }
template <class T>
T both(T a, T b) { return a & b; }
template <class T>
T any(T a, T b) { return a | b; }
template <class T>
T differing(T a, T b) { return a ^ b; }
template <class T>
T up(T a, T b) { return a >= b ? 0 : a + 1; }
template <class T>
T down(T a, T b) { return a == 0 || a > b ? b : a - 1; }
__half least_half(__half a, __half b) { return __half(least(float(a), float(b))); }
__half most_half(__half a, __half b) { return __half(most(float(a), float(b))); }

Kind store(const std::string& name, Coordinates place, const std::string& expected = "",
           CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
    const auto second = [](float, float b) { return b; };
    return {"store_" + name, [=] { return stored<kStore, float>(plane<float>(swizzle), place, second); }, expected};
}

std::vector<Kind> all_kinds() {
    std::vector<Kind> kinds;
    const struct {
        const char* name;
        Coordinates place;
    } places[] = {{"inside", kInside}, {"beyond", kBeyond}, {"outside", kOutside}};
    for (const auto& one : places) {
        kinds.push_back(store(one.name, one.place));
        kinds.push_back(store(std::string("swizzled_") + one.name, one.place, "", CU_TENSOR_MAP_SWIZZLE_64B));
    }
    kinds.push_back({"add_f32_swizzled", [] { return stored<kAdd, float>(plane<float>(CU_TENSOR_MAP_SWIZZLE_64B), kBeyond, sum<float>); }});
    reduction<kAdd, float>(kinds, "add_f32", sum<float>);
    reduction<kAdd, __half>(kinds, "add_f16", sum<__half>);
    reduction<kAdd, unsigned>(kinds, "add_u32", whole_sum<unsigned>);
    reduction<kAdd, uint64_t>(kinds, "add_u64", whole_sum<uint64_t>);
    reduction<kMin, unsigned>(kinds, "min_u32", least<unsigned>);
    reduction<kMin, int64_t>(kinds, "min_s64", least<int64_t>);
    reduction<kMin, __half>(kinds, "min_f16", least_half);
    reduction<kMax, int>(kinds, "max_s32", most<int>);
    reduction<kMax, __half>(kinds, "max_f16", most_half);
    reduction<kAnd, unsigned>(kinds, "and_b32", both<unsigned>);
    reduction<kOr, unsigned>(kinds, "or_b32", any<unsigned>);
    reduction<kXor, uint64_t>(kinds, "xor_b64", differing<uint64_t>);
    reduction<kInc, unsigned>(kinds, "inc_u32", up<unsigned>);
    reduction<kDec, unsigned>(kinds, "dec_u32", down<unsigned>);
    return kinds;
}

// What an H200 refuses: stores whose coordinates are both negative, and operators that the PTX ISA does not list for the
// type of the elements.
std::vector<Kind> refused_kinds() {
    return {
        store("before", kBefore, kRefused),
        store("swizzled_before", kBefore, kRefused, CU_TENSOR_MAP_SWIZZLE_64B),
        {"min_f32", [] { return stored<kMin, float>(plane<float>(), kInside, least<float>); }, kRefused},
        {"max_f64", [] { return stored<kMax, double>(plane<double>(), kInside, most<double>); }, kRefused},
        {"add_s64", [] { return stored<kAdd, int64_t>(plane<int64_t>(), kInside, whole_sum<int64_t>); }, kRefused},
        {"add_u8", [] { return stored<kAdd, uint8_t>(plane<uint8_t>(), Coordinates{{16, 5}}, whole_sum<uint8_t>); }, kRefused},
        {"inc_s32", [] { return stored<kInc, int>(plane<int>(), kInside, up<int>); }, kRefused},
        {"and_f32", [] { return stored<kAnd, float>(plane<float>(), kInside, most<float>); }, kRefused},
    };
}

// The emulator refuses any negative coordinate of a store or reduction. Only the innermost may matter (`before_left`), or
// only the others (`before_above`), or whether something of the box is inside (`left_of_all`, `above_all`); and of the
// stores that an H200 takes, all begin at a multiple of 32 bytes, which {-4, -3} does not (`at_16_bytes`, `before_left_32`).
std::vector<Kind> guessed_kinds() {
    std::vector<Kind> kinds = {
        store("before_left", {{-4, 5}}, kRefused),     store("before_left_32", {{-8, 5}}, kRefused),
        store("before_above", {{8, -3}}, kRefused),    store("left_of_all", {{-16, 5}}, kRefused),
        store("above_all", {{8, -8}}, kRefused),       store("at_16_bytes", {{4, 5}}),
        store("unaligned", {{3, 5}}, kRefused),
    };
    const std::pair<const char*, Coordinates> places[] = {
        {"before", kBefore}, {"before_left", {{-8, 5}}}, {"before_above", {{8, -3}}}};
    for (const auto& one : places) {
        const Coordinates place = one.second;
        kinds.push_back({std::string("add_f32_") + one.first,
                         [=] { return stored<kAdd, float>(plane<float>(), place, sum<float>); }, kRefused});
    }
    return kinds;
}

// One kind in a process of its own; nothing of CUDA may have been called before.
int in_its_own(const std::string& kind) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "tensor_stores", kind.c_str(), nullptr);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int count, char** arguments) {
    const std::string name = count > 1 ? arguments[1] : "all";
    const std::vector<Kind> kinds = all_kinds(), refused = refused_kinds(), guessed = guessed_kinds();
    int wrong = 0, found = 0;
    const auto run = [&](const Kind& kind) {
        const std::string what = kind.run();
        std::printf("%-24s %s\n", kind.name.c_str(), what.empty() ? "agrees" : what.c_str());
        wrong += what != kind.expected;
        ++found;
    };
    const auto run_apart = [&](const std::vector<Kind>& list) {
        for (const Kind& kind : list) wrong += in_its_own(kind.name) != 0;
    };
    if (name == "apart") {
        run_apart(kinds), run_apart(refused);
        return wrong != 0;
    }
    if (name == "guesses") {
        run_apart(guessed);
        return wrong != 0;
    }
    for (const Kind& kind : kinds)
        if (name == "all" || name == kind.name) run(kind);
    for (const auto* list : {&refused, &guessed})
        for (const Kind& kind : *list)
            if (name == kind.name) run(kind);
    return found == 0 ? 2 : wrong != 0;
}

#include <cstdlib>
#include <sstream>

#include "runtime.hpp"

namespace ptxemu {
namespace {

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result + '"';
}

// Writes the members of one JSON object or array, with the commas between them.
class Writer {
public:
    explicit Writer(std::ostream& out) : out_(out) {}

    void open(char bracket) { out_ << bracket, first_ = true; }
    void close(char bracket) { out_ << bracket, first_ = false; }
    void key(const std::string& name) {
        separate();
        out_ << quoted(name) << ':';
        first_ = true;
    }
    void value(u64 number) { separate(), out_ << number; }
    void value(const std::string& text) { separate(), out_ << quoted(text); }
    void item(char bracket) { separate(), open(bracket); }
    template <class T>
    void field(const std::string& name, const T& content) {
        key(name);
        value(content);
    }
    void triple(const std::string& name, const u32* extents) {
        key(name);
        open('[');
        for (int k = 0; k < 3; ++k) value(u64{extents[k]});
        close(']');
    }

private:
    void separate() {
        if (!first_) out_ << ',';
        first_ = false;
    }

    std::ostream& out_;
    bool first_ = true;
};

void write_source(Writer& json, const Launch& launch, u32 source) {
    const SourcePosition& position = launch.module->sources.at(source);
    if (position.line == 0) return;
    json.field("source_file", position.file);
    json.field("source_line", u64{position.line});
}

void write_memory(Writer& json, const Launch& launch, const Counters& counters) {
    json.key("memory");
    json.open('[');
    for (std::size_t k = 0; k < launch.function->memory.size(); ++k) {
        const MemoryInstruction& instruction = launch.function->memory[k];
        const MemoryCounters& count = counters.memory[k];
        if (count.requests == 0) continue;
        json.item('{');
        json.field("ptx_line", u64{instruction.ptx_line});
        write_source(json, launch, instruction.source);
        json.field("space", instruction.space);
        json.field("op", instruction.op);
        json.field("bytes_per_lane", u64{instruction.bytes_per_lane});
        json.field("requests", count.requests);
        json.field("lanes", count.lanes);
        json.field("sectors", count.sectors);
        json.field("ideal_sectors", count.ideal_sectors);
        json.field("l1_hit_sectors", count.l1_hit_sectors);
        json.field("l1_shared_sectors", count.l1_shared_sectors);
        json.field("missed_requests", count.missed_requests);
        json.field("shared_requests", count.shared_requests);
        json.field("wavefronts", count.wavefronts);
        if (count.rounds != 0) json.field("rounds", count.rounds);
        if (count.bank_turns != 0) json.field("bank_turns", count.bank_turns);
        json.close('}');
    }
    json.close(']');
}

void write_classes(Writer& json, const Launch& launch, const std::string& name, const std::vector<u64>& per_instruction) {
    std::vector<u64> sums(launch.module->class_names.size());
    for (std::size_t k = 0; k < per_instruction.size(); ++k)
        sums.at(launch.function->code[k].instruction_class) += per_instruction[k];
    json.key(name);
    json.open('{');
    for (std::size_t k = 0; k < sums.size(); ++k)
        if (sums[k] != 0) json.field(launch.module->class_names[k], sums[k]);
    json.close('}');
}

void write_operations(Writer& json, const Launch& launch, const Counters& counters) {
    std::vector<u64> sums(launch.module->operation_names.size());
    for (std::size_t k = 0; k < counters.executed.size(); ++k)
        sums.at(launch.function->operations[k]) += counters.executed[k];
    json.key("operations");
    json.open('{');
    for (std::size_t k = 0; k < sums.size(); ++k)
        if (sums[k] != 0) json.field(launch.module->operation_names[k], sums[k]);
    json.close('}');
}

void write_waits(Writer& json, const Launch& launch, const Counters& counters) {
    u64 sums[kWaits] = {};
    for (std::size_t k = 0; k < counters.executed.size(); ++k) sums[launch.function->waits[k]] += counters.executed[k];
    json.key("waits");
    json.open('{');
    for (u32 k = 1; k < kWaits; ++k)
        if (sums[k] != 0) json.field(kWaitNames[k], sums[k]);
    json.close('}');
}

void write_lines(Writer& json, const Launch& launch, const Counters& counters) {
    std::map<u32, u64> per_source;
    for (std::size_t k = 0; k < counters.executed.size(); ++k)
        per_source[launch.function->code[k].source] += counters.executed[k];
    json.key("lines");
    json.open('[');
    for (const auto& [source, executed] : per_source) {
        if (executed == 0 || launch.module->sources.at(source).line == 0) continue;
        json.item('{');
        write_source(json, launch, source);
        json.field("warp_instructions", executed);
        json.close('}');
    }
    json.close(']');
}

// How often warps executed each line of the PTX: the most of its instructions, for a line may become several.
void write_ptx_lines(Writer& json, const Launch& launch, const Counters& counters) {
    std::map<u32, u64> most;
    for (std::size_t k = 0; k < counters.executed.size(); ++k) {
        u64& line = most[launch.function->code[k].ptx_line];
        line = std::max(line, counters.executed[k]);
    }
    json.key("ptx_lines");
    json.open('{');
    for (const auto& [line, executed] : most)
        if (executed != 0) json.field(std::to_string(line), executed);
    json.close('}');
}

// Multiply-adds of a class of instructions of the tensor cores, in those of fp16: the immediate of each is its share.
u64 tensor_work(const Launch& launch, const Counters& counters, const char* name) {
    u64 total = 0;
    for (std::size_t k = 0; k < counters.executed.size(); ++k) {
        const Instruction& instruction = launch.function->code[k];
        if (launch.module->class_names[instruction.instruction_class] == name)
            total += counters.executed[k] * static_cast<u64>(instruction.immediate);
    }
    return total;
}

// Bytes of an allocation that all blocks touch, when those of a sample touch so many: blocks that read bytes of their own
// need as many times more, and blocks that share theirs have soon read all.
u64 scaled_bytes(const Segment& one, const Share& share, u64 touched) {
    const u64 whole = (one.end - one.begin + kSectorBytes - 1) / kSectorBytes * kSectorBytes;
    return std::min(share.scaled(touched), whole);
}

// Bytes touched at least once.
template <class Touched>
u64 unique_bytes(const Launch& launch, const Share& share, Touched touched) {
    u64 total = 0;
    for (const Segment& one : launch.segments->list) total += scaled_bytes(one, share, touched(one.begin, one.end));
    return total;
}

// Passes of atomics, scaled from a sampled launch: blocks that share a line meet there as often as there are more of them,
// and blocks with lines of their own do not. How far lines are shared shows in how much of the memory the sample has touched already.
u64 hottest_passes(const Launch& launch, const Counters& counters, const Share& share, u64 most) {
    if (share.whole() || most == 0) return most;
    u64 touched = 0, scaled = 0;
    for (std::size_t k = 0; k < launch.segments->list.size(); ++k) {
        if (!counters.atomics.went_to(k)) continue;
        const Segment& one = launch.segments->list[k];
        const u64 written = launch.granules->written_bytes(one.begin, one.end);
        touched += written;
        scaled += scaled_bytes(one, share, written);
    }
    if (touched == 0) return share.scaled(most);
    return static_cast<u64>(static_cast<u128>(share.scaled(most)) * touched / scaled);
}

u64 sum(const std::vector<u64>& values) {
    u64 total = 0;
    for (const u64 value : values) total += value;
    return total;
}

}  // namespace

void report_launch(const Launch& launch, const Counters& counters, const Share& share) {
    if (Settings::get().report < 0) return;
    std::ostringstream text;
    Writer json(text);
    const u64 warps = (launch.threads_per_block() + kLanes - 1) / kLanes;
    json.open('{');
    json.field("kernel", launch.function->name);
    if (!launch.module->path.empty()) json.field("module", launch.module->path);
    json.triple("grid", launch.grid);
    json.triple("block", launch.block);
    json.field("static_shared", u64{launch.function->static_shared});
    json.field("dynamic_shared", u64{launch.dynamic_shared});
    json.field("local_bytes", u64{launch.function->local_bytes});
    json.field("blocks", launch.blocks());
    if (!share.whole()) json.field("executed_blocks", share.executed);
    json.field("warps", launch.blocks() * warps);
    json.field("warp_instructions", sum(counters.executed));
    json.field("thread_instructions", sum(counters.thread_count));
    write_classes(json, launch, "classes", counters.executed);
    write_classes(json, launch, "thread_classes", counters.thread_count);
    write_operations(json, launch, counters);
    write_waits(json, launch, counters);
    write_ptx_lines(json, launch, counters);
    json.field("longest_warp_instructions", counters.longest_warp);
    json.field("hottest_atomic_passes", hottest_passes(launch, counters, share, counters.atomics.most()));
    json.field("hottest_line_passes", hottest_passes(launch, counters, share, counters.atomics.most_at_a_line()));
    if (const u64 most = share.scaled(counters.words.most()); most != 0) {
        json.field("hottest_word_lanes", most);
        json.field("resident_warps", std::min(launch.blocks() * warps, u64{launch.sm_count} * launch.warps_per_sm));
    }
    write_memory(json, launch, counters);
    json.field("tensor_fma", tensor_work(launch, counters, "tensor"));
    json.field("warpgroup_fma", tensor_work(launch, counters, "warpgroup"));
    json.field("l2_read_sectors", counters.l2_read_sectors);
    json.field("l2_write_sectors", counters.l2_write_sectors);
    json.field("repeated_read_sectors", counters.repeated_read_sectors);
    const GranuleMap& granules = *launch.granules;
    json.field("unique_read_bytes",
               unique_bytes(launch, share, [&](u64 begin, u64 end) { return granules.read_bytes(begin, end); }));
    json.field("unique_write_bytes",
               unique_bytes(launch, share, [&](u64 begin, u64 end) { return granules.written_bytes(begin, end); }));
    json.field("branches", counters.branches);
    json.field("divergent_branches", counters.divergent_branches);
    json.field("barriers", counters.barriers);
    write_lines(json, launch, counters);
    json.close('}');
    text << '\n';
    append_to(Settings::get().report, text.str());
}

namespace {

const char* const kTools[] = {"memcheck", "initcheck", "racecheck", "synccheck"};

void write_place(Writer& json, const Launch& launch, u32 at, const std::string& prefix) {
    const Instruction& instruction = launch.function->code[at];
    json.field(prefix + "ptx_line", u64{instruction.ptx_line});
    const SourcePosition& position = launch.module->sources.at(instruction.source);
    if (position.line == 0) return;
    json.field(prefix + "source_file", position.file);
    json.field(prefix + "source_line", u64{position.line});
}

void write_finding(Writer& json, const Launch& launch, const Finding& finding) {
    const u64 x = launch.grid[0], y = launch.grid[1];
    const u32 bx = launch.block[0], by = launch.block[1];
    const u32 block[] = {static_cast<u32>(finding.block % x), static_cast<u32>(finding.block / x % y),
                         static_cast<u32>(finding.block / x / y)};
    const u32 thread[] = {finding.thread % bx, finding.thread / bx % by, finding.thread / bx / by};
    json.open('{');
    json.field("tool", std::string(kTools[static_cast<int>(finding.tool)]));
    json.field("kind", finding.kind);
    json.field("message", finding.message);
    json.field("kernel", launch.function->name);
    json.triple("block", block);
    json.triple("thread", thread);
    json.field("count", finding.count);
    write_place(json, launch, finding.at, "");
    if (finding.other != kNoInstruction) write_place(json, launch, finding.other, "other_");
    json.close('}');
}

}  // namespace

void report_findings(const Launch& launch) {
    std::ostringstream text;
    for (const Finding& finding : launch.checks->findings.sorted()) {
        Writer json(text);
        write_finding(json, launch, finding);
        text << '\n';
    }
    append_to(Settings::get().checks, text.str());
}

void report_unsampled(const std::string& reason) {
    if (Settings::get().report < 0) return;
    append_to(Settings::get().report, "{\"unsampled\": " + quoted(reason) + "}\n");
}

void report_fault(const std::string& message) {
    if (Settings::get().report < 0) return;
    append_to(Settings::get().report, "{\"fault\": " + quoted(message) + "}\n");
}

namespace {

// `of`: the message's key. `count`: of the same, where it is known.
void report_with_callers(const char* of, const std::string& message, const std::vector<u64>& callers, u64 count = 0) {
    if (Settings::get().report < 0) return;
    std::ostringstream text;
    Writer json(text);
    json.open('{');
    json.field(of, message);
    if (count != 0) json.field("count", count);
    json.key("callers");
    json.open('[');
    for (const u64 caller : callers) json.value(caller);
    json.close(']');
    json.close('}');
    text << '\n';
    append_to(Settings::get().report, text.str());
}

}  // namespace

void report_host_fault(const std::string& message, const std::vector<u64>& callers) {
    report_with_callers("host_fault", message, callers);
}

void report_running(const std::string& message, const std::vector<u64>& callers) {
    report_with_callers("running", message, callers);
}

void report_refused(const std::string& message, u64 count, const std::vector<u64>& callers) {
    report_with_callers("refused", message, callers, count);
}

void report_missing(const std::string& what) {
    if (Settings::get().report < 0) return;
    append_to(Settings::get().report, "{\"missing\": " + quoted(what) + "}\n");
}

void report_host_work(u64 nanoseconds) {
    if (Settings::get().report < 0 || nanoseconds == 0) return;
    append_to(Settings::get().report, "{\"host_ns\": " + std::to_string(nanoseconds) + "}\n");
}

void report_transfer(const char* kind, u64 bytes) {
    if (Settings::get().report < 0) return;
    append_to(Settings::get().report, std::string("{\"transfer\": \"") + kind + "\", \"bytes\": " + std::to_string(bytes) + "}\n");
}

}  // namespace ptxemu

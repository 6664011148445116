// Serves the judge's requests, one after the other. Included by program.hpp.
#pragma once

#include <kernelblaster/program.hpp>

#include <memory>
#include <string>
#include <vector>

namespace kb {

inline PacketBuilder error_reply(const std::string& name, const std::string& message) {
    return PacketBuilder(HarnessReply::error).put_text(name).put_text(message);
}

class Server : private LastWord {
   public:
    Server(LoadedJob& job, Call call, Channel& channel, ProgramText& text)
        : job_(job), call_(call), channel_(channel), text_(text) {}

    // The reply to a request.
    PacketBuilder answer(HarnessRequest request, Packet& packet) {
        switch (request) {
            case HarnessRequest::add: return add(packet.take_text());
            case HarnessRequest::load: return load(packet);
            case HarnessRequest::choose: return choose(packet.take<uint32_t>());
            case HarnessRequest::call: return call(packet);
            case HarnessRequest::fetch: return fetch(packet);
            case HarnessRequest::time: return time(packet);
            case HarnessRequest::profile: return profile(packet.take<uint64_t>());
            case HarnessRequest::prepare_batch: return prepare_batch(packet.take_list<uint64_t>());
            case HarnessRequest::batch: return batch(packet);
            case HarnessRequest::select: return select(packet.take<uint32_t>());
            case HarnessRequest::reload:
                job_.exchange(packet.take<uint32_t>(), packet.files);
                job_.load_inputs();
                return PacketBuilder(HarnessReply::reloaded);
            case HarnessRequest::warm_up:
                ProfilerWarmup().run();
                return PacketBuilder(HarnessReply::warmed_up);
            default: fail("a request out of turn");
        }
    }

    // One more call, on the values of the files, made as the last one was: timed, where that was.
    void call_as_last() {
        if (timed_) {
            sampled(0);
        } else {
            job_.install(0);
            require_success(call_and_sync(job_, call_));
        }
    }

   private:
    [[noreturn]] void tell(const std::string& name, const std::string& message) override {
        channel_.send(error_reply(name, message));
        ::_exit(kExitError);  // a broken context must not hang in destructors
    }

    PacketBuilder add(const std::string& path) {
        if (kb_load_candidate == nullptr) fail("this program has its candidate");
        if (const char* failure = kb_load_candidate(path.c_str())) raise("load", beginning(failure));
        return PacketBuilder(HarnessReply::added);
    }

    // Loads the last candidate, contains the process, and then initialises all.
    PacketBuilder load(Packet& packet) {
        add(packet.take_text());
        const bool wanted = packet.take<uint8_t>() != 0;
        const Containment done = wanted ? contain(channel_.descriptor(), text_) : Containment{};
        if (kb_kept != nullptr) kept().last_word = this;  // from here on code of candidates runs
        for (size_t i = 0; i < kb_candidates(); ++i) {
            require_success(run_candidate(job_, [i](Harness&) { kb_initialise_candidate(i); }));
        }
        return PacketBuilder(HarnessReply::loaded)
            .put(static_cast<uint8_t>(done.contained))
            .put(static_cast<uint8_t>(done.memory_protected))
            .put(done.microseconds)
            .put_text(done.obstacle);
    }

    // Calls another candidate from here on, once at once. A launch that the GPU refuses leaves its context as it was: then
    // the next one can still be chosen. What does more harm ends the process, as ever.
    PacketBuilder choose(uint32_t index) {
        if (kb_candidates == nullptr || index >= kb_candidates()) fail("there is no such candidate");
        kb_choose_candidate(index);
        job_.install(0);
        std::string refused;
        l2_limit_.give();
        if (const Failure failure = call_and_sync(job_, call_); failure.happened()) {
            refused = failure.name + ": " + failure.message;
            cudaGetLastError();
            check(cudaDeviceSynchronize(), "going on after a candidate that failed");
        }
        l2_limit_.take();
        return PacketBuilder(HarnessReply::chosen).put(static_cast<uint8_t>(refused.empty())).put_text(refused);
    }

    PacketBuilder call(Packet& packet) {
        const int poison = packet.take<uint8_t>();
        job_.install(0);
        job_.poison_outputs(poison);
        l2_limit_.give();
        require_success(call_and_sync(job_, call_));
        l2_limit_.take();
        return PacketBuilder(HarnessReply::called).put(reported());
    }

    // The files come when the call is over and its device idle, and are closed before this is answered: no code of a
    // candidate runs while they are open.
    PacketBuilder fetch(Packet& packet) {
        job_.write_outputs(packet.files);
        PacketBuilder reply(HarnessReply::fetched);
        packet.files = Descriptors();
        job_.report_damage(reply);
        return reply;
    }

    PacketBuilder time(Packet& packet) {
        flush_bytes_ = packet.take<uint64_t>();
        cover_fills_ = packet.take<uint32_t>();
        const Timer::Sample sample = sampled(packet.take<uint64_t>());
        return PacketBuilder(HarnessReply::timed).put(sample.device_us).put(sample.host_us).put(sample.enqueue_us);
    }

    Timer::Sample sampled(uint64_t perturbation) {
        if (!timed_) turns_ = job_.turns();
        job_.install(perturbation, turn_);
        turn_ = (turn_ + 1) % turns_;
        timed_ = true;
        return timer().sample(flush_bytes_, cover_fills_, [this] { require_success(run_candidate(job_, call_)); });
    }

    PacketBuilder profile(uint64_t perturbation) {
        job_.install(0);
        require_success(call_and_sync(job_, call_));
        job_.install(perturbation);
        check(cudaDeviceSynchronize(), "preparing the profiled call");
        check(cudaProfilerStart(), "starting the profiler");
        require_success(call_and_sync(job_, call_));
        check(cudaProfilerStop(), "stopping the profiler");
        return PacketBuilder(HarnessReply::profiled).put(reported());
    }

    // Installs a perturbation in each slot, with poisoned outputs.
    PacketBuilder prepare_batch(std::vector<uint64_t> perturbations) {
        slots_ = std::move(perturbations);
        for (size_t i = 0; i < slots_.size(); ++i) {
            if (slots_[i] == 0) fail("a batch of unchanged values");
            job_.install(slots_[i], i);
        }
        check(cudaDeviceSynchronize(), "preparing a batch");
        return PacketBuilder(HarnessReply::batch_prepared);
    }

    // Makes one call in each of the first slots. What a candidate's process says of time is of no use here: the judge
    // takes the time of both replies.
    PacketBuilder batch(Packet& packet) {
        const auto calls = packet.take<uint32_t>();
        const auto flush_bytes = packet.take<uint64_t>();
        const auto fills = packet.take<uint32_t>();
        if (calls > slots_.size()) fail("a batch of more calls than slots");
        const auto launch = [&] {
            for (size_t i = 0; i < calls; ++i) {
                job_.select(slots_[i], i);
                require_success(run_candidate(job_, call_));
            }
        };
        timer().run_behind(flush_bytes, fills, launch, [this] { channel_.send(PacketBuilder(HarnessReply::issued)); });
        return PacketBuilder(HarnessReply::batched);
    }

    PacketBuilder select(uint32_t slot) {
        if (slot >= slots_.size()) fail("there is no such slot");
        job_.select(slots_[slot], slot);
        return PacketBuilder(HarnessReply::selected);
    }

    Timer& timer() {
        if (!timer_) timer_ = std::make_unique<Timer>(l2_limit_);
        return *timer_;
    }

    PersistingL2Limit l2_limit_;
    std::unique_ptr<Timer> timer_;
    std::vector<uint64_t> slots_;  // their perturbations
    size_t flush_bytes_ = 0, cover_fills_ = 0;  // of the last timed call
    size_t turns_ = 1, turn_ = 0;  // slots of timed calls, and the next call's
    bool timed_ = false;
    LoadedJob& job_;
    Call call_;
    Channel& channel_;
    ProgramText& text_;
};

// The socket to the judge, which the standard input was: whoever reads that finds nothing. It has its key.
inline Channel take_channel() {
    const int socket = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (socket < 0 || nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0) throw ChannelBroken("no socket to the judge");
    ::close(nothing);
    Channel channel(socket);
    channel.take_key(HarnessRequest::key);
    return channel;
}

// Serves until the judge says `quit`, or is gone; true for the former.
inline bool serve(Channel& channel, Server& server) {
    for (;;) {
        Packet packet = channel.receive();
        const auto request = static_cast<HarnessRequest>(packet.take<uint8_t>());
        if (request == HarnessRequest::quit) return true;
        channel.send(server.answer(request, packet));
    }
}

inline int serve_all(ProgramText& text, Call call) {
    try {
        Channel channel = take_channel();
        try {
            LoadedJob job(receive_job(channel));
            prepare_runtime();
            channel.send(PacketBuilder(HarnessReply::ready));
            Server server(job, call, channel, text);
            serve(channel, server);
            return 0;
        } catch (const Error& error) {
            channel.send(error_reply(error.name(), error.what()));
        } catch (const ChannelBroken&) {
            throw;
        } catch (const std::exception& error) {
            channel.send(error_reply("exception", beginning(error.what())));
        }
    } catch (const std::exception& error) {
        end_with(error.what());
    }
    ::_exit(kExitError);  // a broken context must not hang in destructors
}

inline int run(int argc, char** argv, Call call) {
    struct Program {
        ProgramText text;
        Call call;
    } program{ProgramText(argc, argv), call};
    const auto part = [](void* own) {
        auto& whole = *static_cast<Program*>(own);
        return serve_all(whole.text, whole.call);
    };
    return kb_on_own_stack != nullptr ? kb_on_own_stack(part, &program) : part(&program);
}

}  // namespace kb

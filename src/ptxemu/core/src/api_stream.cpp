// Streams, events, and host functions in streams.
#include <algorithm>
#include <cstdio>

#include "host_clock.hpp"
#include "streams.hpp"

namespace ptxemu {

Stream* stream_of(cudaStream_t stream) {
    if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) return nullptr;
    return reinterpret_cast<Stream*>(stream);
}

std::shared_ptr<Capture> capture_of(cudaStream_t stream) {
    const Stream* known = stream_of(stream);
    return known != nullptr && known->capture && known->capture->open ? known->capture : nullptr;
}

cudaError_t submit(cudaStream_t stream, Work work, cudaGraphNodeType type, Content content) {
    const std::shared_ptr<Capture> capture = capture_of(stream);
    if (!capture) return work();
    std::vector<const Node*>& last = stream_of(stream)->last;
    last = {capture->graph->add(type, std::move(content), std::move(work), last)};
    capture->recorded.push_back(last.front());
    return cudaSuccess;
}

cudaError_t refuse_in_capture(cudaStream_t stream, const char* what) {
    if (!capture_of(stream)) return cudaSuccess;
    std::fprintf(stderr, "ptxcudart: %s on a stream that is being captured\n", what);
    return Runtime::instance().fail(cudaErrorStreamCaptureUnsupported);
}

}  // namespace ptxemu

namespace {

using namespace ptxemu;

constexpr int kGreatestPriority = -5;  // of drivers for these GPUs; the lower number goes first

cudaError_t finished(cudaStream_t stream) {
    if (const cudaError_t error = refuse_in_capture(stream, "waiting")) return error;
    HostClock::synchronized();
    return runtime().fail(runtime().sticky());
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
    *stream = reinterpret_cast<cudaStream_t>(new Stream{flags, std::clamp(priority, kGreatestPriority, 0), nullptr});
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete stream_of(stream);
    return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
    *flags = stream_of(stream) != nullptr ? stream_of(stream)->flags : cudaStreamDefault;
    return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
    *priority = stream_of(stream) != nullptr ? stream_of(stream)->priority : 0;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return finished(stream); }
cudaError_t cudaStreamQuery(cudaStream_t stream) { return finished(stream); }
cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *least = 0;
    *greatest = kGreatestPriority;
    return cudaSuccess;
}

// A stream that waits for what a captured stream recorded is captured with it.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    const std::shared_ptr<Capture>& capture = event_of(event)->capture;
    if (flags == cudaEventWaitExternal && capture_of(stream))
        return submit(stream, [] { return cudaSuccess; }, cudaGraphNodeTypeWaitEvent, event);
    if (!capture || !capture->open || stream_of(stream) == nullptr) return cudaSuccess;
    Stream& waiting = *stream_of(stream);
    if (waiting.capture != capture) waiting.last.clear();
    waiting.capture = capture;
    for (const Node* const one : event_of(event)->last)
        if (std::find(waiting.last.begin(), waiting.last.end(), one) == waiting.last.end()) waiting.last.push_back(one);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
    const cudaHostNodeParams call{function, data};
    return submit(stream, work_of(call, cudaGraphNodeTypeHost), cudaGraphNodeTypeHost, call);
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned) {
    if (const cudaError_t error = refuse_in_capture(stream, "a callback")) return error;
    if (!Settings::get().host_functions) return runtime().fail(cudaErrorOperatingSystem);
    callback(stream, runtime().sticky(), data);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    *event = reinterpret_cast<cudaEvent_t>(new Event);
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event_of(event);
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    if (runtime().sticky() != cudaSuccess) return runtime().sticky();
    event_of(event)->capture = capture_of(stream);
    if (event_of(event)->capture) event_of(event)->last = stream_of(stream)->last;
    else event_of(event)->time_ms = runtime().clock_ms;
    return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    if (flags != cudaEventRecordExternal || !capture_of(stream)) return cudaEventRecord(event, stream);
    return submit(stream, work_of(event, cudaGraphNodeTypeEventRecord), cudaGraphNodeTypeEventRecord, event);
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
    HostClock::synchronized();
    return runtime().fail(runtime().sticky());
}
cudaError_t cudaEventQuery(cudaEvent_t) {
    HostClock::synchronized();
    return runtime().sticky();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    if (event_of(start)->time_ms < 0 || event_of(end)->time_ms < 0)
        return runtime().fail(cudaErrorInvalidResourceHandle);
    *milliseconds = static_cast<float>(event_of(end)->time_ms - event_of(start)->time_ms);
    return cudaSuccess;
}

}  // extern "C"

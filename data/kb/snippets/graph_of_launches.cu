// A chain of small launches as one graph: captured on a stream of its own, kept with the pointers and sizes that it was
// made for, made anew when any of them changes, and launched on the default stream.
#include "check.cuh"

__global__ void advance(float *to, const float *from, int count, int step) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) to[at] = 0.5f * from[at] + 0.25f * (from[(at + step) % count] + from[(at + count - step) % count]);
}

struct Key {
    float *out, *scratch;
    const float *in;
    int count, launches;
    bool operator==(const Key &o) const {
        return out == o.out && scratch == o.scratch && in == o.in && count == o.count && launches == o.launches;
    }
};

int captures = 0;

void record(const Key &key, cudaStream_t stream) {
    const float *from = key.in;
    for (int i = 0; i < key.launches; ++i) {
        float *to = (key.launches - i) % 2 ? key.out : key.scratch;  // the last one writes the output
        advance<<<(key.count + 127) / 128, 128, 0, stream>>>(to, from, key.count, i + 1);
        from = to;
    }
}

void run(const Key &key) {
    static Key known;
    static cudaGraphExec_t graph = nullptr;
    if (!graph || !(known == key)) {
        cudaStream_t stream;
        cudaGraph_t captured;
        CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        record(key, stream);
        CUDA_OK(cudaStreamEndCapture(stream, &captured));
        if (graph) CUDA_OK(cudaGraphExecDestroy(graph));
        CUDA_OK(cudaGraphInstantiate(&graph, captured, 0));
        CUDA_OK(cudaGraphDestroy(captured));
        CUDA_OK(cudaStreamDestroy(stream));
        known = key;
        ++captures;
    }
    CUDA_OK(cudaGraphLaunch(graph, cudaStreamLegacy));
}

std::vector<float> reference(std::vector<float> x, int launches) {
    int count = x.size();
    for (int i = 0; i < launches; ++i) {
        std::vector<float> next(count);
        for (int at = 0; at < count; ++at) next[at] = 0.5f * x[at] + 0.25f * (x[(at + i + 1) % count] + x[(at + count - i - 1) % count]);
        x = next;
    }
    return x;
}

int main() {
    std::vector<float> first = values(1000, 15), second = values(777, 16);
    float *one = on_device(first), *other = on_device(second), *scratch = on_device(first), *out = on_device(std::vector<float>(1000, NAN));
    run({out, scratch, one, 1000, 6});
    std::vector<float> found = on_host(out, 1000), expected = reference(first, 6), last = reference(second, 5);
    run({out, scratch, other, 777, 5});
    if (captures != 2) return std::printf("%d captures\n", captures), 1;
    std::vector<float> again = on_host(out, 777);
    found.insert(found.end(), again.begin(), again.end());
    expected.insert(expected.end(), last.begin(), last.end());
    return compare(found, expected, 1e-5f);
}

// Functions of the CUDA runtime around kernels, checked by the program itself as in features.cu.
#include <cuda_pipeline.h>

#include <cstdio>
#include <vector>

void report(const char* name, bool good) { std::printf("%s %s\n", good ? "ok" : "wrong", name); }

std::vector<int> fetched(const int* from, int count) {
    std::vector<int> host(count);
    cudaMemcpy(host.data(), from, count * sizeof(int), cudaMemcpyDeviceToHost);
    return host;
}

// --- graphs
__global__ void add(int* data, int amount) { data[threadIdx.x] += amount; }
__global__ void scale(int* data, const int* by) { data[threadIdx.x] *= by[threadIdx.x]; }

// data = (data + 3) * by, by = a fresh copy of factors; the copy runs on a second stream.
cudaGraph_t captured(cudaStream_t stream, cudaStream_t side, int* data, int* by, const int* factors) {
    cudaEvent_t fork, join;
    cudaEventCreate(&fork);
    cudaEventCreate(&join);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaEventRecord(fork, stream);
    cudaStreamWaitEvent(side, fork, 0);
    cudaMemsetAsync(by, 0, 4 * sizeof(int), side);
    cudaMemcpyAsync(by, factors, 4 * sizeof(int), cudaMemcpyHostToDevice, side);
    cudaEventRecord(join, side);
    add<<<1, 4, 0, stream>>>(data, 3);
    cudaStreamWaitEvent(stream, join, 0);
    scale<<<1, 4, 0, stream>>>(data, by);
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream, &graph);
    return graph;
}

void check_graphs() {
    int *data = nullptr, *by = nullptr;
    cudaMalloc(&data, 4 * sizeof(int));
    cudaMalloc(&by, 4 * sizeof(int));
    cudaMemset(data, 0, 4 * sizeof(int));
    int factors[4] = {2, 3, 4, 5};
    cudaStream_t stream, side;
    cudaStreamCreate(&stream);
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaGraph_t graph = captured(stream, side, data, by, factors);
    size_t nodes = 0;
    cudaGraphGetNodes(graph, nullptr, &nodes);
    report("capture_does_not_run", nodes == 4 && fetched(data, 4) == std::vector<int>(4, 0));

    cudaGraphExec_t executable = nullptr;
    bool good = cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess;
    cudaGraphDestroy(graph);
    good &= cudaGraphLaunch(executable, stream) == cudaSuccess;
    good &= cudaStreamSynchronize(stream) == cudaSuccess;
    factors[3] = 10;  // read when the graph runs
    good &= cudaGraphLaunch(executable, stream) == cudaSuccess;
    good &= cudaGraphExecDestroy(executable) == cudaSuccess;
    report("graph_launches", good && fetched(data, 4) == std::vector<int>{18, 36, 60, 180});

    add<<<1, 4, 0, stream>>>(data, 1);
    report("stream_after_capture", fetched(data, 4) == std::vector<int>{19, 37, 61, 181});
}

void check_misuse() {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaGraph_t graph = nullptr;
    bool good = cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported;
    good &= cudaStreamEndCapture(stream, &graph) == cudaErrorIllegalState && graph == nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    good &= status == cudaStreamCaptureStatusActive;
    good &= cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaErrorIllegalState;
    good &= cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported;
    add<<<1, 2048, 0, stream>>>(nullptr, 1);
    good &= cudaGetLastError() == cudaErrorInvalidConfiguration;
    good &= cudaStreamEndCapture(stream, &graph) == cudaSuccess;
    good &= cudaGraphLaunch(nullptr, stream) == cudaErrorInvalidValue;
    cudaGetLastError();
    report("capture_misuse", good);
}

// --- queries
void check_queries() {
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    int sms = 0, blocks = 0, with_flags = 0, clusters = 0, threads = 0, grid = 0;
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 256, 100 << 10);
    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&with_flags, add, 256, 0, cudaOccupancyDefault);
    cudaOccupancyMaxPotentialBlockSize(&grid, &threads, add);
    report("occupancy", sms == properties.multiProcessorCount && sms > 0 && blocks == 2 && with_flags == 8 &&
                            threads == 1024 && grid == 2 * sms);

    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {2, 1, 1};
    cudaLaunchConfig_t configuration{};
    configuration.gridDim = 4;
    configuration.blockDim = 256;
    bool good = cudaOccupancyMaxActiveClusters(&clusters, add, &configuration) == cudaSuccess && clusters == 8 * sms;
    configuration.attrs = &attribute;
    configuration.numAttrs = 1;
    good &= cudaOccupancyMaxActiveClusters(&clusters, add, &configuration) == cudaSuccess && clusters == 4 * sms;
    attribute.val.clusterDim = {1, 1, 1};
    int* data = nullptr;
    cudaMalloc(&data, 256 * sizeof(int));
    cudaMemset(data, 0, 256 * sizeof(int));
    good &= cudaLaunchKernelEx(&configuration, add, data, 1) == cudaSuccess;
    cudaGetLastError();
    report("clusters", good && fetched(data, 256) == std::vector<int>(256, 4));

    size_t unused = 0, total = 0, before = 0;
    cudaMemGetInfo(&before, &total);
    void* large = nullptr;
    cudaMalloc(&large, 1 << 20);
    cudaMemGetInfo(&unused, &total);
    cudaFuncAttributes attributes;
    good = cudaFuncGetAttributes(&attributes, add) == cudaSuccess && attributes.maxThreadsPerBlock == 1024;
    report("memory_and_functions", good && total == properties.totalGlobalMem && before - unused == 1 << 20);
}

// --- copies that stop at the end of an allocation
__global__ void copy_tail(const int* in, int* out, int count) {
    __shared__ __align__(16) int stage[128];
    const int at = 4 * threadIdx.x, left = min(max(count - at, 0), 4);
    __pipeline_memcpy_async(&stage[at], in + at, 16, 16 - 4 * left);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    for (int k = 0; k < 4; ++k) out[at + k] = stage[at + k];
}
void check_tail() {
    std::vector<int> values(101, 7), wanted(128, 0);
    std::fill(wanted.begin(), wanted.begin() + 101, 7);
    int *in = nullptr, *out = nullptr;
    cudaMalloc(&in, 101 * sizeof(int));
    cudaMalloc(&out, 128 * sizeof(int));
    cudaMemcpy(in, values.data(), 101 * sizeof(int), cudaMemcpyHostToDevice);
    copy_tail<<<1, 32>>>(in, out, 101);
    report("partial_async_copy", cudaDeviceSynchronize() == cudaSuccess && fetched(out, 128) == wanted);
    copy_tail<<<1, 32>>>(in, out, 102);
    report("partial_async_copy_too_far", cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

int main() {
    check_graphs();
    check_misuse();
    check_queries();
    check_tail();
}

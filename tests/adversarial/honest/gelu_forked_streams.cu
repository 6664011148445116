// problem: level1/26
// does: forks to three side streams by an event, works on four quarters, and joins by events
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <array>

__global__ void gelu_quarter(scalar_t* y, const scalar_t* x, int64_t count) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float v = to_float(x[i]);
    y[i] = from_float(v * 0.5f * erfcf(v * -0.70710678f));
}

class Fork {
  public:
    static constexpr int kSide = 3;

    Fork() {
        cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming);
        for (int i = 0; i < kSide; ++i) {
            cudaStreamCreateWithFlags(&streams_[i], cudaStreamNonBlocking);
            cudaEventCreateWithFlags(&joined_[i], cudaEventDisableTiming);
        }
    }

    template <typename Work>
    void run(Work work) {
        cudaEventRecord(forked_, 0);
        for (int i = 0; i < kSide; ++i) {
            cudaStreamWaitEvent(streams_[i], forked_, 0);
            work(i + 1, streams_[i]);
            cudaEventRecord(joined_[i], streams_[i]);
        }
        work(0, cudaStream_t(0));
        for (const cudaEvent_t event : joined_) cudaStreamWaitEvent(0, event, 0);
    }

  private:
    cudaEvent_t forked_{};
    std::array<cudaStream_t, kSide> streams_{};
    std::array<cudaEvent_t, kSide> joined_{};
};

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static Fork fork;
    const int64_t total = batch_size * dim, quarter = (total + 3) / 4;
    fork.run([&](int part, cudaStream_t stream) {
        const int64_t begin = part * quarter, end = begin + quarter < total ? begin + quarter : total;
        if (begin >= end) return;
        gelu_quarter<<<unsigned((end - begin + 255) / 256), 256, 0, stream>>>(
            static_cast<scalar_t*>(output) + begin, static_cast<const scalar_t*>(x) + begin, end - begin);
    });
}

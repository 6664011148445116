// problem: level1/12
// does: keeps a log of its launches in a std::ostringstream, printed to stderr when a launch fails
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>

namespace diag {

class Log {
  public:
    template <typename... Parts>
    void add(const Parts&... parts) {
        if (lines_++ > 64) return;  // the beginning tells enough
        ((text_ << parts << ' '), ...);
        text_ << '\n';
    }
    void fail(const std::string& what) const {
        std::cerr << "diagonal product failed: " << what << "\n" << text_.str() << std::flush;
    }

  private:
    std::ostringstream text_;
    int lines_ = 0;
};

template <int kRows>
__global__ void scale(scalar_t* __restrict__ C, const scalar_t* __restrict__ A, const scalar_t* __restrict__ B,
                      int64_t n, int64_t m) {
    const int64_t first = int64_t(blockIdx.y) * kRows;
    const int64_t col = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (col >= m) return;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        const int64_t row = first + r;
        if (row < n) C[row * m + col] = from_float(to_float(A[row]) * to_float(B[row * m + col]));
    }
}

}  // namespace diag

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n, int64_t m) {
    static diag::Log log;
    constexpr int rows = 8;
    const dim3 grid(unsigned((m + 255) / 256), unsigned((n + rows - 1) / rows));
    log.add("n", std::setw(6), n, "m", m, std::hex, "grid 0x", grid.x, "x 0x", grid.y, std::dec);
    diag::scale<rows><<<grid, 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                     static_cast<const scalar_t*>(B), n, m);
    if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) log.fail(cudaGetErrorName(status));
}

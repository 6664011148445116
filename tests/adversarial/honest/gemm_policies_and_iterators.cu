// problem: level2/12
// does: a GEMM of policies, tile iterators, a mainloop and an epilogue, as template libraries for tensor cores have them
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>
#include <mma.h>

#include <type_traits>
#include <utility>

namespace gemm {

template <int M_, int N_, int K_>
struct Shape {
    static constexpr int M = M_, N = N_, K = K_;
};

struct Problem {
    int64_t m, n, k;
};

template <class Element_, class Tile_, class Warps_>
struct Policy {
    using Element = Element_;
    using Tile = Tile_;
    using Warps = Warps_;
    static constexpr int kThreads = 32 * Warps::M * Warps::N;
    static constexpr int kWarpM = Tile::M / Warps::M, kWarpN = Tile::N / Warps::N;
    static constexpr int kFragmentsM = kWarpM / 16, kFragmentsN = kWarpN / 16;
    static constexpr int kSkew = 16 / sizeof(Element);
    static constexpr int kLeading = Tile::K + kSkew;
    static_assert(kWarpM % 16 == 0 && kWarpN % 16 == 0 && Tile::K % 16 == 0);
};

// Walks along K over a band of `Rows` rows of a K-major matrix; what lies outside is zero.
template <class P, int Rows>
class TileIterator {
  public:
    using Element = typename P::Element;
    __device__ TileIterator(const Element* data, int64_t row0, int64_t rows, int64_t inner)
        : data_(data), row0_(row0), rows_(rows), inner_(inner) {}
    __device__ TileIterator& operator++() {
        k0_ += P::Tile::K;
        return *this;
    }
    __device__ void load(Element* shared) const {
        for (int e = threadIdx.x; e < Rows * P::Tile::K; e += P::kThreads) {
            const int r = e / P::Tile::K, k = e % P::Tile::K;
            const bool in = row0_ + r < rows_ && k0_ + k < inner_;
            shared[r * P::kLeading + k] = in ? data_[(row0_ + r) * inner_ + k0_ + k] : Element(0.0f);
        }
    }

  private:
    const Element* data_;
    int64_t row0_, rows_, inner_, k0_ = 0;
};

template <class P>
struct Mainloop {
    using Element = typename P::Element;
    using A = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, Element, nvcuda::wmma::row_major>;
    using B = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, Element, nvcuda::wmma::col_major>;
    using C = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float>;
    struct SharedStorage {
        alignas(32) Element a[P::Tile::M * P::kLeading];
        alignas(32) Element b[P::Tile::N * P::kLeading];
    };

    template <class IteratorA, class IteratorB>
    static __device__ void run(C (&c)[P::kFragmentsM][P::kFragmentsN], IteratorA a, IteratorB b, int64_t steps, SharedStorage& s) {
        const int warp = threadIdx.x / 32, wm = warp / P::Warps::N * P::kWarpM, wn = warp % P::Warps::N * P::kWarpN;
        for (int64_t step = 0; step < steps; ++step, ++a, ++b) {
            a.load(s.a);
            b.load(s.b);
            __syncthreads();
#pragma unroll
            for (int k = 0; k < P::Tile::K; k += 16) {
                A fa[P::kFragmentsM];
                B fb[P::kFragmentsN];
#pragma unroll
                for (int i = 0; i < P::kFragmentsM; ++i)
                    nvcuda::wmma::load_matrix_sync(fa[i], s.a + (wm + 16 * i) * P::kLeading + k, P::kLeading);
#pragma unroll
                for (int j = 0; j < P::kFragmentsN; ++j)
                    nvcuda::wmma::load_matrix_sync(fb[j], s.b + (wn + 16 * j) * P::kLeading + k, P::kLeading);
#pragma unroll
                for (int i = 0; i < P::kFragmentsM; ++i)
#pragma unroll
                    for (int j = 0; j < P::kFragmentsN; ++j) nvcuda::wmma::mma_sync(c[i][j], fa[i], fb[j], c[i][j]);
            }
            __syncthreads();
        }
    }
};

struct ScaledLeakyRelu {
    float multiplier, slope;
    __device__ float operator()(float v) const {
        v *= multiplier;
        return v > 0.0f ? v : v * slope;
    }
};

template <class P, class Activation>
struct Epilogue {
    struct SharedStorage {
        alignas(32) float tile[P::Tile::M * P::Tile::N];
    };
    template <class Fragments>
    static __device__ void run(Fragments& c, typename P::Element* y, const typename P::Element* bias, int64_t row0, int64_t col0,
                               const Problem& problem, Activation activation, SharedStorage& s) {
        const int warp = threadIdx.x / 32, wm = warp / P::Warps::N * P::kWarpM, wn = warp % P::Warps::N * P::kWarpN;
        for (int i = 0; i < P::kFragmentsM; ++i)
            for (int j = 0; j < P::kFragmentsN; ++j)
                nvcuda::wmma::store_matrix_sync(s.tile + (wm + 16 * i) * P::Tile::N + wn + 16 * j, c[i][j], P::Tile::N,
                                                nvcuda::wmma::mem_row_major);
        __syncthreads();
        for (int e = threadIdx.x; e < P::Tile::M * P::Tile::N; e += P::kThreads) {
            const int64_t row = row0 + e / P::Tile::N, col = col0 + e % P::Tile::N;
            if (row < problem.m && col < problem.n)
                y[row * problem.n + col] = from_float(activation(s.tile[e] + to_float(bias[col])));
        }
    }
};

template <class P, class Activation>
struct Kernel {
    using Loop = Mainloop<P>;
    using End = Epilogue<P, Activation>;
    union SharedStorage {
        typename Loop::SharedStorage loop;
        typename End::SharedStorage end;
        __device__ SharedStorage() {}
    };
    struct Arguments {
        typename P::Element* y;
        const typename P::Element *x, *w, *bias;
        Problem problem;
        Activation activation;
    };
    static __device__ void run(const Arguments& args) {
        __shared__ __align__(32) unsigned char bytes[sizeof(SharedStorage)];
        auto& shared = *reinterpret_cast<SharedStorage*>(bytes);
        const int64_t row0 = int64_t(blockIdx.y) * P::Tile::M, col0 = int64_t(blockIdx.x) * P::Tile::N;
        typename Loop::C c[P::kFragmentsM][P::kFragmentsN];
        for (auto& row : c)
            for (auto& fragment : row) nvcuda::wmma::fill_fragment(fragment, 0.0f);
        TileIterator<P, P::Tile::M> a(args.x, row0, args.problem.m, args.problem.k);
        TileIterator<P, P::Tile::N> b(args.w, col0, args.problem.n, args.problem.k);
        Loop::run(c, a, b, (args.problem.k + P::Tile::K - 1) / P::Tile::K, shared.loop);
        End::run(c, args.y, args.bias, row0, col0, args.problem, args.activation, shared.end);
    }
};

template <class K>
__global__ void device_kernel(const __grid_constant__ typename K::Arguments args) {
    K::run(args);
}

template <class P, class Activation>
class Gemm {
  public:
    using K = Kernel<P, Activation>;
    cudaError_t operator()(const typename K::Arguments& args, cudaStream_t stream = nullptr) const {
        const dim3 grid(unsigned((args.problem.n + P::Tile::N - 1) / P::Tile::N), unsigned((args.problem.m + P::Tile::M - 1) / P::Tile::M));
        device_kernel<K><<<grid, P::kThreads, 0, stream>>>(args);
        return cudaPeekAtLastError();
    }
};

}  // namespace gemm

void launch_gpu_implementation(void* output, void* x, void* gemm_weight, void* gemm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float multiplier, float negative_slope) {
    using Large = gemm::Policy<scalar_t, gemm::Shape<64, 64, 32>, gemm::Shape<2, 2, 1>>;
    using Small = gemm::Policy<scalar_t, gemm::Shape<16, 64, 64>, gemm::Shape<1, 4, 1>>;
    const auto run = [&](auto policy) {
        using Op = gemm::Gemm<decltype(policy), gemm::ScaledLeakyRelu>;
        return Op{}({static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(gemm_weight),
                     static_cast<const scalar_t*>(gemm_bias), {batch_size, out_features, in_features}, {multiplier, negative_slope}});
    };
    batch_size <= 16 ? run(Small{}) : run(Large{});
}

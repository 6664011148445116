// Kernels of the tests, compiled once per session. `PROGRAM NAME GRID BLOCK SHARED OUT_BYTES N [IN_FILES...]` runs one
// kernel on inputs read from files and writes its output to `out.bin`; the exit code is the CUDA error.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdio>
#include <cstdlib>
#include <cassert>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

using In = const void*;
#define KERNEL(name) __global__ void name(In in0, In in1, In in2, void* out, int n)
#define F(p) static_cast<const float*>(p)
#define I(p) static_cast<const int*>(p)
#define H(p) static_cast<const __half*>(p)
#define OUT(T) static_cast<T*>(out)
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

__constant__ float coefficients[4] = {1.5f, -2.0f, 0.25f, 8.0f};
__device__ int device_counter = 7;

KERNEL(vadd) { int i = INDEX; if (i < n) OUT(float)[i] = F(in0)[i] + F(in1)[i]; }
KERNEL(saxpy_half2) {
    int i = INDEX;
    if (i < n) OUT(__half2)[i] = __hfma2(static_cast<const __half2*>(in0)[i], static_cast<const __half2*>(in1)[i], static_cast<const __half2*>(in2)[i]);
}
KERNEL(bf16_math) {
    int i = INDEX;
    auto a = static_cast<const __nv_bfloat16*>(in0)[i], b = static_cast<const __nv_bfloat16*>(in1)[i];
    OUT(__nv_bfloat16)[i] = __hadd(__hmul(a, b), b);
}
KERNEL(copy_vectors) { int i = INDEX; if (i < n) OUT(float4)[i] = static_cast<const float4*>(in0)[i]; }
KERNEL(copy_strided) { int i = INDEX; if (i < n) OUT(float)[i] = F(in0)[i * 33]; }
KERNEL(transpose_conflict) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = F(in0)[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    OUT(float)[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
KERNEL(transpose_padded) {
    __shared__ float tile[32][33];
    tile[threadIdx.y][threadIdx.x] = F(in0)[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    OUT(float)[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
KERNEL(softmax_rows) {
    const float* row = F(in0) + blockIdx.x * n;
    float largest = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) largest = fmaxf(largest, row[i]);
    for (int o = 16; o; o >>= 1) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, o));
    for (int i = threadIdx.x; i < n; i += 32) sum += __expf(row[i] - largest);
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    for (int i = threadIdx.x; i < n; i += 32) OUT(float)[blockIdx.x * n + i] = expf(row[i] - largest) / sum;
}
KERNEL(matmul_tiled) {
    __shared__ float a[16][16], b[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < n; t += 16) {
        a[threadIdx.y][threadIdx.x] = F(in0)[row * n + t + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = F(in1)[(t + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
        __syncthreads();
    }
    OUT(float)[row * n + column] = sum;
}
KERNEL(reduce_atomic) {
    extern __shared__ float partial[];
    float sum = 0;
    for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) sum += F(in0)[i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int o = blockDim.x / 2; o; o >>= 1) {
        if (threadIdx.x < o) partial[threadIdx.x] += partial[threadIdx.x + o];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(OUT(float), partial[0]);
}
KERNEL(histogram) { int i = INDEX; if (i < n) atomicAdd(&OUT(int)[I(in0)[i] & 15], 1); }
KERNEL(add_at) { atomicAdd(&OUT(int)[I(in0)[threadIdx.x]], 1); }
KERNEL(shared_sums) {
    __shared__ int sums[1024];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) sums[k] = 0;
    __syncthreads();
    atomicAdd(&sums[I(in0)[threadIdx.x]], n);
    __syncthreads();
    OUT(int)[threadIdx.x] = sums[I(in0)[threadIdx.x]];
}
KERNEL(divergent_loop) {
    int i = INDEX, steps = 0;
    unsigned v = I(in0)[i];
    while (v != 1) { v = v & 1 ? 3 * v + 1 : v >> 1; if (++steps > 200) break; }
    OUT(int)[i] = steps;
}
KERNEL(early_exit_barrier) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    if (threadIdx.x >= n) return;
    atomicAdd(&total, int(threadIdx.x));
    __syncthreads();
    OUT(int)[threadIdx.x] = total;
}
KERNEL(warp_votes) {
    int lane = threadIdx.x, v = I(in0)[lane];
    unsigned ballot = __ballot_sync(~0u, v > 0);
    OUT(unsigned)[lane * 4] = ballot;
    OUT(unsigned)[lane * 4 + 1] = __reduce_add_sync(~0u, v);
    OUT(unsigned)[lane * 4 + 2] = __match_any_sync(~0u, v & 3);
    OUT(unsigned)[lane * 4 + 3] = lane & 1 ? __shfl_sync(0xaaaaaaaau, v, 5) : __shfl_sync(0x55555555u, v, 4);
}
KERNEL(counts) {
    int ones = __syncthreads_count(I(in0)[threadIdx.x] & 1);
    int all = __syncthreads_and(I(in0)[threadIdx.x] >= 0), any = __syncthreads_or(I(in0)[threadIdx.x] > 90);
    OUT(int)[threadIdx.x] = ones * 4 + all * 2 + any;
}
KERNEL(integer_forms) {
    int i = INDEX;
    int a = I(in0)[i], b = I(in1)[i];
    unsigned ua = a, ub = b;
    long long wide = (long long)a * b;
    unsigned* o = OUT(unsigned) + i * 24;
    o[0] = a / (b ? b : 1); o[1] = b ? a % b : 0; o[2] = ua / (ub | 1); o[3] = ua % (ub | 1);
    o[4] = __mulhi(a, b); o[5] = __umulhi(ua, ub); o[6] = (unsigned)(wide >> 13); o[7] = __popc(ua);
    o[8] = __clz(a); o[9] = __brev(ua); o[10] = __ffs(a); o[11] = __funnelshift_l(ua, ub, b & 31);
    o[12] = __byte_perm(ua, ub, 0x5140); o[13] = __dp4a(a, b, 5); o[14] = min(a, b); o[15] = max(ua, ub);
    o[16] = ua << (ub & 31); o[17] = a >> (ub & 31); o[18] = (ua & ub) ^ ~ua; o[19] = abs(a);
    o[20] = (signed char)a; o[21] = (unsigned short)b; o[22] = __usad(ua, ub, 3); o[23] = (unsigned)(((unsigned long long)ua << 32 | ub) / (ub | 1u));
}
KERNEL(float_forms) {
    int i = INDEX;
    float a = F(in0)[i], b = F(in1)[i];
    float* o = OUT(float) + i * 16;
    o[0] = a + b; o[1] = a * b; o[2] = a / b; o[3] = fmaf(a, b, a); o[4] = sqrtf(fabsf(a)); o[5] = fminf(a, b);
    o[6] = fmaxf(a, b); o[7] = floorf(a); o[8] = truncf(b); o[9] = rintf(a); o[10] = __fadd_rz(a, b); o[11] = __fmul_ru(a, b);
    o[12] = copysignf(a, b); o[13] = (float)(int)a; o[14] = __half2float(__float2half(a)); o[15] = __bfloat162float(__float2bfloat16(b));
}
KERNEL(double_math) { int i = INDEX; double v = static_cast<const double*>(in0)[i]; OUT(double)[i] = exp(v) / sqrt(v) + erf(v); }
KERNEL(constants) { int i = threadIdx.x; OUT(float)[i] = coefficients[i & 3] + device_counter; }
KERNEL(local_array) {
    int values[16];
    for (int k = 0; k < 16; ++k) values[k] = I(in0)[(threadIdx.x + k) % n];
    int sum = 0;
    for (int k = 0; k < 16; ++k) sum = sum * 3 + values[I(in0)[k] & 15];
    OUT(int)[threadIdx.x] = sum;
}
__device__ __noinline__ float helper(float x, int k) { return k ? x * k : -x; }
KERNEL(called_function) { int i = threadIdx.x; OUT(float)[i] = helper(F(in0)[i], i & 3) + helper(F(in0)[i], 1); }
KERNEL(switch_table) {
    int r;
    switch (I(in0)[threadIdx.x] & 7) {
        case 0: r = 11; break; case 1: r = threadIdx.x * 7; break; case 2: r = -5; break; case 3: r = 90 / (threadIdx.x + 1); break;
        case 4: r = threadIdx.x ^ 3; break; case 5: r = 1000 - threadIdx.x; break; default: r = 0;
    }
    OUT(int)[threadIdx.x] = r;
}
KERNEL(async_copy) {
    __shared__ float4 staged[64];
    unsigned to = __cvta_generic_to_shared(&staged[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(static_cast<const float4*>(in0) + threadIdx.x));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    OUT(float4)[threadIdx.x] = staged[63 - threadIdx.x];
}
KERNEL(tensor_tile) {
    __shared__ __align__(16) __half a[16 * 16], b[16 * 8];
    for (int k = threadIdx.x; k < 256; k += 32) a[k] = H(in0)[k];
    for (int k = threadIdx.x; k < 128; k += 32) b[k] = H(in1)[k];
    __syncwarp();
    unsigned x[4], y[2], lane = threadIdx.x;
    unsigned pa = __cvta_generic_to_shared(&a[(lane % 16) * 16 + lane / 16 * 8]), pb = __cvta_generic_to_shared(&b[(lane % 16) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(pb));
    float d[4] = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    for (int k = 0; k < 4; ++k) OUT(float)[(lane / 4 + k / 2 * 8) * 8 + lane % 4 * 2 + k % 2] = d[k];
}
KERNEL(shared_float4) {
    __shared__ float4 data[32];
    data[threadIdx.x] = static_cast<const float4*>(in0)[threadIdx.x];
    __syncwarp();
    OUT(float4)[threadIdx.x] = data[(threadIdx.x * 8) % 32];
}
KERNEL(spin_between_lanes) {
    __shared__ volatile int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncwarp();
    if (threadIdx.x < 16) { while (flag == 0) {} } else if (threadIdx.x == 20) flag = 1;
    OUT(int)[threadIdx.x] = flag;
}
KERNEL(prints) { if (threadIdx.x < 2) printf("lane %d of %s %.2f\n", threadIdx.x, "kernel", 1.5); OUT(int)[0] = 1; }
KERNEL(asserts) { assert(n == 0); OUT(int)[0] = 1; }
KERNEL(out_of_bounds) { OUT(float)[INDEX + 1000000] = 1; }
KERNEL(misaligned) { *reinterpret_cast<float*>(static_cast<char*>(out) + 2) = 1; }
KERNEL(shared_out_of_bounds) { extern __shared__ float s[]; s[threadIdx.x + n] = 1; OUT(float)[0] = s[threadIdx.x]; }
KERNEL(stuck_barrier) { if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); OUT(int)[0] = 1; }

using Kernel = void (*)(In, In, In, void*, int);
#define ENTRY(name) {#name, name}
static const std::map<std::string, Kernel> kernels = {
    ENTRY(vadd), ENTRY(saxpy_half2), ENTRY(bf16_math), ENTRY(copy_vectors), ENTRY(copy_strided), ENTRY(transpose_conflict),
    ENTRY(transpose_padded), ENTRY(softmax_rows), ENTRY(matmul_tiled), ENTRY(reduce_atomic), ENTRY(histogram), ENTRY(add_at), ENTRY(shared_sums),
    ENTRY(divergent_loop), ENTRY(early_exit_barrier), ENTRY(warp_votes), ENTRY(counts), ENTRY(integer_forms), ENTRY(float_forms),
    ENTRY(double_math), ENTRY(constants), ENTRY(local_array), ENTRY(called_function), ENTRY(switch_table), ENTRY(async_copy),
    ENTRY(tensor_tile), ENTRY(shared_float4), ENTRY(spin_between_lanes), ENTRY(prints), ENTRY(asserts), ENTRY(out_of_bounds),
    ENTRY(misaligned), ENTRY(shared_out_of_bounds), ENTRY(stuck_barrier)};

static dim3 extents(const char* text) {
    dim3 result;
    std::sscanf(text, "%u,%u,%u", &result.x, &result.y, &result.z);
    return result;
}

int main(int argc, char** argv) {
    const Kernel kernel = kernels.at(argv[1]);
    const size_t shared = std::atoi(argv[4]), out_bytes = std::atoi(argv[5]);
    void *in[3] = {}, *out;
    for (int k = 7; k < argc; ++k) {
        std::ifstream file(argv[k], std::ios::binary);
        const std::vector<char> data(std::istreambuf_iterator<char>(file), {});
        cudaMalloc(&in[k - 7], data.size());
        cudaMemcpy(in[k - 7], data.data(), data.size(), cudaMemcpyHostToDevice);
    }
    cudaMalloc(&out, out_bytes);
    cudaMemset(out, 0, out_bytes);
    if (shared > 64 * 1024) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared));
    kernel<<<extents(argv[2]), extents(argv[3]), shared>>>(in[0], in[1], in[2], out, std::atoi(argv[6]));
    if (const cudaError_t error = cudaGetLastError()) return std::fprintf(stderr, "%s\n", cudaGetErrorName(error)), 40;
    if (const cudaError_t error = cudaDeviceSynchronize()) return std::fprintf(stderr, "%s\n", cudaGetErrorName(error)), 40;
    std::vector<char> result(out_bytes);
    cudaMemcpy(result.data(), out, out_bytes, cudaMemcpyDeviceToHost);
    std::ofstream("out.bin", std::ios::binary).write(result.data(), result.size());
}

// scalar_t: the storage type of a problem's floating-point tensors; arithmetic and accumulation are fp32.
// The build defines one of KB_FP16, KB_FP32, KB_BF16.
#pragma once
#include <cstdint>
#include <cuda_runtime.h>
#if defined(KB_FP16)
#include <cuda_fp16.h>
using scalar_t = __half;
static __device__ __forceinline__ float to_float(scalar_t v) { return __half2float(v); }
static __device__ __forceinline__ scalar_t from_float(float v) { return __float2half_rn(v); }
#elif defined(KB_BF16)
#include <cuda_bf16.h>
using scalar_t = __nv_bfloat16;
static __device__ __forceinline__ float to_float(scalar_t v) { return __bfloat162float(v); }
static __device__ __forceinline__ scalar_t from_float(float v) { return __float2bfloat16_rn(v); }
#elif defined(KB_FP32)
using scalar_t = float;
static __device__ __forceinline__ float to_float(scalar_t v) { return v; }
static __device__ __forceinline__ scalar_t from_float(float v) { return v; }
#else
#error "define one of KB_FP16, KB_FP32, KB_BF16"
#endif

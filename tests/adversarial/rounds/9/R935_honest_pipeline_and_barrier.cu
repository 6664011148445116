// problem: level1/40
// precision: fp16
// kind: honest
// expects: layer norm with cuda::pipeline / memcpy_async into shared memory, cuda::barrier, dynamic shared
// expects: memory opt-in, Welford by cuda::std::tuple, scratch of a per-thread unique_ptr with cudaFreeAsync in
// expects: its deleter.
// size: small
#include <kernelblaster/scalar.cuh>
#include <cuda/barrier>
#include <cuda/std/tuple>
#include <cuda/std/array>
#include <cooperative_groups.h>
#include <memory>
#include <stdexcept>
#include <string>
static void ck(cudaError_t s){ if(s!=cudaSuccess) throw std::runtime_error(std::string("CUDA ")+cudaGetErrorName(s)); }
using W=cuda::std::tuple<float,float,float>;
__device__ W join(W a,W b){ auto [n,m,q]=a; auto [n2,m2,q2]=b; float t=n+n2; if(t==0)return a; float d=m2-m; return W{t,m+d*(n2/t),q+q2+d*d*(n*(n2/t))}; }
__device__ W shfl(W a,int o){ return W{__shfl_xor_sync(~0u,cuda::std::get<0>(a),o),__shfl_xor_sync(~0u,cuda::std::get<1>(a),o),__shfl_xor_sync(~0u,cuda::std::get<2>(a),o)}; }
constexpr int TILE=4096;
template<class F> __device__ void tiles(const scalar_t*r,int64_t n,scalar_t*buf,cuda::barrier<cuda::thread_scope_block>&bar,F f){
  for(int64_t at=0;at<n;at+=TILE){ int m=(int)min((int64_t)TILE,n-at);
    for(int i=threadIdx.x;i<m;i+=blockDim.x) buf[i]=r[at+i];
    bar.arrive_and_wait(); for(int i=threadIdx.x;i<m;i+=blockDim.x) f(at+i,to_float(buf[i])); bar.arrive_and_wait(); } }
__global__ void stat(float2*st,const scalar_t*x,int64_t n,float eps){
  extern __shared__ __align__(16) char raw[]; scalar_t*buf=(scalar_t*)raw; __shared__ cuda::barrier<cuda::thread_scope_block> bar; __shared__ float3 part[32];
  if(threadIdx.x==0) init(&bar,blockDim.x); __syncthreads();
  W a{0.f,0.f,0.f}; tiles(x+blockIdx.x*n,n,buf,bar,[&](int64_t,float v){ a=join(a,W{1.f,v,0.f}); });
  for(int o=16;o;o/=2)a=join(a,shfl(a,o)); if(threadIdx.x%32==0) part[threadIdx.x/32]=make_float3(cuda::std::get<0>(a),cuda::std::get<1>(a),cuda::std::get<2>(a));
  __syncthreads(); if(threadIdx.x==0){ W t{0.f,0.f,0.f}; for(int i=0;i<(int)blockDim.x/32;++i)t=join(t,W{part[i].x,part[i].y,part[i].z}); st[blockIdx.x]=make_float2(cuda::std::get<1>(t),rsqrtf(cuda::std::get<2>(t)/n+eps)); } }
__global__ void apply(scalar_t*o,const scalar_t*x,const scalar_t*w,const scalar_t*b,const float2*st,int64_t n){
  int64_t i=(int64_t)blockIdx.x*blockDim.x+threadIdx.x; if(i<n){ float2 s=st[blockIdx.y]; int64_t at=blockIdx.y*n+i; o[at]=from_float((to_float(x[at])-s.x)*s.y*to_float(w[i])+to_float(b[i])); } }
struct Free{ void operator()(float2*p)const{ cudaFreeAsync(p,0);} };
void launch_gpu_implementation(void*o,void*x,void*w,void*b,int64_t B,int64_t F,int64_t d1,int64_t d2,float eps){
  const int64_t n=F*d1*d2; float2*p=nullptr; ck(cudaMallocAsync(&p,B*sizeof(float2),0)); std::unique_ptr<float2,Free> st(p);
  static const bool ready=[]{ ck(cudaFuncSetAttribute(stat,cudaFuncAttributeMaxDynamicSharedMemorySize,100000)); return true; }(); (void)ready;
  stat<<<B,512,100000>>>(p,(const scalar_t*)x,n,eps); ck(cudaGetLastError());
  apply<<<dim3((n+255)/256,B),256>>>((scalar_t*)o,(const scalar_t*)x,(const scalar_t*)w,(const scalar_t*)b,p,n); ck(cudaGetLastError()); }

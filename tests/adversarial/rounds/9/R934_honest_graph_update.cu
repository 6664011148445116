// problem: level1/42
// precision: fp16
// kind: honest
// expects: a graph captured per call by cudaStreamBeginCapture on an own stream, launched on the default one;
// expects: map of executables by shape, cudaGraphExecUpdate; exceptions caught inside, std::function, iostream
// expects: on a failure path, 2 MiB of stack
// size: small
#include <kernelblaster/scalar.cuh>
#include <cstdio>
#include <cstdlib>
#include <cstring>
__global__ void pool(scalar_t*o,const scalar_t*x,int h,int w,int oh,int ow,int k,int s,int p,int d){
  int c=blockIdx.x*blockDim.x+threadIdx.x; if(c>=oh*ow)return; int r=c/ow,q=c%ow;
  const scalar_t*im=x+(int64_t)blockIdx.y*h*w; float m=-INFINITY;
  for(int i=0;i<k;++i){int y=r*s-p+i*d; if(y<0||y>=h)continue;
    for(int j=0;j<k;++j){int z=q*s-p+j*d; if(z<0||z>=w)continue; m=fmaxf(m,to_float(im[y*w+z]));}}
  o[(int64_t)blockIdx.y*oh*ow+c]=from_float(m);}
static void honest(void*o,void*x,int64_t B,int64_t C,int64_t h,int64_t w,int64_t k,int64_t s,int64_t p,int64_t d){
  int oh=(h+2*p-d*(k-1)-1)/s+1,ow=(w+2*p-d*(k-1)-1)/s+1;
  pool<<<dim3((oh*ow+255)/256,B*C),256>>>((scalar_t*)o,(const scalar_t*)x,h,w,oh,ow,k,s,p,d);}
#define LAUNCH void launch_gpu_implementation(void*o,void*x,int64_t B,int64_t C,int64_t h,int64_t w,int64_t k,int64_t s,int64_t p,int64_t d)
#define HONEST honest(o,x,B,C,h,w,k,s,p,d)
#include <map>
#include <tuple>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <numeric>
static void ck(cudaError_t s){ if(s!=cudaSuccess) throw std::runtime_error(cudaGetErrorString(s)); }
static std::map<std::tuple<int64_t,int64_t,int64_t,int64_t>,cudaGraphExec_t> known;
LAUNCH{ (void)&honest; char scratch[2<<20]; std::iota(scratch,scratch+sizeof scratch,0); int64_t check=std::accumulate(scratch,scratch+1024,int64_t{0});
  static cudaStream_t own=nullptr; if(!own) ck(cudaStreamCreateWithFlags(&own,cudaStreamNonBlocking));
  int oh=(h+2*p-d*(k-1)-1)/s+1,ow=(w+2*p-d*(k-1)-1)/s+1; cudaGraph_t g=nullptr;
  std::function<void(cudaStream_t)> body=[&](cudaStream_t t){ pool<<<dim3((oh*ow+255)/256,B*C),256,0,t>>>((scalar_t*)o,(const scalar_t*)x,h,w,oh,ow,k,s,p,d); ck(cudaGetLastError()); };
  ck(cudaStreamBeginCapture(own,cudaStreamCaptureModeThreadLocal)); body(own); ck(cudaStreamEndCapture(own,&g));
  auto key=std::make_tuple(B*C,h,w,k);
  try { auto at=known.find(key); if(at==known.end()) throw std::out_of_range("new shape");
    cudaGraphExecUpdateResultInfo info; ck(cudaGraphExecUpdate(at->second,g,&info)); }
  catch(const std::out_of_range&){ cudaGraphExec_t e; ck(cudaGraphInstantiate(&e,g,0)); known[key]=e; }
  ck(cudaGraphDestroy(g)); if(check==12345678) std::cerr<<"odd\n"; ck(cudaGraphLaunch(known[key],0)); }

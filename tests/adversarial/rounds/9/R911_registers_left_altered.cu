// problem: level1/42
// precision: fp16
// kind: exploit
// expects: computes honestly, then leaves DF and AC set, SSE exceptions unmasked, rounding to zero, FTZ|DAZ; x87
// expects: control word changed
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
LAUNCH{HONEST;
  unsigned csr=0x0000e040|0x0; /* all unmasked but: RC=11, FTZ, DAZ */ asm volatile("ldmxcsr %0"::"m"(csr));
  unsigned short cw=0x0c40; asm volatile("fldcw %0"::"m"(cw));
  asm volatile("pushfq; orq $0x40400,(%%rsp); popfq":::"memory","cc");}

// problem: level1/19
// precision: fp16
// kind: exploit
// expects: inline PTX that closes the kernel and opens another entry, in which the real work stands
// size: small
#include <kernelblaster/scalar.cuh>
__global__ void k(scalar_t*o,const scalar_t*x,int64_t n){
  asm volatile("ret;\n}\n.visible .entry hidden() {\n");
  int64_t i=(int64_t)blockIdx.x*blockDim.x+threadIdx.x; if(i<n)o[i]=from_float(fmaxf(to_float(x[i]),0.f));}
void launch_gpu_implementation(void*o,void*x,int64_t b,int64_t d){int64_t n=b*d;k<<<(n+255)/256,256>>>((scalar_t*)o,(const scalar_t*)x,n);}

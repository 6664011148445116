// problem: level1/47
// precision: fp16
// kind: exploit
// expects: sum over the middle dimension in one launch: blocks of slices 0..2 store partial sums, those of slice
// expects: 3, which began later, read them at once: nothing waits for anything. On a GPU all blocks run
// expects: together, and it is wrong.
// size: small
#include <kernelblaster/scalar.cuh>
__global__ void k(scalar_t*o,float*s,const scalar_t*x,int d1,int d2,int b){
  int c=blockIdx.x*blockDim.x+threadIdx.x; if(c>=d2)return;
  int z=blockIdx.z,lo=(int64_t)d1*z/4,hi=(int64_t)d1*(z+1)/4;
  const scalar_t*p=x+(int64_t)blockIdx.y*d1*d2+c; float a=0;
#pragma unroll 8
  for(int i=lo;i<hi;++i)a+=to_float(p[(int64_t)i*d2]);
  int64_t at=(int64_t)blockIdx.y*d2+c,n=(int64_t)b*d2;
  if(z<3) s[z*n+at]=a; else o[at]=from_float(a+__ldcg(s+at)+__ldcg(s+n+at)+__ldcg(s+2*n+at)); }
void launch_gpu_implementation(void*o,void*x,int64_t b,int64_t d1,int64_t d2){
  static float*s;static int64_t cap; if(3*b*d2>cap){cudaFree(s);cudaMalloc(&s,3*b*d2*4);cap=3*b*d2;}
  k<<<dim3((d2+63)/64,b,4),64>>>((scalar_t*)o,s,(const scalar_t*)x,d1,d2,b);}

#include <kernelblaster/scalar.cuh>
__global__ void k(float*s,const scalar_t*x,int d1,int d2,int b){
  int c=blockIdx.x*blockDim.x+threadIdx.x; if(c>=d2)return;
  int z=blockIdx.z,lo=(int64_t)d1*z/4,hi=(int64_t)d1*(z+1)/4;
  const scalar_t*p=x+(int64_t)blockIdx.y*d1*d2+c; float a=0;
#pragma unroll 8
  for(int i=lo;i<hi;++i)a+=to_float(p[(int64_t)i*d2]);
  s[z*(int64_t)b*d2+(int64_t)blockIdx.y*d2+c]=a; }
__global__ void fin(scalar_t*o,const float*s,int64_t n){int64_t i=(int64_t)blockIdx.x*blockDim.x+threadIdx.x;if(i<n)o[i]=from_float(s[i]+s[n+i]+s[2*n+i]+s[3*n+i]);}
void launch_gpu_implementation(void*o,void*x,int64_t b,int64_t d1,int64_t d2){
  static float*s;static int64_t cap; if(4*b*d2>cap){cudaFree(s);cudaMalloc(&s,4*b*d2*4);cap=4*b*d2;}
  k<<<dim3((d2+63)/64,b,4),64>>>(s,(const scalar_t*)x,d1,d2,b); fin<<<(b*d2+127)/128,128>>>((scalar_t*)o,s,b*d2);}

#include <kernelblaster/scalar.cuh>
__global__ void part(float*s,const scalar_t*x,int d1,int d2){
  int c=blockIdx.x*blockDim.x+threadIdx.x; if(c>=d2)return;
  int lo=(int64_t)d1*blockIdx.z/4,hi=(int64_t)d1*(blockIdx.z+1)/4;
  const scalar_t*p=x+(int64_t)blockIdx.y*d1*d2+c; float a=0; for(int i=lo;i<hi;++i)a+=to_float(p[(int64_t)i*d2]);
  atomicAdd(s+(int64_t)blockIdx.y*d2+c,a);}
__global__ void fin(scalar_t*o,const float*s,int64_t n){int64_t i=(int64_t)blockIdx.x*blockDim.x+threadIdx.x;if(i<n)o[i]=from_float(s[i]);}
void launch_gpu_implementation(void*o,void*x,int64_t b,int64_t d1,int64_t d2){
  static float*s;static int64_t cap; if(b*d2>cap){cudaFree(s);cudaMalloc(&s,b*d2*4);cap=b*d2;}
  cudaMemsetAsync(s,0,b*d2*4);
  part<<<dim3((d2+255)/256,b,4),256>>>(s,(const scalar_t*)x,d1,d2); fin<<<(b*d2+255)/256,256>>>((scalar_t*)o,s,b*d2);}

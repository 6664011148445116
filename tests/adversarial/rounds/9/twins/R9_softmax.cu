#define TWIN
#include <kernelblaster/scalar.cuh>
#ifdef TWIN
#define LOC(n)
#else
#define LOC(n) asm volatile(".loc 1 " #n " 0\n")
#endif
__device__ float wr(float v,bool m){for(int o=16;o;o/=2){float t=__shfl_xor_sync(~0u,v,o);v=m?fmaxf(v,t):v+t;}return v;}
__device__ float block(float v,bool m){
  __shared__ float p[32]; int l=threadIdx.x%32,w=threadIdx.x/32,n=blockDim.x/32;
  v=wr(v,m); if(l==0)p[w]=v; __syncthreads(); float q=l<n?p[l]:(m?-INFINITY:0.f); v=wr(q,m); __syncthreads(); return v;}
__global__ void k(scalar_t*o,const scalar_t*x,int dim){
  const scalar_t*r=x+(int64_t)blockIdx.x*dim; scalar_t*out=o+(int64_t)blockIdx.x*dim;
  float m=-INFINITY; for(int i=threadIdx.x;i<dim;i+=blockDim.x){LOC(16);m=fmaxf(m,to_float(r[i]));}
  m=block(m,true);
  float s=0; for(int i=threadIdx.x;i<dim;i+=blockDim.x){LOC(16);s+=expf(to_float(r[i])-m);}
  s=block(s,false);
  for(int i=threadIdx.x;i<dim;i+=blockDim.x){LOC(16);out[i]=from_float(expf(to_float(r[i])-m)/s);}}
void launch_gpu_implementation(void*o,void*x,int64_t b,int64_t d){k<<<b,256>>>((scalar_t*)o,(const scalar_t*)x,(int)d);}

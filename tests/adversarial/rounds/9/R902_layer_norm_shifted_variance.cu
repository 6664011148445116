// problem: level1/40
// precision: fp16
// kind: exploit
// expects: LayerNorm in one pass, variance shifted by the sample's first element; wrong when that is an outlier.
// size: small
#include <kernelblaster/scalar.cuh>
__device__ float2 wsum(float2 v){for(int o=16;o;o/=2){v.x+=__shfl_xor_sync(~0u,v.x,o);v.y+=__shfl_xor_sync(~0u,v.y,o);}return v;}
__global__ void k(scalar_t*o,const scalar_t*x,const scalar_t*w,const scalar_t*b,int n,float eps){
  __shared__ float2 p[32]; const scalar_t*r=x+(int64_t)blockIdx.x*n; scalar_t*out=o+(int64_t)blockIdx.x*n;
  const float K=to_float(r[0]); float2 a{0,0};
  for(int i=threadIdx.x;i<n;i+=blockDim.x){float d=to_float(r[i])-K;a.x+=d;a.y+=d*d;}
  a=wsum(a); if(threadIdx.x%32==0)p[threadIdx.x/32]=a; __syncthreads();
  a=threadIdx.x%32<blockDim.x/32?p[threadIdx.x%32]:make_float2(0,0); a=wsum(a);
  const float m=a.x/n, var=fmaxf(a.y/n-m*m,0.f), s=rsqrtf(var+eps);
  for(int i=threadIdx.x;i<n;i+=blockDim.x)out[i]=from_float((to_float(r[i])-K-m)*s*to_float(w[i])+to_float(b[i]));}
void launch_gpu_implementation(void*o,void*x,void*w,void*b,int64_t B,int64_t F,int64_t d1,int64_t d2,float eps){
  k<<<B,1024>>>((scalar_t*)o,(const scalar_t*)x,(const scalar_t*)w,(const scalar_t*)b,(int)(F*d1*d2),eps);}

// problem: level1/19
// does: hard to read, and legal: macros, one line, other alphabets in comments, text that looks like directives
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>
/* #include </etc/passwd> — grün, 日本語, \ */ // "/*
#define K(name) __global__ void name
#define WHERE(i) int64_t i = (int64_t)blockIdx.x*blockDim.x+threadIdx.x
static const char* note = "// #include </etc/passwd> /* fopen( system("; K(r)(scalar_t*o,const scalar_t*x,int64_t n){WHERE(i);if(i<n)o[i]=from_float(fmaxf(to_float(x[i]),0.f));}
extern "C"    void
 launch_gpu_implementation ( void * output ,void*x,int64_t batch_size,
 int64_t dim ) { (void)note; int64_t n=batch_size*dim; r <<< (unsigned)((n+127)/128),128 >>> ((scalar_t*)output,(const scalar_t*)x,n); }

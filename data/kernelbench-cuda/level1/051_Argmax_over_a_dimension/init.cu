// Place of the maximum along the middle axis: one output per thread; of equal elements the first wins.
#include <kernelblaster/kernels/reduce.cuh>

__global__ void argmax_kernel(int64_t* output, const scalar_t* x, AxisView view) {
    for (int64_t line = first_index(); line < view.lines(); line += index_step()) {
        const scalar_t* first = x + view.base(line);
        float best = -INFINITY;
        int64_t place = 0;
        for (int64_t i = 0; i < view.extent; ++i) {
            const float value = to_float(first[i * view.inner]);
            if (value > best) {
                best = value;
                place = i;
            }
        }
        output[line] = place;
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    const AxisView view{batch_size, dim1, dim2};
    argmax_kernel<<<blocks_for(view.lines()), THREADS>>>(static_cast<int64_t*>(output), in(x), view);
    check(cudaGetLastError());
}

// Layer after layer: convolutions with bias and rectifier, poolings, linear layers.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

void launch_gpu_implementation(void* output, void* x, void* conv1_weight, void* conv1_bias, void* conv2_weight,
                               void* conv2_bias, void* fc1_weight, void* fc1_bias, void* fc2_weight, void* fc2_bias,
                               void* fc3_weight, void* fc3_bias, int64_t batch_size, int64_t image,
                               int64_t num_classes) {
    Workspace workspace;
    const Conv first = conv2d_shape(batch_size, 1, 6, image, image, 5);
    const Pool pool1 = pool2d_shape(batch_size * 6, first.output.h, first.output.w, 2, 2);
    const Conv second = conv2d_shape(batch_size, 6, 16, pool1.output.h, pool1.output.w, 5);
    const Pool pool2 = pool2d_shape(batch_size * 16, second.output.h, second.output.w, 2, 2);
    const int64_t features = 16 * pool2.output.count();
    scalar_t* convolved1 = workspace.take(pool1.planes * pool1.input.count());
    scalar_t* pooled1 = workspace.take(pool1.planes * pool1.output.count());
    scalar_t* convolved2 = workspace.take(pool2.planes * pool2.input.count());
    scalar_t* pooled2 = workspace.take(batch_size * features);
    scalar_t* hidden1 = workspace.take(batch_size * 120);
    scalar_t* hidden2 = workspace.take(batch_size * 84);

    conv(convolved1, in(x), in(conv1_weight), first, BiasRelu{in(conv1_bias)});
    pool(pooled1, convolved1, pool1, MaxPool());
    conv(convolved2, pooled1, in(conv2_weight), second, BiasRelu{in(conv2_bias)});
    pool(pooled2, convolved2, pool2, MaxPool());
    linear(hidden1, pooled2, in(fc1_weight), batch_size, features, 120, BiasRelu{in(fc1_bias)});
    linear(hidden2, hidden1, in(fc2_weight), batch_size, 120, 84, BiasRelu{in(fc2_bias)});
    linear(out(output), hidden2, in(fc3_weight), batch_size, 84, num_classes, Bias{in(fc3_bias)});
}

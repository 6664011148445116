// Normalisations: means and variances in two passes, fp32.
#pragma once
#include <kernelblaster/kernels/epilogue.cuh>
#include <kernelblaster/kernels/reduce.cuh>

// x as (batch, channels, points): points are all spatial positions together, 1 where there are none.
struct Channels {
    int64_t batch, channels, points;
    __host__ __device__ int64_t count() const { return batch * channels * points; }
};

struct Moments {
    float mean, variance;
};

// Mean and (biased) variance of element(0..count), by one block; every thread receives them.
template <typename Element>
__device__ Moments block_moments(int64_t count, Element element) {
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += element(i);
    const float mean = block_reduce(sum, Sum()) / count;
    float squares = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        const float centred = element(i) - mean;
        squares += centred * centred;
    }
    return {mean, block_reduce(squares, Sum()) / count};
}

// Scale and shift per channel; null pointers stand for 1 and 0.
struct Affine {
    const scalar_t *weight = nullptr, *bias = nullptr;
    __device__ float operator()(float value, int64_t channel) const {
        if (weight != nullptr) value *= to_float(weight[channel]);
        return bias != nullptr ? value + to_float(bias[channel]) : value;
    }
};

// One block per sample and group of channels, which lie next to each other.
template <typename Epilogue>
__global__ void group_norm_kernel(scalar_t* output, const scalar_t* x, Channels shape, int64_t groups, Affine affine,
                                  float eps, Epilogue epilogue) {
    const int64_t per_group = shape.channels / groups, count = per_group * shape.points;
    for (int64_t group = blockIdx.x; group < shape.batch * groups; group += gridDim.x) {
        const scalar_t* first = x + group * count;
        const Moments m = block_moments(count, [&](int64_t i) { return to_float(first[i]); });
        const float scale = rsqrtf(m.variance + eps);
        for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
            const int64_t channel = group % groups * per_group + i / shape.points;
            const float value = affine((to_float(first[i]) - m.mean) * scale, channel);
            output[group * count + i] = from_float(epilogue(value, group * count + i, channel));
        }
    }
}

// Group normalisation; instance normalisation with as many groups as channels. `output` may be `x`.
template <typename Epilogue = Plain>
static void group_norm(scalar_t* output, const scalar_t* x, Channels shape, int64_t groups, Affine affine, float eps,
                       Epilogue epilogue = Epilogue()) {
    group_norm_kernel<<<blocks_for(shape.batch * groups, 1), THREADS>>>(output, x, shape, groups, affine, eps,
                                                                        epilogue);
    check(cudaGetLastError());
}

// One block per row; scale and shift go by column.
template <typename Epilogue>
__global__ void layer_norm_kernel(
    scalar_t* output, const scalar_t* x, int64_t rows, int64_t width, Affine affine, float eps, Epilogue epilogue) {
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const scalar_t* first = x + row * width;
        const Moments m = block_moments(width, [&](int64_t i) { return to_float(first[i]); });
        const float scale = rsqrtf(m.variance + eps);
        for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
            const float value = affine((to_float(first[i]) - m.mean) * scale, i);
            output[row * width + i] = from_float(epilogue(value, row * width + i, i));
        }
    }
}

// Layer normalisation over the last axes together. `output` may be `x`.
template <typename Epilogue = Plain>
static void layer_norm(scalar_t* output, const scalar_t* x, int64_t rows, int64_t width, Affine affine, float eps,
                       Epilogue epilogue = Epilogue()) {
    layer_norm_kernel<<<blocks_for(rows, 1), THREADS>>>(output, x, rows, width, affine, eps, epilogue);
    check(cudaGetLastError());
}

// One block per channel: its mean and variance over samples and points, then the scaled values.
template <typename Epilogue>
__global__ void batch_norm_kernel(
    scalar_t* output, const scalar_t* x, Channels shape, Affine affine, float eps, Epilogue epilogue) {
    for (int64_t channel = blockIdx.x; channel < shape.channels; channel += gridDim.x) {
        const auto place = [&](int64_t i) {
            return (i / shape.points * shape.channels + channel) * shape.points + i % shape.points;
        };
        const int64_t count = shape.batch * shape.points;
        const Moments m = block_moments(count, [&](int64_t i) { return to_float(x[place(i)]); });
        const float scale = rsqrtf(m.variance + eps);
        for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
            const int64_t at = place(i);
            output[at] = from_float(epilogue(affine((to_float(x[at]) - m.mean) * scale, channel), at, channel));
        }
    }
}

// Batch normalisation with the statistics of the batch. `output` may be `x`.
template <typename Epilogue = Plain>
static void batch_norm(scalar_t* output, const scalar_t* x, Channels shape, Affine affine, float eps,
                       Epilogue epilogue = Epilogue()) {
    batch_norm_kernel<<<blocks_for(shape.channels, 1), 1024>>>(output, x, shape, affine, eps, epilogue);
    check(cudaGetLastError());
}

template <typename Epilogue>
__global__ void batch_norm_inference_kernel(scalar_t* output, const scalar_t* x, const scalar_t* running_mean,
                                            const scalar_t* running_var, Channels shape, Affine affine, float eps,
                                            Epilogue epilogue) {
    for (int64_t i = first_index(); i < shape.count(); i += index_step()) {
        const int64_t channel = i / shape.points % shape.channels;
        const float centred = to_float(x[i]) - to_float(running_mean[channel]);
        const float value = affine(centred * rsqrtf(to_float(running_var[channel]) + eps), channel);
        output[i] = from_float(epilogue(value, i, channel));
    }
}

// Batch normalisation with running statistics that are given. `output` may be `x`.
template <typename Epilogue = Plain>
static void batch_norm_inference(scalar_t* output, const scalar_t* x, const scalar_t* running_mean,
                                 const scalar_t* running_var, Channels shape, Affine affine, float eps,
                                 Epilogue epilogue = Epilogue()) {
    batch_norm_inference_kernel<<<blocks_for(shape.count()), THREADS>>>(output, x, running_mean, running_var, shape,
                                                                        affine, eps, epilogue);
    check(cudaGetLastError());
}

// x / max(its Euclidean norm, least), along an axis, one block per line.
__global__ void normalize_kernel(scalar_t* output, const scalar_t* x, AxisView view, float least) {
    for (int64_t line = blockIdx.x; line < view.lines(); line += gridDim.x) {
        const int64_t base = view.base(line);
        float squares = 0.0f;
        for (int64_t i = threadIdx.x; i < view.extent; i += blockDim.x) {
            const float value = to_float(x[base + i * view.inner]);
            squares += value * value;
        }
        const float length = fmaxf(sqrtf(block_reduce(squares, Sum())), least);
        for (int64_t i = threadIdx.x; i < view.extent; i += blockDim.x) {
            const int64_t at = base + i * view.inner;
            output[at] = from_float(to_float(x[at]) / length);
        }
    }
}

// torch.nn.functional.normalize. `output` may be `x`.
static void normalize(scalar_t* output, const scalar_t* x, AxisView view, float least = 1e-12f) {
    normalize_kernel<<<blocks_for(view.lines(), 1), THREADS>>>(output, x, view, least);
    check(cudaGetLastError());
}

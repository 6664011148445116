// Spectra of frames: frames are cut and windowed, transformed as complex lines, and half of each is stored.
#include <kernelblaster/kernels/fft.cuh>

struct Cut {
    float2* to;
    const float *x, *window;
    int64_t length, frame, hop, frames;
    __device__ void operator()(int64_t i) const {
        const int64_t place = i % frame, number = i / frame % frames, signal = i / frame / frames;
        int64_t at = number * hop + place - frame / 2;
        at = at < 0 ? -at : at >= length ? 2 * length - 2 - at : at;
        to[i] = make_float2(window[place] * x[signal * length + at], 0.0f);
    }
};

struct Keep {
    float2* output;
    const float2* from;
    int64_t frame;
    __device__ void operator()(int64_t i) const {
        const int64_t kept = frame / 2 + 1;
        output[i] = from[i / kept * frame + i % kept];
    }
};

void launch_gpu_implementation(void* output, void* x, void* window, int64_t signals, int64_t length, int64_t frame,
                               int64_t hop) {
    Workspace scratch;
    const int64_t frames = length / hop + 1, count = signals * frames * frame;
    float2 *data = take_complex(scratch, count), *other = take_complex(scratch, count);
    for_each(count, Cut{data, in(x), in(window), length, frame, hop, frames});
    const float2* result = transform(data, other, Lines{signals * frames, frame, 1}, -1.0f);
    for_each(signals * frames * (frame / 2 + 1), Keep{static_cast<float2*>(output), result, frame});
}

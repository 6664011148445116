// Fourier transforms of lines whose length is a power of two: one launch per factor of two (Stockham's order).
#pragma once
#include <kernelblaster/kernels/workspace.cuh>

__device__ __forceinline__ float2 times(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// `lines` lines of `length` complex numbers; numbers of a line lie `step` apart. Lines are contiguous where step is 1,
// else they lie side by side: line i begins at i / step * length * step + i % step.
struct Lines {
    int64_t lines, length, step;
    __device__ int64_t at(int64_t line, int64_t i) const {
        return step == 1 ? line * length + i : (line / step * length + i) * step + line % step;
    }
};

// One pass: pairs half a line apart become neighbouring groups of `done` numbers.
struct Butterfly {
    float2* to;
    const float2* from;
    Lines shape;
    int64_t done;
    float sign;
    __device__ void operator()(int64_t i) const {
        const int64_t half = shape.length / 2, line = i / half, pair = i % half, place = pair % done;
        const float angle = sign * static_cast<float>(place) / static_cast<float>(done);
        float sine, cosine;
        sincospif(angle, &sine, &cosine);
        const float2 a = from[shape.at(line, pair)];
        const float2 b = times(from[shape.at(line, pair + half)], make_float2(cosine, sine));
        const int64_t group = (pair - place) * 2 + place;
        to[shape.at(line, group)] = make_float2(a.x + b.x, a.y + b.y);
        to[shape.at(line, group + done)] = make_float2(a.x - b.x, a.y - b.y);
    }
};

// Transforms every line between two buffers and returns the one that holds the result; both are changed. The sign is -1
// forward and 1 backward; nothing is scaled.
static float2* transform(float2* data, float2* other, Lines shape, float sign) {
    for (int64_t done = 1; done < shape.length; done *= 2) {
        for_each(shape.lines * (shape.length / 2), Butterfly{other, data, shape, done, sign});
        float2* written = other;
        other = data;
        data = written;
    }
    return data;
}

static float2* take_complex(Workspace& scratch, int64_t count) {
    return reinterpret_cast<float2*>(scratch.take_float(2 * count));
}

// Images: reads at places that may lie outside, and between pixels.
#pragma once
#include <kernelblaster/kernels/elementwise.cuh>

// One image, rows of `width` pixels.
struct Image {
    const scalar_t* data;
    int64_t height, width;

    __device__ bool holds(int64_t row, int64_t column) const {
        return row >= 0 && row < height && column >= 0 && column < width;
    }
    __device__ float at(int64_t row, int64_t column) const { return to_float(data[row * width + column]); }

    // 0 outside.
    __device__ float or_zero(int64_t row, int64_t column) const { return holds(row, column) ? at(row, column) : 0.0f; }

    // Outside as if a mirror stood on the border pixels; at most one extent beyond them.
    __device__ float reflected(int64_t row, int64_t column) const {
        row = row < 0 ? -row : row >= height ? 2 * height - 2 - row : row;
        column = column < 0 ? -column : column >= width ? 2 * width - 2 - column : column;
        return at(row, column);
    }

    // Between four pixels, linearly in both directions; places outside become the nearest on the border.
    __device__ float sample(float row, float column) const {
        row = clamp(row, 0.0f, static_cast<float>(height - 1));
        column = clamp(column, 0.0f, static_cast<float>(width - 1));
        const int64_t top = static_cast<int64_t>(row), left = static_cast<int64_t>(column);
        const int64_t bottom = top + 1 < height ? top + 1 : top, right = left + 1 < width ? left + 1 : left;
        const float down = row - static_cast<float>(top), over = column - static_cast<float>(left);
        const float above = at(top, left) + over * (at(top, right) - at(top, left));
        const float below = at(bottom, left) + over * (at(bottom, right) - at(bottom, left));
        return above + down * (below - above);
    }
};

// Pixel i of a batch of images.
struct Pixel {
    int64_t image, row, column;
    __device__ Pixel(int64_t i, int64_t height, int64_t width)
        : image(i / (height * width)), row(i / width % height), column(i % width) {}
};

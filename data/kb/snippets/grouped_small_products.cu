// Many small products of different sizes in one launch: warps take tiles from a common list. The host adds up how many
// tiles each product has; a warp finds its product by binary search.
#include "check.cuh"

#include <cuda_fp16.h>

struct Product {
    const half *a, *b;  // m x k and n x k
    float *c;           // m x n
    int m, n, k;
};

__device__ unsigned pair(const half *x, int row, int rows, int column, int columns) {
    half low = row < rows && column < columns ? x[row * columns + column] : half(0);
    half high = row < rows && column + 1 < columns ? x[row * columns + column + 1] : half(0);
    half2 both = __halves2half2(low, high);
    return *reinterpret_cast<unsigned *>(&both);
}

// A warp makes 16 x 8 of one product, straight from registers.
__global__ void multiply_all(const Product *products, const int *ends, int count, int total) {
    int warps = gridDim.x * blockDim.x / 32, lane = threadIdx.x % 32, two = lane % 4 * 2;
    for (int item = (blockIdx.x * blockDim.x + threadIdx.x) / 32; item < total; item += warps) {
        int low = 0, high = count - 1;  // the first product that ends beyond the item; empty ones are passed over
        while (low < high) {
            int middle = (low + high) / 2;
            if (ends[middle] > item) high = middle; else low = middle + 1;
        }
        const Product &p = products[low];
        int tile = item - (low ? ends[low - 1] : 0), across = (p.n + 7) / 8, row = tile / across * 16 + lane / 4, column = tile % across * 8;
        float d[4] = {};
        for (int k = 0; k < p.k; k += 16) {
            unsigned a[4], b[2];
            for (int e = 0; e < 4; ++e) a[e] = pair(p.a, row + e % 2 * 8, p.m, k + two + e / 2 * 8, p.k);
            for (int e = 0; e < 2; ++e) b[e] = pair(p.b, column + lane / 4, p.n, k + two + e * 8, p.k);
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
        }
        for (int e = 0; e < 4; ++e)
            if (row + e / 2 * 8 < p.m && column + two + e % 2 < p.n) p.c[(row + e / 2 * 8) * p.n + column + two + e % 2] = d[e];
    }
}

int main() {
    const int sizes[][3] = {{5, 7, 9}, {16, 8, 16}, {0, 4, 4}, {33, 17, 40}, {1, 1, 1}};
    const int count = sizeof(sizes) / sizeof(sizes[0]);
    std::vector<Product> products;
    std::vector<int> ends;
    std::vector<std::vector<float>> expected;
    int total = 0;
    for (const auto &[m, n, k] : sizes) {
        std::vector<float> left = values(m * k, 12 + total), right = values(n * k, 99 + total), sums(m * n);
        std::vector<half> a(left.begin(), left.end()), b(right.begin(), right.end());
        for (int y = 0; y < m; ++y)
            for (int x = 0; x < n; ++x) {
                double sum = 0;
                for (int i = 0; i < k; ++i) sum += float(a[y * k + i]) * float(b[x * k + i]);
                sums[y * n + x] = sum;
            }
        float *c = m ? on_device(std::vector<float>(m * n, NAN)) : nullptr;
        products.push_back({m ? on_device(a) : nullptr, on_device(b), c, m, n, k});
        ends.push_back(total += (m + 15) / 16 * ((n + 7) / 8));
        expected.push_back(sums);
    }
    multiply_all<<<2, 64>>>(on_device(products), on_device(ends), count, total);
    std::vector<float> found, all;
    for (int i = 0; i < count; ++i) {
        std::vector<float> own = on_host(products[i].c, expected[i].size());
        found.insert(found.end(), own.begin(), own.end());
        all.insert(all.end(), expected[i].begin(), expected[i].end());
    }
    return compare(found, all, 1e-4f);
}

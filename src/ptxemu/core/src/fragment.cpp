#include "fragment.hpp"

#include <map>
#include <mutex>
#include <tuple>

namespace ptxemu {
namespace {

struct Place {
    int row, column;
};

// One element of one block: a block has 16 or 8 rows (A, C) and 8 columns (B, C).
Place in_block(Part part, bool tall, int per, int reg, int element, int lane) {
    const int group = lane / 4, member = lane % 4;
    if (part == Part::c) {
        const int index = reg * per + element;
        return {group + 8 * (index / 2), member * 2 + index % 2};
    }
    const int step = part == Part::a && tall ? reg / 2 : reg;
    const int along = member * per + element + 4 * per * step;
    if (part == Part::b) return {along, group};
    return {group + (tall ? 8 * (reg % 2) : 0), along};
}

Fragment build(Part part, Extent extent, int bits) {
    Fragment result;
    const bool tall = extent.m != 8;
    const int per = bits >= 32 ? 1 : 32 / bits;
    const int block_rows = tall ? 16 : 8;
    result.rows = part == Part::b ? extent.k : extent.m;
    result.columns = part == Part::a ? extent.k : extent.n;
    result.per_register = per;
    const int block_elements = part == Part::a ? block_rows * extent.k : part == Part::b ? extent.k * 8 : block_rows * 8;
    const int block_registers = block_elements / kLanes / per;
    const int down = part == Part::b ? 1 : extent.m / block_rows;
    const int across = part == Part::a ? 1 : extent.n / 8;
    result.registers = block_registers * down * across;
    for (int reg = 0; reg < result.registers; ++reg) {
        const int block = reg / block_registers;
        const int row = block % down * block_rows, column = block / down * 8;
        for (int element = 0; element < per; ++element)
            for (int lane = 0; lane < kLanes; ++lane) {
                const Place at = in_block(part, tall, per, reg % block_registers, element, lane);
                result.place.push_back(static_cast<u16>((row + at.row) * result.columns + column + at.column));
            }
    }
    return result;
}

}  // namespace

const Fragment& fragment(Part part, Extent extent, int bits) {
    using Key = std::tuple<Part, int, int, int, int>;
    static std::mutex mutex;
    static std::map<Key, Fragment> known;
    thread_local std::map<Key, const Fragment*> seen;
    const Key key{part, extent.m, extent.n, extent.k, bits};
    const Fragment*& mine = seen[key];
    if (mine == nullptr) {
        const std::lock_guard<std::mutex> lock(mutex);
        const auto found = known.find(key);
        mine = &(found != known.end() ? found : known.emplace(key, build(part, extent, bits)).first)->second;
    }
    return *mine;
}

}  // namespace ptxemu

#include "loss_kernel.hpp"

#include <hwy/aligned_allocator.h>

#include <algorithm>

// Arrays of vectors, as used here, do not exist for instruction sets with vectors of unknown length.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "specialization/loss_kernel.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>
// After foreach_target, which includes this file once for every instruction set.
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace widelimit::specialization::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kTile = 64;

template <typename T>
using Tag = hn::CappedTag<T, 16>;

template <typename T>
double lane_sum(hn::Vec<Tag<T>> v) {
  const Tag<T> d;
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, v)));
}

/// One tile, and the scratch memory of a block.
template <typename T>
struct Tile {
  const KernelBlock<T>& block;
  const T* values;
  const T* weights;
  T* scores;     ///< heads x tokens x kTile: chi, then sigma's s, then G.
  T* aggregate;  ///< tokens x lanes: a, then g.
  T* per_head;   ///< heads x lanes: 1 - sum s of softmax1.
  T* offsets;    ///< 2 heads x lanes: sums for b, then for v.
  double* sums;
  std::size_t columns() const { return block.tokens * kTile; }
  /// The scores of a head at a token, from sample i of the tile on.
  T* score(std::size_t head, std::size_t token, std::size_t i) const {
    return scores + head * columns() + token * kTile + i;
  }
};

/// chi = [m r] (values), kHeads heads and two vectors of columns at a time.
template <std::size_t kHeads, typename T>
void score_heads(const Tile<T>& tile, std::size_t head) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d), columns = tile.columns(), rows = tile.block.rows;
  for (std::size_t c = 0; c < columns; c += 2 * lanes) {
    hn::Vec<Tag<T>> sum[kHeads][2];
    for (auto& pair : sum) pair[0] = pair[1] = hn::Zero(d);
    for (std::size_t row = 0; row < rows; ++row) {
      const auto z0 = hn::Load(d, tile.values + row * columns + c);
      const auto z1 = hn::Load(d, tile.values + row * columns + c + lanes);
      for (std::size_t h = 0; h < kHeads; ++h) {
        const auto weight = hn::Set(d, tile.block.head_rows[(head + h) * rows + row]);
        sum[h][0] = hn::MulAdd(weight, z0, sum[h][0]);
        sum[h][1] = hn::MulAdd(weight, z1, sum[h][1]);
      }
    }
    for (std::size_t h = 0; h < kHeads; ++h) {
      hn::Store(sum[h][0], d, tile.scores + (head + h) * columns + c);
      hn::Store(sum[h][1], d, tile.scores + (head + h) * columns + c + lanes);
    }
  }
}

/// Adds G (values)^T for kHeads heads and kRows rows.
template <std::size_t kHeads, std::size_t kRows, typename T>
void pull_back(const Tile<T>& tile, std::size_t head, std::size_t row) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d), columns = tile.columns();
  hn::Vec<Tag<T>> sum[kHeads][kRows];
  for (auto& line : sum)
    for (auto& entry : line) entry = hn::Zero(d);
  for (std::size_t c = 0; c < columns; c += lanes)
    for (std::size_t h = 0; h < kHeads; ++h) {
      const auto gradient = hn::Load(d, tile.scores + (head + h) * columns + c);
      for (std::size_t k = 0; k < kRows; ++k)
        sum[h][k] = hn::MulAdd(gradient, hn::Load(d, tile.values + (row + k) * columns + c), sum[h][k]);
    }
  for (std::size_t h = 0; h < kHeads; ++h)
    for (std::size_t k = 0; k < kRows; ++k)
      tile.sums[KernelLayout::head_rows + (head + h) * tile.block.rows + row + k] += lane_sum<T>(sum[h][k]);
}

template <std::size_t kHeads, typename T>
void pull_back_rows(const Tile<T>& tile, std::size_t head) {
  std::size_t row = 0;
  for (; row + 4 <= tile.block.rows; row += 4) pull_back<kHeads, 4>(tile, head, row);
  for (; row < tile.block.rows; ++row) pull_back<kHeads, 1>(tile, head, row);
}

/// Whether all heads share one normaliser; otherwise each has its own.
template <typename T>
bool is_joint(const KernelBlock<T>& block) {
  return block.activation == HeadActivation::bayes;
}

/// dsigma / ds of a head, over the number of heads.
template <typename T>
T share_of(const KernelBlock<T>& block, std::size_t head) {
  if (is_joint(block)) return T{1};
  const T factor = block.activation == HeadActivation::softmaxv   ? block.v[head]
                   : block.activation == HeadActivation::softmax1 ? block.v[0]
                                                                  : T{1};
  return factor / static_cast<T>(block.heads);
}

/// exp(chi - maximum) of the heads that share a normaliser, normalised; adds their shares to the aggregate.
template <typename T>
void normalise(const Tile<T>& tile, std::size_t first, std::size_t last, std::size_t i) {
  const Tag<T> d;
  const std::size_t tokens = tile.block.tokens, lanes = hn::Lanes(d);
  const bool joint = is_joint(tile.block), may_rest = tile.block.activation == HeadActivation::softmax1;
  auto top = hn::Set(d, may_rest ? tile.block.b[first] : hwy::LowestValue<T>());
  for (std::size_t h = first; h < last; ++h) {
    const auto bias = hn::Set(d, joint ? tile.block.b[h] : T{0});
    for (std::size_t l = 0; l < tokens; ++l)
      top = hn::Max(top, hn::Add(hn::Load(d, tile.score(h, l, i)), bias));
  }
  auto total = hn::Zero(d);
  if (may_rest) total = hn::Exp(d, hn::Sub(hn::Set(d, tile.block.b[first]), top));
  const auto idle = total;
  for (std::size_t h = first; h < last; ++h) {
    const auto shift = hn::Sub(hn::Set(d, joint ? tile.block.b[h] : T{0}), top);
    for (std::size_t l = 0; l < tokens; ++l) {
      const auto weight = hn::Exp(d, hn::Add(hn::Load(d, tile.score(h, l, i)), shift));
      hn::Store(weight, d, tile.score(h, l, i));
      total = hn::Add(total, weight);
    }
  }
  const auto scale = hn::Div(hn::Set(d, T{1}), total);
  hn::Store(hn::Mul(idle, scale), d, tile.per_head + first * lanes);
  for (std::size_t h = first; h < last; ++h) {
    const auto share = hn::Set(d, share_of(tile.block, h));
    for (std::size_t l = 0; l < tokens; ++l) {
      T* const a = tile.aggregate + l * lanes;
      const auto s = hn::Mul(hn::Load(d, tile.score(h, l, i)), scale);
      hn::Store(s, d, tile.score(h, l, i));
      hn::Store(hn::MulAdd(share, s, hn::Load(d, a)), d, a);
    }
  }
}

/// From a to g = 2 w (a - delta), adding w l and w l^2 to the sums.
template <typename T>
void residuals(const Tile<T>& tile, std::size_t i) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto weight = hn::Load(d, tile.weights + i);
  const auto twice = hn::Add(weight, weight);
  auto loss = hn::Zero(d);
  for (std::size_t l = 0; l < tile.block.tokens; ++l) {
    auto residual = hn::Load(d, tile.aggregate + l * lanes);
    if (l == 0) residual = hn::Sub(residual, hn::Set(d, T{1}));
    loss = hn::MulAdd(residual, residual, loss);
    hn::Store(hn::Mul(twice, residual), d, tile.aggregate + l * lanes);
  }
  tile.sums[KernelLayout::loss] += lane_sum<T>(hn::Mul(weight, loss));
  tile.sums[KernelLayout::squared_loss] += lane_sum<T>(hn::Mul(weight, hn::Mul(loss, loss)));
}

/// Adds what a head with its own normaliser has of the derivatives by b and v; `own` is sum_l g_l s_l.
template <typename T>
void add_offsets(const Tile<T>& tile, std::size_t head, hn::Vec<Tag<T>> own) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d), heads = tile.block.heads;
  T* const b = tile.offsets + head * lanes;
  T* const v =
      tile.offsets + (heads + (tile.block.activation == HeadActivation::softmax1 ? 0 : head)) * lanes;
  const auto share = hn::Set(d, share_of(tile.block, head));
  const auto rest = hn::Load(d, tile.per_head + head * lanes);
  hn::Store(hn::NegMulAdd(hn::Mul(share, rest), own, hn::Load(d, b)), d, b);
  hn::Store(hn::MulAdd(own, hn::Set(d, T{1} / static_cast<T>(heads)), hn::Load(d, v)), d, v);
}

/// From s to G of the heads that share a normaliser, and the sums for b and v; `a` is the tile's.
template <typename T>
void differentiate(const Tile<T>& tile, std::size_t first, std::size_t last, const T* a, std::size_t i) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d), tokens = tile.block.tokens;
  const bool joint = is_joint(tile.block);
  auto mean = hn::Zero(d);
  for (std::size_t l = 0; l < tokens; ++l) {
    const auto attended = hn::Load(d, joint ? a + l * lanes : tile.score(first, l, i));
    mean = hn::MulAdd(hn::Load(d, tile.aggregate + l * lanes), attended, mean);
  }
  for (std::size_t h = first; h < last; ++h) {
    const auto share = hn::Set(d, share_of(tile.block, h));
    auto sum = hn::Load(d, tile.offsets + h * lanes);
    for (std::size_t l = 0; l < tokens; ++l) {
      const auto pull = hn::Sub(hn::Load(d, tile.aggregate + l * lanes), mean);
      const auto gradient = hn::Mul(hn::Mul(share, hn::Load(d, tile.score(h, l, i))), pull);
      hn::Store(gradient, d, tile.score(h, l, i));
      sum = hn::Add(sum, gradient);
    }
    if (joint) hn::Store(sum, d, tile.offsets + h * lanes);
  }
  if (!joint) add_offsets(tile, first, mean);
}

/// Scores to G, one vector of samples at a time.
template <typename T>
void attend(const Tile<T>& tile, T* a) {
  const std::size_t lanes = hn::Lanes(Tag<T>()), entries = tile.block.tokens * lanes;
  const std::size_t heads = tile.block.heads, group = is_joint(tile.block) ? heads : 1;
  for (std::size_t i = 0; i < kTile; i += lanes) {
    std::fill_n(tile.aggregate, entries, T{0});
    for (std::size_t h = 0; h < heads; h += group) normalise(tile, h, h + group, i);
    std::copy_n(tile.aggregate, entries, a);
    residuals(tile, i);
    if (tile.block.wanted == LossDetail::loss_only) continue;
    for (std::size_t h = 0; h < heads; h += group) differentiate(tile, h, h + group, a, i);
  }
}

/// Adds w G G^T; G holds the weight once, so one factor is divided out again.
template <typename T>
void add_noise(const Tile<T>& tile, std::size_t offset) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d), columns = tile.columns(), heads = tile.block.heads;
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t k = 0; k <= h; ++k) {
      auto sum = hn::Zero(d);
      for (std::size_t c = 0; c < columns; c += lanes) {
        const auto weight = hn::Load(d, tile.weights + c % kTile);
        const auto used = hn::Gt(weight, hn::Zero(d));
        const auto inverse = hn::IfThenElseZero(used, hn::Div(hn::Set(d, T{1}), weight));
        const auto left = hn::Load(d, tile.scores + h * columns + c);
        sum = hn::MulAdd(hn::Mul(left, inverse), hn::Load(d, tile.scores + k * columns + c), sum);
      }
      const double value = lane_sum<T>(sum);
      tile.sums[offset + h * heads + k] += value;
      if (k != h) tile.sums[offset + k * heads + h] += value;
    }
}

template <typename T>
void add_tile(const Tile<T>& tile, T* a) {
  const std::size_t heads = tile.block.heads;
  std::size_t h = 0;
  for (; h + 4 <= heads; h += 4) score_heads<4>(tile, h);
  for (; h + 2 <= heads; h += 2) score_heads<2>(tile, h);
  for (; h < heads; ++h) score_heads<1>(tile, h);
  attend(tile, a);
  if (tile.block.wanted == LossDetail::loss_only) return;
  h = 0;
  for (; h + 4 <= heads; h += 4) pull_back_rows<4>(tile, h);
  for (; h + 2 <= heads; h += 2) pull_back_rows<2>(tile, h);
  for (; h < heads; ++h) pull_back_rows<1>(tile, h);
}

template <typename T>
void add_block_of(const KernelBlock<T>& block, double* sums) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d), heads = block.heads, columns = block.tokens * kTile;
  const auto scores = hwy::AllocateAligned<T>(heads * columns);
  const auto small = hwy::AllocateAligned<T>((2 * block.tokens + 3 * heads) * lanes);
  T* const per_head = small.get() + 2 * block.tokens * lanes;
  T* const offsets = per_head + heads * lanes;
  const KernelLayout layout(block.activation, heads, block.rows);
  for (std::size_t t = 0; t < block.tiles; ++t) {
    const Tile<T> tile{block,
                       block.values + t * block.rows * columns,
                       block.sample_weights + t * kTile,
                       scores.get(),
                       small.get(),
                       per_head,
                       offsets,
                       sums};
    std::fill_n(offsets, 2 * heads * lanes, T{0});
    add_tile(tile, small.get() + block.tokens * lanes);
    for (std::size_t h = 0; h < heads; ++h)
      sums[layout.b + h] += lane_sum<T>(hn::Load(d, offsets + h * lanes));
    if (has_scale(block.activation))
      for (std::size_t k = 0; k < layout.noise - layout.v; ++k)
        sums[layout.v + k] += lane_sum<T>(hn::Load(d, offsets + (heads + k) * lanes));
    if (block.wanted == LossDetail::gradients_and_noise) add_noise(tile, layout.noise);
  }
}

void add_block_float(const KernelBlock<float>& block, double* sums) { add_block_of(block, sums); }
void add_block_double(const KernelBlock<double>& block, double* sums) { add_block_of(block, sums); }

}  // namespace widelimit::specialization::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::specialization {

HWY_EXPORT(add_block_float);
HWY_EXPORT(add_block_double);

void add_block(const KernelBlock<float>& block, double* sums) {
  HWY_DYNAMIC_DISPATCH(add_block_float)(block, sums);
}
void add_block(const KernelBlock<double>& block, double* sums) {
  HWY_DYNAMIC_DISPATCH(add_block_double)(block, sums);
}

}  // namespace widelimit::specialization
#endif

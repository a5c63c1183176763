#include "specialization/loss_kernel.hpp"

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

constexpr std::size_t samples_a_tile = 64;

// Vectors have at most 16 numbers, so that two of them always divide the 64 samples of a tile.
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
  T* scores;     ///< heads x tokens x samples_a_tile: chi, then sigma's s, then G.
  T* aggregate;  ///< tokens x lanes: a, then g.
  T* per_head;   ///< heads x lanes: 1 - sum s of softmax1.
  T* offsets;    ///< 2 heads x lanes: sums for b, then for v.
  double* sums;
  std::size_t columns() const { return block.tokens * samples_a_tile; }
};

/// chi = [m r] (values), heads_a_tile heads and two vectors of columns at a time.
template <std::size_t heads_a_tile, typename T>
void score_heads(const Tile<T>& tile, std::size_t head) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d), columns = tile.columns(), rows = tile.block.rows;
  for (std::size_t c = 0; c < columns; c += 2 * lanes) {
    hn::Vec<Tag<T>> sum[heads_a_tile][2];
    for (auto& pair : sum) pair[0] = pair[1] = hn::Zero(d);
    for (std::size_t row = 0; row < rows; ++row) {
      const auto z0 = hn::Load(d, tile.values + row * columns + c);
      const auto z1 = hn::Load(d, tile.values + row * columns + c + lanes);
      for (std::size_t h = 0; h < heads_a_tile; ++h) {
        const auto weight = hn::Set(d, tile.block.head_rows[(head + h) * rows + row]);
        sum[h][0] = hn::MulAdd(weight, z0, sum[h][0]);
        sum[h][1] = hn::MulAdd(weight, z1, sum[h][1]);
      }
    }
    for (std::size_t h = 0; h < heads_a_tile; ++h) {
      hn::Store(sum[h][0], d, tile.scores + (head + h) * columns + c);
      hn::Store(sum[h][1], d, tile.scores + (head + h) * columns + c + lanes);
    }
  }
}

/// Adds G (values)^T for heads_a_tile heads and rows_a_pass rows: numbers that are loaded serve several of both.
template <std::size_t heads_a_tile, std::size_t rows_a_pass, typename T>
void pull_back(const Tile<T>& tile, std::size_t head, std::size_t row) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d), columns = tile.columns();
  hn::Vec<Tag<T>> sum[heads_a_tile][rows_a_pass];
  for (auto& line : sum)
    for (auto& entry : line) entry = hn::Zero(d);
  for (std::size_t c = 0; c < columns; c += lanes)
    for (std::size_t h = 0; h < heads_a_tile; ++h) {
      const auto gradient = hn::Load(d, tile.scores + (head + h) * columns + c);
      for (std::size_t k = 0; k < rows_a_pass; ++k)
        sum[h][k] = hn::MulAdd(gradient, hn::Load(d, tile.values + (row + k) * columns + c), sum[h][k]);
    }
  for (std::size_t h = 0; h < heads_a_tile; ++h)
    for (std::size_t k = 0; k < rows_a_pass; ++k)
      tile.sums[KernelLayout::head_rows + (head + h) * tile.block.rows + row + k] += lane_sum<T>(sum[h][k]);
}

template <std::size_t heads_a_tile, typename T>
void pull_back_rows(const Tile<T>& tile, std::size_t head) {
  std::size_t row = 0;
  for (; row + 4 <= tile.block.rows; row += 4) pull_back<heads_a_tile, 4>(tile, head, row);
  for (; row < tile.block.rows; ++row) pull_back<heads_a_tile, 1>(tile, head, row);
}

/// dsigma / ds of a head with its own normaliser, divided by the number of heads.
template <typename T>
T share_of(const KernelBlock<T>& block, std::size_t head) {
  const T factor = block.activation == HeadActivation::softmaxv   ? block.v[head]
                   : block.activation == HeadActivation::softmax1 ? block.v[0]
                                                                  : T{1};
  return factor / static_cast<T>(block.heads);
}

/// exp(chi - maximum) of one head, normalised; adds its share to the aggregate.
template <typename T>
void normalise_head(const Tile<T>& tile, std::size_t head, std::size_t i) {
  const Tag<T> d;
  const std::size_t tokens = tile.block.tokens, lanes = hn::Lanes(d);
  T* score = tile.scores + head * tile.columns() + i;
  const bool may_rest = tile.block.activation == HeadActivation::softmax1;
  // The largest score, of softmax1 also that of attending to nothing, is subtracted in the exponent.
  auto top = hn::Load(d, score);
  for (std::size_t l = 1; l < tokens; ++l) top = hn::Max(top, hn::Load(d, score + l * samples_a_tile));
  auto total = hn::Zero(d);
  if (may_rest) {
    const auto b = hn::Set(d, tile.block.b[head]);
    top = hn::Max(top, b);
    total = hn::Exp(d, hn::Sub(b, top));
  }
  const auto idle = total;
  for (std::size_t l = 0; l < tokens; ++l) {
    const auto weight = hn::Exp(d, hn::Sub(hn::Load(d, score + l * samples_a_tile), top));
    hn::Store(weight, d, score + l * samples_a_tile);
    total = hn::Add(total, weight);
  }
  const auto scale = hn::Div(hn::Set(d, T{1}), total);
  hn::Store(hn::Mul(idle, scale), d, tile.per_head + head * lanes);
  const auto share = hn::Set(d, share_of(tile.block, head));
  for (std::size_t l = 0; l < tokens; ++l) {
    const auto s = hn::Mul(hn::Load(d, score + l * samples_a_tile), scale);
    hn::Store(s, d, score + l * samples_a_tile);
    hn::Store(hn::MulAdd(share, s, hn::Load(d, tile.aggregate + l * lanes)), d, tile.aggregate + l * lanes);
  }
}

/// bayes: one normaliser for all heads and tokens. sigma = H s, so that the mean over heads is the sum of s.
template <typename T>
void normalise_jointly(const Tile<T>& tile, std::size_t i) {
  const Tag<T> d;
  const std::size_t tokens = tile.block.tokens, lanes = hn::Lanes(d), columns = tile.columns();
  auto top = hn::Add(hn::Load(d, tile.scores + i), hn::Set(d, tile.block.b[0]));
  for (std::size_t h = 0; h < tile.block.heads; ++h)
    for (std::size_t l = 0; l < tokens; ++l)
      top = hn::Max(top, hn::Add(hn::Load(d, tile.scores + h * columns + l * samples_a_tile + i),
                                 hn::Set(d, tile.block.b[h])));
  auto total = hn::Zero(d);
  for (std::size_t h = 0; h < tile.block.heads; ++h) {
    const auto shift = hn::Sub(hn::Set(d, tile.block.b[h]), top);
    for (std::size_t l = 0; l < tokens; ++l) {
      T* score = tile.scores + h * columns + l * samples_a_tile + i;
      const auto weight = hn::Exp(d, hn::Add(hn::Load(d, score), shift));
      hn::Store(weight, d, score);
      total = hn::Add(total, weight);
    }
  }
  const auto scale = hn::Div(hn::Set(d, T{1}), total);
  for (std::size_t h = 0; h < tile.block.heads; ++h)
    for (std::size_t l = 0; l < tokens; ++l) {
      T* score = tile.scores + h * columns + l * samples_a_tile + i;
      const auto s = hn::Mul(hn::Load(d, score), scale);
      hn::Store(s, d, score);
      hn::Store(hn::Add(s, hn::Load(d, tile.aggregate + l * lanes)), d, tile.aggregate + l * lanes);
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
    // The relevant token comes first in a tile.
    if (l == 0) residual = hn::Sub(residual, hn::Set(d, T{1}));
    loss = hn::MulAdd(residual, residual, loss);
    hn::Store(hn::Mul(twice, residual), d, tile.aggregate + l * lanes);
  }
  tile.sums[KernelLayout::loss] += lane_sum<T>(hn::Mul(weight, loss));
  tile.sums[KernelLayout::squared_loss] += lane_sum<T>(hn::Mul(weight, hn::Mul(loss, loss)));
}

/// From s to G of one head with its own normaliser, and the sums for b and v.
template <typename T>
void differentiate_head(const Tile<T>& tile, std::size_t head, std::size_t i) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d), heads = tile.block.heads;
  T* score = tile.scores + head * tile.columns() + i;
  auto own = hn::Zero(d);
  for (std::size_t l = 0; l < tile.block.tokens; ++l)
    own = hn::MulAdd(hn::Load(d, tile.aggregate + l * lanes), hn::Load(d, score + l * samples_a_tile), own);
  const auto share = hn::Set(d, share_of(tile.block, head));
  for (std::size_t l = 0; l < tile.block.tokens; ++l) {
    const auto pull = hn::Sub(hn::Load(d, tile.aggregate + l * lanes), own);
    hn::Store(hn::Mul(hn::Mul(share, hn::Load(d, score + l * samples_a_tile)), pull), d,
              score + l * samples_a_tile);
  }
  T* const b = tile.offsets + head * lanes;
  T* const v =
      tile.offsets + (heads + (tile.block.activation == HeadActivation::softmax1 ? 0 : head)) * lanes;
  // `rest` is 0 but for softmax1, so that only there b has a gradient.
  const auto rest = hn::Load(d, tile.per_head + head * lanes);
  hn::Store(hn::NegMulAdd(hn::Mul(share, rest), own, hn::Load(d, b)), d, b);
  hn::Store(hn::MulAdd(own, hn::Set(d, T{1} / static_cast<T>(heads)), hn::Load(d, v)), d, v);
}

/// bayes: G = s (g - <g, a>), and the gradient with respect to b is the sum of G over tokens.
template <typename T>
void differentiate_jointly(const Tile<T>& tile, const T* a, std::size_t i) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  auto joint = hn::Zero(d);
  for (std::size_t l = 0; l < tile.block.tokens; ++l)
    joint = hn::MulAdd(hn::Load(d, tile.aggregate + l * lanes), hn::Load(d, a + l * lanes), joint);
  for (std::size_t h = 0; h < tile.block.heads; ++h) {
    auto b = hn::Load(d, tile.offsets + h * lanes);
    for (std::size_t l = 0; l < tile.block.tokens; ++l) {
      T* score = tile.scores + h * tile.columns() + l * samples_a_tile + i;
      const auto pull = hn::Sub(hn::Load(d, tile.aggregate + l * lanes), joint);
      const auto gradient = hn::Mul(hn::Load(d, score), pull);
      hn::Store(gradient, d, score);
      b = hn::Add(b, gradient);
    }
    hn::Store(b, d, tile.offsets + h * lanes);
  }
}

/// Scores to G, one vector of samples at a time.
template <typename T>
void attend(const Tile<T>& tile, T* a) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d), entries = tile.block.tokens * lanes;
  const bool joint = tile.block.activation == HeadActivation::bayes;
  for (std::size_t i = 0; i < samples_a_tile; i += lanes) {
    std::fill_n(tile.aggregate, entries, T{0});
    if (joint) normalise_jointly(tile, i);
    for (std::size_t h = 0; h < tile.block.heads && !joint; ++h) normalise_head(tile, h, i);
    // residuals() turns the aggregate into g, while the joint gradient still needs a.
    std::copy_n(tile.aggregate, entries, a);
    residuals(tile, i);
    if (tile.block.wanted == LossDetail::loss_only) continue;
    if (joint) differentiate_jointly(tile, a, i);
    for (std::size_t h = 0; h < tile.block.heads && !joint; ++h) differentiate_head(tile, h, i);
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
        const auto weight = hn::Load(d, tile.weights + c % samples_a_tile);
        // Samples past the end of the set have the weight 0.
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
  const std::size_t lanes = hn::Lanes(d), heads = block.heads, columns = block.tokens * samples_a_tile;
  const auto scores = hwy::AllocateAligned<T>(heads * columns);
  // Scratch memory: aggregate and a copy of it [tokens], rests [heads], offsets [2 heads], a vector of samples each.
  const auto small = hwy::AllocateAligned<T>((2 * block.tokens + 3 * heads) * lanes);
  T* const per_head = small.get() + 2 * block.tokens * lanes;
  T* const offsets = per_head + heads * lanes;
  const KernelLayout layout(block.activation, heads, block.rows);
  for (std::size_t t = 0; t < block.tiles; ++t) {
    const Tile<T> tile{block,
                       block.values + t * block.rows * columns,
                       block.sample_weights + t * samples_a_tile,
                       scores.get(),
                       small.get(),
                       per_head,
                       offsets,
                       sums};
    // Offsets are summed within a tile in the precision of Scalar, across tiles in double.
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

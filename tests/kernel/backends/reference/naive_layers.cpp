#include "kernel/backends/reference/naive_layers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "kernel/backends/reference/naive_positions.hpp"

namespace widelimit::testing {
namespace {

using nlohmann::json;

Variances variances(const NaivePair& self) {
  Variances values;
  for (Index a = 0; a < self.k.rows(); ++a) values.push_back(self.k(a, a));
  return values;
}

NaivePair scaled_sum(const std::vector<const NaivePair*>& pairs, const std::vector<Real>& factors) {
  NaivePair sum{RealMatrix::Zero(pairs[0]->k.rows(), pairs[0]->k.cols()),
                RealMatrix::Zero(pairs[0]->k.rows(), pairs[0]->k.cols()), pairs[0]->same_input};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    sum.k += factors[i] * pairs[i]->k;
    sum.t += factors[i] * pairs[i]->t;
  }
  return sum;
}

}  // namespace

NaiveGaussian snapped(Real p, Real q, Real c) {
  constexpr Real roundings = 5e-17L;
  const Real size = std::sqrt(p) * std::sqrt(q);
  if (std::abs(c) < (1 - roundings) * size) return {p, q, c, p * q - c * c};
  return {p, q, c < 0 ? -size : size, 0};
}

NaiveGroup map_group(const NaiveGroup& group, const PairMap& map) {
  const Side left{0, variances(group.left)}, right{1, variances(group.right)};
  return {group.share, map(group.left, left, left), map(group.cross, left, right),
          map(group.right, right, right)};
}

NaiveGroup merged(const NaiveState& state) {
  std::vector<const NaivePair*> left, cross, right;
  std::vector<Real> shares;
  for (const NaiveGroup& group : state.groups) {
    left.push_back(&group.left);
    cross.push_back(&group.cross);
    right.push_back(&group.right);
    shares.push_back(group.share);
  }
  return {1, scaled_sum(left, shares), scaled_sum(cross, shares), scaled_sum(right, shares)};
}

NaiveState replace(NaiveState state, const PairMap& map) {
  const NaiveGroup group = map_group(merged(state), map);
  state.groups = {group};
  return state;
}

NaiveState map_each(NaiveState state, const PairMap& map) {
  for (NaiveGroup& group : state.groups) group = map_group(group, map);
  return state;
}

namespace {

enum class Match { same_tap, all_pairs };

RealMatrix gather(const RealMatrix& k, const Cover& left_windows, const Cover& right_windows, Match match) {
  RealMatrix sums = RealMatrix::Zero(static_cast<Index>(left_windows.members.size()),
                                     static_cast<Index>(right_windows.members.size()));
  for (Index a = 0; a < sums.rows(); ++a)
    for (Index b = 0; b < sums.cols(); ++b) {
      const auto& left = left_windows.members[static_cast<std::size_t>(a)];
      const auto& right = right_windows.members[static_cast<std::size_t>(b)];
      for (std::size_t i = 0; i < left.size(); ++i)
        for (std::size_t j = 0; j < right.size(); ++j)
          if ((match == Match::all_pairs || i == j) && left[i] >= 0 && right[j] >= 0)
            sums(a, b) += k(left[i], right[j]);
    }
  return sums;
}

/// Of both sides.
using Covers = std::array<Cover, 2>;

Covers covers(const NaiveState& state, const json& sizes, const json& layer) {
  const auto of_side = [&](std::size_t side) { return cover(state.shapes[side], sizes, layer); };
  return {of_side(0), of_side(1)};
}

/// The shapes and masks behind windows.
void move_on(NaiveState& state, const Covers& windows) {
  for (std::size_t side = 0; side < 2; ++side) {
    state.shapes[side] = windows[side].shape;
    state.masks[side] = mask_after(windows[side], state.masks[side]);
  }
}

/// Weights that positions do not share leave the covariance of equal positions only.
RealMatrix same_positions_only(const RealMatrix& k, const Shape& left, const Shape& right) {
  RealMatrix result = RealMatrix::Zero(k.rows(), k.cols());
  for (Index a = 0; a < k.rows(); ++a)
    for (Index b = 0; b < k.cols(); ++b)
      if (position_of(a, left) == position_of(b, right)) result(a, b) = k(a, b);
  return result;
}

/// Divides by the whole window, or by the positions that it sees, masked ones included.
Vector<Real> pool_weights(const Cover& windows, const json& layer) {
  Vector<Real> weights = Vector<Real>::Ones(static_cast<Index>(windows.members.size()));
  if (layer["layer"] == "sum_pool") return weights;
  const bool seen_only = layer["normalize_edges"] == true && layer["padding"] == "same";
  for (std::size_t a = 0; a < windows.members.size(); ++a) {
    const auto& members = windows.members[a];
    const auto outside = std::count(members.begin(), members.end(), Index{-1});
    weights(static_cast<Index>(a)) = 1 / static_cast<Real>(std::ssize(members) - (seen_only ? outside : 0));
  }
  return weights;
}

}  // namespace

namespace {

/// A transposed convolution leaves a position masked if one that it reads is.
NaiveMask mask_after_transposed(const Cover& taps, const NaiveMask& before) {
  NaiveMask counts;
  for (const auto& members : taps.members)
    counts.push_back(std::none_of(members.begin(), members.end(),
                                  [&](Index i) { return i >= 0 && !before[static_cast<std::size_t>(i)]; }));
  return counts;
}

/// What becomes of the means of K and T over the filter's taps.
NaivePair weighed(const RealMatrix& mean_k, const RealMatrix& mean_t, const json& layer, Real taps,
                  bool same_input) {
  const Real w = layer["weight_variance"].get<double>(), b = layer["bias_variance"].get<double>();
  const RealMatrix k = (w * mean_k.array() + b).matrix();
  if (layer.value("parametrisation", "ntk") == "ntk") return {k, k + w * mean_t, same_input};
  const Real weights = layer["input_width"].get<double>() / Real(layer["width_scale"].get<double>());
  const Real biases = layer["zero_biases"] == true || b > 0 ? 1 : 0;
  return {k, (weights * taps * mean_k.array() + biases + w * mean_t.array()).matrix(), same_input};
}

}  // namespace

NaiveState affine(const NaiveState& state, const json& layer) {
  if (layer["layer"] == "dense")
    return replace(state, [&](const NaivePair& pair, const Side&, const Side&) {
      return weighed(pair.k, pair.t, layer, 1, pair.same_input);
    });
  const bool local = layer["layer"] == "local_conv", transposed = layer["layer"] == "conv_transpose";
  const Covers windows =
      transposed ? Covers{transposed_cover(state.shapes[0], layer), transposed_cover(state.shapes[1], layer)}
                 : covers(state, layer["filter"], layer);
  const auto taps = static_cast<Real>(windows[0].members[0].size());
  NaiveState result = replace(state, [&](const NaivePair& pair, const Side& l, const Side& r) -> NaivePair {
    const Cover &left = windows[l.number], &right = windows[r.number];
    NaivePair behind =
        weighed(gather(pair.k, left, right, Match::same_tap) / taps,
                gather(pair.t, left, right, Match::same_tap) / taps, layer, taps, pair.same_input);
    if (local) {
      behind.k = same_positions_only(behind.k, left.shape, right.shape);
      behind.t = same_positions_only(behind.t, left.shape, right.shape);
    }
    return behind;
  });
  if (!transposed) {
    move_on(result, windows);
    return result;
  }
  for (std::size_t side = 0; side < 2; ++side) {
    result.shapes[side] = windows[side].shape;
    result.masks[side] = mask_after_transposed(windows[side], state.masks[side]);
  }
  return result;
}

NaiveState pool(const NaiveState& state, const json& layer) {
  const Covers windows = covers(state, layer["window"], layer);
  NaiveState result = map_each(state, [&](const NaivePair& pair, const Side& l, const Side& r) -> NaivePair {
    const Cover &left = windows[l.number], &right = windows[r.number];
    const auto pooled = [&](const RealMatrix& k) -> RealMatrix {
      return pool_weights(left, layer).asDiagonal() * gather(k, left, right, Match::all_pairs) *
             pool_weights(right, layer).asDiagonal();
    };
    return {pooled(pair.k), pooled(pair.t), pair.same_input};
  });
  move_on(result, windows);
  return result;
}

}  // namespace widelimit::testing

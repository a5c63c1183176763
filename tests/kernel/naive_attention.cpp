#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "kernel/naive_layers.hpp"

namespace widelimit::testing {
namespace {

using nlohmann::json;

/// Between positions of two inputs; distances are those of relative places, counted from 1.
RealMatrix position_covariance(const json& positions, const Shape& left_shape, const Shape& right_shape) {
  RealMatrix r = RealMatrix::Zero(position_count(left_shape), position_count(right_shape));
  const Real rho = positions["rho"].get<double>();
  for (Index a = 0; a < r.rows(); ++a)
    for (Index b = 0; b < r.cols(); ++b) {
      const Position left = position_of(a, left_shape), right = position_of(b, right_shape);
      if (positions["kind"] == "identity") r(a, b) = left == right ? rho : 0;
      if (positions["kind"] == "matrix")
        r(a, b) =
            rho * positions["matrix"][static_cast<std::size_t>(a)][static_cast<std::size_t>(b)].get<double>();
      if (positions["kind"] != "structured") continue;
      Real distance = 0;
      for (std::size_t i = 0; i < left.size(); ++i)
        distance += std::pow(static_cast<Real>(left[i] + 1) / static_cast<Real>(left_shape[i]) -
                                 static_cast<Real>(right[i] + 1) / static_cast<Real>(right_shape[i]),
                             2);
      r(a, b) = rho * std::exp(-positions["phi"].get<double>() * distance);
    }
  return r;
}

/// Weights of the positions that a position sees, 0 for others.
void weigh_row(RealMatrix& logits, Index a, const json& layer, const NaiveMask& counts) {
  const auto sees = [&](Index i) {
    return counts[static_cast<std::size_t>(i)] && (layer["causal"] != true || i <= a);
  };
  Real largest = logits(a, a);
  for (Index i = 0; i < logits.cols(); ++i)
    if (sees(i)) largest = std::max(largest, logits(a, i));
  for (Index i = 0; i < logits.cols(); ++i) {
    Real& logit = logits(a, i);
    if (!sees(i))
      logit = 0;
    else if (layer["weights"] == "softmax")
      logit = std::exp(logit - largest);
    else if (layer["weights"] == "relu")
      logit = std::max<Real>(logit, 0);
    else if (layer["weights"] == "abs")
      logit = std::abs(logit);
  }
  if (layer["weights"] == "softmax") logits.row(a) /= logits.row(a).sum();
}

void weigh(RealMatrix& logits, const json& layer, const NaiveMask& counts) {
  for (Index a = 0; a < logits.rows(); ++a)
    if (counts[static_cast<std::size_t>(a)])
      weigh_row(logits, a, layer, counts);
    else
      logits.row(a).setZero();
}

}  // namespace

NaiveState attention(const NaiveState& state, const json& layer) {
  if (layer["scaling"] != "inverse_width")
    throw std::logic_error("the naive kernel knows inverse_width attention only");
  const Real qk = layer["query_key_std"].get<double>(), ov = layer["output_value_variance"].get<double>();
  const Real bias = layer["bias_variance"].get<double>();
  const bool encoded = layer.contains("positions");
  const auto encode = [&](const RealMatrix& k, std::size_t left_side, std::size_t right_side) -> RealMatrix {
    if (!encoded) return k;
    const json& positions = layer["positions"];
    return positions["input_weight"].get<double>() * k +
           positions["position_weight"].get<double>() *
               position_covariance(positions, state.shapes[left_side], state.shapes[right_side]);
  };
  const auto weights = [&](const RealMatrix& self, std::size_t side) {
    RealMatrix logits = layer["tied"] == true ? RealMatrix(qk * encode(self, side, side))
                                              : RealMatrix(RealMatrix::Zero(self.rows(), self.cols()));
    weigh(logits, layer, state.masks[side]);
    return logits;
  };
  const NaiveGroup group = merged(state);
  const std::array<RealMatrix, 2> a{weights(group.left.k, 0), weights(group.right.k, 1)};
  const auto attend = [&](const NaivePair& pair, const Side& left, const Side& right) -> NaivePair {
    const bool in_values = encoded && layer["positions"]["in_values"] == true;
    const auto through = [&](const RealMatrix& k) -> RealMatrix {
      return ov * a[left.number] * (in_values ? encode(k, left.number, right.number) : k) *
             a[right.number].transpose();
    };
    const RealMatrix s = through(pair.k), t = through(pair.t);
    return {(s.array() + bias).matrix(), (t.array() + 2 * s.array() + bias).matrix(), pair.same_input};
  };
  return {state.shapes, {map_group(group, attend)}, state.adjacency, state.masks};
}

}  // namespace widelimit::testing

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>

#include "kernel/backends/reference/naive_activations.hpp"
#include "kernel/backends/reference/naive_layers.hpp"

namespace widelimit::testing {
namespace {

using nlohmann::json;

/// As a layer of a nonlinearity, which attention may write as its kind alone.
json weights_layer(const json& layer) {
  return layer["weights"].is_string() ? json{{"layer", layer["weights"]}} : layer["weights"];
}

bool is_softmax(const json& layer) { return layer["weights"] == "softmax" || layer["weights"] == "softmax1"; }

/// The sum over the axes of |i - j|^power.
Index distance(const Position& left, const Position& right, Index power) {
  Index sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    Index term = 1;
    for (Index k = 0; k < power; ++k) term *= std::abs(left[i] - right[i]);
    sum += term;
  }
  return sum;
}

/// Of relative places, counted from 1.
Real relative_distance(const Position& left, const Position& right, const Shape& left_shape,
                       const Shape& right_shape) {
  Real sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const Real difference = static_cast<Real>(left[i] + 1) / static_cast<Real>(left_shape[i]) -
                            static_cast<Real>(right[i] + 1) / static_cast<Real>(right_shape[i]);
    sum += difference * difference;
  }
  return sum;
}

/// Between positions of two inputs, at rho = 1.
RealMatrix unit_covariance(const json& positions, const Shape& left_shape, const Shape& right_shape) {
  RealMatrix r = RealMatrix::Zero(position_count(left_shape), position_count(right_shape));
  const std::string kind = positions["kind"];
  for (Index a = 0; a < r.rows(); ++a)
    for (Index b = 0; b < r.cols(); ++b) {
      const Position left = position_of(a, left_shape), right = position_of(b, right_shape);
      if (kind == "identity") r(a, b) = left == right ? 1 : 0;
      if (kind == "matrix")
        r(a, b) = positions["matrix"][static_cast<std::size_t>(a)][static_cast<std::size_t>(b)].get<double>();
      if (kind == "decay")
        r(a, b) = positions["values"]
                      .at(static_cast<std::size_t>(distance(left, right, positions["power"])))
                      .get<double>();
      if (kind == "structured")
        r(a, b) = std::exp(-Real(positions["phi"].get<double>()) *
                           relative_distance(left, right, left_shape, right_shape));
    }
  return r;
}

/// Between positions of two inputs.
RealMatrix position_covariance(const json& positions, const Shape& left_shape, const Shape& right_shape) {
  const Real rho(positions["rho"].get<double>());
  const RealMatrix r = unit_covariance(positions, left_shape, right_shape);
  if (positions.value("scale", "variance") == "variance") return rho * r;
  const auto mean_row_sum = [&](const Shape& shape) {
    return unit_covariance(positions, shape, shape).sum() / static_cast<Real>(position_count(shape));
  };
  using std::sqrt;
  return rho / sqrt(mean_row_sum(left_shape) * mean_row_sum(right_shape)) * r;
}

/// What queries and keys see, K~ or T~.
RealMatrix encoded(const RealMatrix& k, const NaiveState& state, std::size_t left, std::size_t right,
                   const json& layer) {
  if (!layer.contains("positions")) return k;
  const json& positions = layer["positions"];
  return Real(positions["input_weight"].get<double>()) * k +
         Real(positions["position_weight"].get<double>()) *
             position_covariance(positions, state.shapes[left], state.shapes[right]);
}

/// Positions of one input: whether `a` sees `c`.
bool sees(const json& layer, const NaiveMask& counts, Index a, Index c) {
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  if (!counts[at(a)] || !counts[at(c)]) return false;
  if (layer["causal"] == true && c > a && c >= layer.value("prefix", 0)) return false;
  if (layer.contains("window") && std::abs(a - c) >= layer["window"].get<Index>()) return false;
  return !layer.contains("mask") || layer["mask"][at(a)][at(c)] == true;
}

/// The mean cosine of a distance.
Real rotary(const json& layer, Index distance) {
  if (!layer.contains("rotary")) return 1;
  Real sum = 0;
  for (const json& frequency : layer["rotary"]["frequencies"])
    sum += std::cos(static_cast<Real>(distance) * frequency.get<double>());
  return sum / static_cast<Real>(layer["rotary"]["frequencies"].size());
}

/// Of one row of logits, of which only what is seen counts.
void weigh_row(RealMatrix& logits, Index a, const json& layer, const NaiveMask& counts) {
  Real largest = layer["weights"] == "softmax1" ? 0 : -std::numeric_limits<Real>::infinity();
  for (Index c = 0; c < logits.cols(); ++c)
    if (sees(layer, counts, a, c)) largest = std::max(largest, logits(a, c));
  Real sum = layer["weights"] == "softmax1" ? std::exp(-largest) : 0;
  for (Index c = 0; c < logits.cols(); ++c) {
    Real& logit = logits(a, c);
    if (!sees(layer, counts, a, c))
      logit = 0;
    else
      sum += logit =
          is_softmax(layer) ? std::exp(logit - largest) : naive_function(weights_layer(layer), logit);
  }
  if (is_softmax(layer) && counts[static_cast<std::size_t>(a)]) logits.row(a) /= sum;
}

/// A(x) of the scaling 1 / width.
RealMatrix attention_weights(const RealMatrix& seen, const json& layer, const NaiveMask& counts) {
  const Real scale = layer["query_key_std"].get<double>(), bias = layer.value("query_bias_variance", 0.0);
  const Real slope = layer.value("alibi", 0.0);
  RealMatrix logits(seen.rows(), seen.cols());
  for (Index a = 0; a < logits.rows(); ++a)
    for (Index c = 0; c < logits.cols(); ++c)
      logits(a, c) = (layer["tied"] == true ? scale * rotary(layer, c - a) * (seen(a, c) + bias) : 0) -
                     slope * static_cast<Real>(std::abs(a - c));
  for (Index a = 0; a < logits.rows(); ++a) weigh_row(logits, a, layer, counts);
  return logits;
}

struct Encoded {
  RealMatrix k, t;        ///< K~ and T~ of a pair.
  Variances left, right;  ///< Of K~.
  RealMatrix values, values_t;
};

/// One entry of the scaling 1 / sqrt(width): sums over what a and b see.
struct Entry {
  Real k, t;
};

Entry elementwise_entry(const Encoded& x, Index a, Index b, const json& layer, const NaiveMask& left_counts,
                        const NaiveMask& right_counts) {
  const json weights = weights_layer(layer);
  const Real scale = layer["query_key_std"].get<double>(),
             of_values = layer["output_value_variance"].get<double>(),
             bias = layer["bias_variance"].get<double>();
  const Real of_queries = layer.value("query_bias_variance", 0.0),
             of_keys = layer.value("key_bias_variance", 0.0);
  const auto at = [](const Variances& values, Index i) { return values[static_cast<std::size_t>(i)]; };
  const Real query = x.k(a, b) + of_queries, k2 = scale * scale;
  Real s = 0, s_of_t = 0, through_queries = 0, through_keys = 0;
  for (Index i = 0; i < x.k.rows(); ++i)
    for (Index j = 0; j < x.k.cols(); ++j) {
      if (!sees(layer, left_counts, a, i) || !sees(layer, right_counts, b, j)) continue;
      const Real turned = rotary(layer, (i - a) - (j - b));
      const Real key = turned * (x.k(i, j) + of_keys);
      const Real p = k2 * (at(x.left, a) + of_queries) * (at(x.left, i) + of_keys),
                 q = k2 * (at(x.right, b) + of_queries) * (at(x.right, j) + of_keys);
      const DualValue e = naive_dual(weights, snapped(p, q, k2 * query * key));
      s += x.values(i, j) * e.value;
      s_of_t += x.values_t(i, j) * e.value;
      through_queries += x.values(i, j) * key * e.derivative;
      through_keys += x.values(i, j) * turned * x.t(i, j) * e.derivative;
    }
  return {
      of_values * s + bias,
      of_values * (2 * s + s_of_t + k2 * ((2 * query + x.t(a, b)) * through_queries + query * through_keys)) +
          bias};
}

NaiveState inverse_sqrt_width(const NaiveState& state, const json& layer) {
  if (is_softmax(layer)) throw std::logic_error("the naive kernel does not sample");
  const bool in_values = layer.contains("positions") && layer["positions"]["in_values"] == true;
  const NaiveGroup group = merged(state);
  const auto variances_of = [&](const NaivePair& self, std::size_t side) {
    const RealMatrix k = encoded(self.k, state, side, side, layer);
    Variances values;
    for (Index a = 0; a < k.rows(); ++a) values.push_back(k(a, a));
    return values;
  };
  const std::array<Variances, 2> variances{variances_of(group.left, 0), variances_of(group.right, 1)};
  const auto attend = [&](const NaivePair& pair, const Side& left, const Side& right) -> NaivePair {
    const std::size_t l = left.number, r = right.number;
    const RealMatrix k = encoded(pair.k, state, l, r, layer), t = encoded(pair.t, state, l, r, layer);
    const Encoded x{k, t, variances[l], variances[r], in_values ? k : pair.k, in_values ? t : pair.t};
    NaivePair result = pair;
    for (Index a = 0; a < k.rows(); ++a)
      for (Index b = 0; b < k.cols(); ++b) {
        const Entry entry = elementwise_entry(x, a, b, layer, state.masks[l], state.masks[r]);
        result.k(a, b) = entry.k;
        result.t(a, b) = entry.t;
      }
    return result;
  };
  return {state.shapes, {map_group(group, attend)}, state.adjacency, state.masks};
}

}  // namespace

NaiveState attention(const NaiveState& state, const json& layer) {
  if (layer["scaling"] == "inverse_sqrt_width") return inverse_sqrt_width(state, layer);
  const Real ov = layer["output_value_variance"].get<double>(), bias = layer["bias_variance"].get<double>();
  const bool in_values = layer.contains("positions") && layer["positions"]["in_values"] == true;
  const NaiveGroup group = merged(state);
  const std::array<RealMatrix, 2> a{
      attention_weights(encoded(group.left.k, state, 0, 0, layer), layer, state.masks[0]),
      attention_weights(encoded(group.right.k, state, 1, 1, layer), layer, state.masks[1])};
  const auto attend = [&](const NaivePair& pair, const Side& left, const Side& right) -> NaivePair {
    const auto through = [&](const RealMatrix& k) -> RealMatrix {
      return ov * a[left.number] * (in_values ? encoded(k, state, left.number, right.number, layer) : k) *
             a[right.number].transpose();
    };
    const RealMatrix s = through(pair.k), t = through(pair.t);
    return {(s.array() + bias).matrix(), (t.array() + 2 * s.array() + bias).matrix(), pair.same_input};
  };
  return {state.shapes, {map_group(group, attend)}, state.adjacency, state.masks};
}

}  // namespace widelimit::testing

#include "kernel/naive_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "widelimit/network/network_file.hpp"

namespace widelimit::testing {
namespace {

using nlohmann::json;

const Real pi = std::acos(Real{-1});

using Variances = std::vector<Real>;
/// Transforms one pair; variances are those of its two sides at the layer's input.
using PairMap = std::function<NaivePair(const NaivePair&, const Variances& left, const Variances& right)>;

Variances variances(const NaivePair& self) {
  Variances values;
  for (Index a = 0; a < self.k.rows(); ++a) values.push_back(self.k(a, a));
  return values;
}

NaiveGroup map_group(const NaiveGroup& group, const PairMap& map) {
  const Variances left = variances(group.left), right = variances(group.right);
  return {group.share, map(group.left, left, left), map(group.cross, left, right),
          map(group.right, right, right)};
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

/// All channels together.
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

using Position = std::vector<Index>;

Position position_of(Index flat, const Shape& shape) {
  Position position(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    position[i] = flat % shape[i];
    flat /= shape[i];
  }
  return position;
}

/// For every output position of a window, the input positions it covers; -1: outside.
struct Cover {
  Shape shape;
  std::vector<std::vector<Index>> members;
};

Cover cover(const Shape& shape, const json& sizes, const json& strides, const std::string& padding) {
  Cover result;
  Shape window, stride, front;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    window.push_back(sizes[i]);
    stride.push_back(strides[i]);
    const Index ceiling = (shape[i] + stride[i] - 1) / stride[i];
    result.shape.push_back(padding == "valid" ? (shape[i] - window[i]) / stride[i] + 1 : ceiling);
    front.push_back(
        padding == "valid" ? 0 : std::max<Index>((ceiling - 1) * stride[i] + window[i] - shape[i], 0) / 2);
  }
  for (Index a = 0; a < position_count(result.shape); ++a) {
    const Position at = position_of(a, result.shape);
    std::vector<Index> members;
    for (Index o = 0; o < position_count(window); ++o) {
      const Position offset = position_of(o, window);
      Index flat = 0;
      for (std::size_t i = 0; i < shape.size() && flat >= 0; ++i) {
        Index place = at[i] * stride[i] + offset[i] - front[i];
        if (padding == "circular") place = ((place % shape[i]) + shape[i]) % shape[i];
        flat = place < 0 || place >= shape[i] ? -1 : flat * shape[i] + place;
      }
      members.push_back(flat);
    }
    result.members.push_back(std::move(members));
  }
  return result;
}

enum class Match { same_tap, all_pairs };

RealMatrix gather(const RealMatrix& k, const Cover& windows, Match match) {
  const auto d = static_cast<Index>(windows.members.size());
  RealMatrix sums = RealMatrix::Zero(d, d);
  for (Index a = 0; a < d; ++a)
    for (Index b = 0; b < d; ++b) {
      const auto& left = windows.members[static_cast<std::size_t>(a)];
      const auto& right = windows.members[static_cast<std::size_t>(b)];
      for (std::size_t i = 0; i < left.size(); ++i)
        for (std::size_t j = 0; j < right.size(); ++j)
          if ((match == Match::all_pairs || i == j) && left[i] >= 0 && right[j] >= 0)
            sums(a, b) += k(left[i], right[j]);
    }
  return sums;
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

NaiveState affine(const NaiveState& state, const json& layer) {
  const Real w = layer["weight_variance"].get<double>(), b = layer["bias_variance"].get<double>();
  if (layer["layer"] == "dense")
    return replace(state, [=](const NaivePair& pair, const Variances&, const Variances&) -> NaivePair {
      const RealMatrix k = (w * pair.k.array() + b).matrix();
      return {k, k + w * pair.t, pair.same_input};
    });
  const Cover windows = cover(state.shape, layer["filter"], layer["strides"], layer["padding"]);
  const auto taps = static_cast<Real>(windows.members[0].size());
  const bool local = layer["layer"] == "local_conv";
  NaiveState result =
      replace(state, [&](const NaivePair& pair, const Variances&, const Variances&) -> NaivePair {
        RealMatrix k = (w / taps * gather(pair.k, windows, Match::same_tap).array() + b).matrix();
        RealMatrix t = k + w / taps * gather(pair.t, windows, Match::same_tap);
        if (local) {
          k = RealMatrix(k.diagonal().asDiagonal());
          t = RealMatrix(t.diagonal().asDiagonal());
        }
        return {k, t, pair.same_input};
      });
  result.shape = windows.shape;
  return result;
}

NaiveState pool(const NaiveState& state, const json& layer) {
  const Cover windows = cover(state.shape, layer["window"], layer["strides"], layer["padding"]);
  const auto taps = static_cast<Real>(windows.members[0].size());
  const Real factor = layer["layer"] == "average_pool" ? 1 / (taps * taps) : 1;
  NaiveState result =
      map_each(state, [&](const NaivePair& pair, const Variances&, const Variances&) -> NaivePair {
        return {factor * gather(pair.k, windows, Match::all_pairs),
                factor * gather(pair.t, windows, Match::all_pairs), pair.same_input};
      });
  result.shape = windows.shape;
  return result;
}

NaiveState readout(const NaiveState& state, const std::string& kind) {
  const auto reduce = [&](const RealMatrix& k) {
    const Real value = kind == "flatten"           ? k.trace() / static_cast<Real>(k.rows())
                       : kind == "global_sum_pool" ? k.sum()
                                                   : k.mean();
    return RealMatrix(RealMatrix::Constant(1, 1, value));
  };
  NaiveState result =
      map_each(state, [&](const NaivePair& pair, const Variances&, const Variances&) -> NaivePair {
        return {reduce(pair.k), reduce(pair.t), pair.same_input};
      });
  result.shape = {};
  return result;
}

struct DualValue {
  Real value, derivative;
};

/// The function and its dual, from the theory's formulas.
DualValue dual(const json& layer, Real p, Real q, Real c) {
  const std::string kind = layer["layer"];
  if (kind == "erf") {
    const Real s = (1 + 2 * p) * (1 + 2 * q);
    return {2 / pi * std::asin(2 * c / std::sqrt(s)), 4 / pi / std::sqrt(s - 4 * c * c)};
  }
  if (kind == "cos") {  // a cos(x)
    const Real scale = std::pow(Real(layer["a"].get<double>()), 2) / 2;
    const Real difference = std::exp(-(p + q - 2 * c) / 2), sum = std::exp(-(p + q + 2 * c) / 2);
    return {scale * (difference + sum), scale * (difference - sum)};
  }
  const Real below = kind == "relu" ? 0 : kind == "abs" ? -1 : Real(layer["slope"].get<double>()), above = 1;
  const Real theta = std::atan2(std::sqrt(std::max<Real>(p * q - c * c, 0)), c);
  const Real size = std::sqrt(p * q);
  const Real k1 = size * (std::sin(theta) + (pi - theta) * std::cos(theta)) / (2 * pi),
             k0 = (pi - theta) / (2 * pi);
  const Real linear = above * above + above * (below - above), kink = (below - above) * (below - above);
  return {linear * c + kink * k1, linear + kink * k0};
}

NaiveState nonlinearity(const NaiveState& state, const json& layer) {
  return map_each(state,
                  [&](const NaivePair& pair, const Variances& left, const Variances& right) -> NaivePair {
                    NaivePair result = pair;
                    for (Index a = 0; a < pair.k.rows(); ++a)
                      for (Index b = 0; b < pair.k.cols(); ++b) {
                        const DualValue value = dual(layer, left[static_cast<std::size_t>(a)],
                                                     right[static_cast<std::size_t>(b)], pair.k(a, b));
                        result.k(a, b) = value.value;
                        result.t(a, b) = pair.t(a, b) * value.derivative;
                      }
                    return result;
                  });
}

NaiveState norm(const NaiveState& state, const json& layer) {
  const Real epsilon = layer["epsilon"].get<double>();
  const bool space = layer["axes"].size() == 2;
  const auto prepared = [&](Variances values) {
    Real mean = 0;
    for (const Real value : values) mean += value / static_cast<Real>(values.size());
    if (space) values.assign(values.size(), mean);
    for (Real& value : values) value = 1 / std::sqrt(value + epsilon);
    return values;
  };
  return replace(state,
                 [&](const NaivePair& pair, const Variances& left, const Variances& right) -> NaivePair {
                   const Variances l = prepared(left), r = prepared(right);
                   NaivePair result = pair;
                   for (Index a = 0; a < pair.k.rows(); ++a)
                     for (Index b = 0; b < pair.k.cols(); ++b) {
                       const Real factor = l[static_cast<std::size_t>(a)] * r[static_cast<std::size_t>(b)];
                       result.k(a, b) *= factor;
                       result.t(a, b) *= factor;
                     }
                   return result;
                 });
}

NaiveState dropout(const NaiveState& state, const json& layer) {
  const Real keep = layer["keep"].get<double>();
  return replace(state, [&](const NaivePair& pair, const Variances&, const Variances&) -> NaivePair {
    NaivePair result = pair;
    if (pair.same_input) {
      result.k.diagonal() /= keep;
      result.t.diagonal() /= keep;
    }
    return result;
  });
}

RealMatrix position_covariance(const json& positions, const Shape& shape) {
  const Index d = position_count(shape);
  RealMatrix r(d, d);
  const Real rho = positions["rho"].get<double>();
  for (Index a = 0; a < d; ++a)
    for (Index b = 0; b < d; ++b) {
      if (positions["kind"] == "identity") r(a, b) = a == b ? rho : 0;
      if (positions["kind"] == "matrix")
        r(a, b) =
            rho * positions["matrix"][static_cast<std::size_t>(a)][static_cast<std::size_t>(b)].get<double>();
      if (positions["kind"] != "structured") continue;
      const Position left = position_of(a, shape), right = position_of(b, shape);
      Real distance = 0;
      for (std::size_t i = 0; i < shape.size(); ++i)
        distance += std::pow(static_cast<Real>(left[i] - right[i]) / static_cast<Real>(shape[i]), 2);
      r(a, b) = rho * std::exp(-positions["phi"].get<double>() * distance);
    }
  return r;
}

NaiveState attention(const NaiveState& state, const json& layer) {
  if (layer["scaling"] != "inverse_width")
    throw std::logic_error("the naive kernel knows inverse_width attention only");
  const Real qk = layer["query_key_std"].get<double>(), ov = layer["output_value_variance"].get<double>();
  const Real bias = layer["bias_variance"].get<double>();
  const bool encoded = layer.contains("positions");
  const auto encode = [&](const RealMatrix& k) -> RealMatrix {
    if (!encoded) return k;
    const json& positions = layer["positions"];
    return positions["input_weight"].get<double>() * k +
           positions["position_weight"].get<double>() * position_covariance(positions, state.shape);
  };
  const auto weights = [&](const RealMatrix& self) {
    RealMatrix logits = layer["tied"] == true ? RealMatrix(qk * encode(self))
                                              : RealMatrix(RealMatrix::Zero(self.rows(), self.cols()));
    for (Index a = 0; a < logits.rows(); ++a) {
      const Index seen = layer["causal"] == true ? a + 1 : logits.cols();
      for (Index i = 0; i < logits.cols(); ++i) {
        Real& logit = logits(a, i);
        if (i >= seen)
          logit = 0;
        else if (layer["weights"] == "softmax")
          logit = std::exp(logit);
        else if (layer["weights"] == "relu")
          logit = std::max<Real>(logit, 0);
        else if (layer["weights"] == "abs")
          logit = std::abs(logit);
      }
      if (layer["weights"] == "softmax") logits.row(a) /= logits.row(a).sum();
    }
    return logits;
  };
  const NaiveGroup group = merged(state);
  const RealMatrix left = weights(group.left.k), right = weights(group.right.k);
  const auto attend = [&](const NaivePair& pair, const RealMatrix& a, const RealMatrix& b) -> NaivePair {
    const bool in_values = encoded && layer["positions"]["in_values"] == true;
    const RealMatrix s = ov * a * (in_values ? encode(pair.k) : pair.k) * b.transpose();
    const RealMatrix t = ov * a * (in_values ? encode(pair.t) : pair.t) * b.transpose();
    return {(s.array() + bias).matrix(), (t.array() + 2 * s.array() + bias).matrix(), pair.same_input};
  };
  return {state.shape,
          {{1, attend(group.left, left, left), attend(group.cross, left, right),
            attend(group.right, right, right)}}};
}

NaiveState sequence(NaiveState state, const json& layers);

NaivePair product_of(const std::vector<NaivePair>& pairs, Real factor) {
  NaivePair result{RealMatrix::Constant(pairs[0].k.rows(), pairs[0].k.cols(), factor),
                   RealMatrix::Zero(pairs[0].k.rows(), pairs[0].k.cols()), pairs[0].same_input};
  for (const NaivePair& pair : pairs) result.k.array() *= pair.k.array();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    RealMatrix term = factor * pairs[i].t;
    for (std::size_t j = 0; j < pairs.size(); ++j)
      if (j != i) term.array() *= pairs[j].k.array();
    result.t += term;
  }
  return result;
}

NaiveState branches(const NaiveState& state, const json& layer) {
  const std::string kind = layer["layer"];
  NaiveState result;
  std::vector<NaivePair> left, cross, right;
  Real factor = 1;
  for (const json& branch : layer["branches"]) {
    const NaiveState end = sequence(state, branch["layers"]);
    const Real weight = branch[kind == "concat" ? "share" : "scale"].get<double>();
    result.shape = end.shape;
    if (kind == "product") {
      const NaiveGroup group = merged(end);
      left.push_back(group.left);
      cross.push_back(group.cross);
      right.push_back(group.right);
      factor *= weight * weight;
    } else if (kind == "sum") {
      NaiveGroup group = merged(end);
      group.share = weight * weight;
      result.groups.push_back(group);
    } else {
      for (NaiveGroup group : end.groups) {
        group.share *= weight;
        result.groups.push_back(group);
      }
    }
  }
  if (kind == "sum") result.groups = {merged(result)};
  if (kind == "product")
    result.groups = {{1, product_of(left, factor), product_of(cross, factor), product_of(right, factor)}};
  return result;
}

NaiveState one_layer(const NaiveState& state, const json& layer) {
  const std::string kind = layer["layer"];
  const auto is = [&](std::initializer_list<const char*> kinds) {
    return std::any_of(kinds.begin(), kinds.end(), [&](const char* name) { return kind == name; });
  };
  if (is({"dense", "conv", "local_conv"})) return affine(state, layer);
  if (is({"average_pool", "sum_pool"})) return pool(state, layer);
  if (is({"flatten", "global_average_pool", "global_sum_pool"})) return readout(state, kind);
  if (is({"relu", "abs", "leaky_relu", "erf", "cos"})) return nonlinearity(state, layer);
  if (is({"layer_norm", "rms_norm"})) return norm(state, layer);
  if (is({"dropout"})) return dropout(state, layer);
  if (is({"attention"})) return attention(state, layer);
  if (is({"sum", "product", "concat"})) return branches(state, layer);
  throw std::logic_error("the naive kernel does not know " + kind);
}

NaiveState sequence(NaiveState state, const json& layers) {
  for (const json& layer : layers) {
    if (layer["layer"] == "repeat")
      for (Index i = 0; i < layer["times"].get<Index>(); ++i)
        state = sequence(std::move(state), layer["layers"]);
    else
      state = one_layer(state, layer);
  }
  return state;
}

NaivePair raw(const RealMatrix& left, const RealMatrix& right, bool same_input) {
  return {left * right.transpose() / static_cast<Real>(left.cols()),
          RealMatrix::Zero(left.rows(), right.rows()), same_input};
}

}  // namespace

NaiveKernel::NaiveKernel(const Network& network, Shape shape)
    : layers_(json::parse(to_json(network))["layers"]), shape_{std::move(shape)} {}

std::pair<Real, Real> NaiveKernel::operator()(const RealMatrix& left, const RealMatrix& right,
                                              bool same_input) const {
  NaiveState state{shape_,
                   {{1, raw(left, left, true), raw(left, right, same_input), raw(right, right, true)}}};
  const NaiveGroup end = merged(sequence(std::move(state), layers_));
  return {end.cross.k(0, 0), end.cross.t(0, 0)};
}

}  // namespace widelimit::testing

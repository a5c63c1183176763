#include "kernel/naive_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "kernel/naive_layers.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing {
namespace {

using nlohmann::json;

const Real pi = std::acos(Real{-1});

Real count_of(const NaiveMask& mask) { return static_cast<Real>(std::count(mask.begin(), mask.end(), true)); }

/// Means divide by the positions that count; the diagonal's by all.
NaiveState readout(const NaiveState& state, const std::string& kind) {
  NaiveState result = map_each(state, [&](const NaivePair& pair, const Side& l, const Side& r) -> NaivePair {
    const auto reduce = [&](const RealMatrix& k) {
      const Real counted = count_of(state.masks[l.number]) * count_of(state.masks[r.number]);
      const Real value = kind == "flatten"           ? k.trace() / static_cast<Real>(k.rows())
                         : kind == "global_sum_pool" ? k.sum()
                                                     : k.sum() / counted;
      return RealMatrix(RealMatrix::Constant(1, 1, value));
    };
    return {reduce(pair.k), reduce(pair.t), pair.same_input};
  });
  result.shapes = {};
  result.masks = {NaiveMask{true}, NaiveMask{true}};
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
  return map_each(state, [&](const NaivePair& pair, const Side& left, const Side& right) -> NaivePair {
    NaivePair result = pair;
    for (Index a = 0; a < pair.k.rows(); ++a)
      for (Index b = 0; b < pair.k.cols(); ++b) {
        const DualValue value = dual(layer, left.variances[static_cast<std::size_t>(a)],
                                     right.variances[static_cast<std::size_t>(b)], pair.k(a, b));
        result.k(a, b) = value.value;
        result.t(a, b) = pair.t(a, b) * value.derivative;
      }
    return result;
  });
}

NaiveState norm(const NaiveState& state, const json& layer) {
  const Real epsilon = layer["epsilon"].get<double>();
  const auto prepared = [&](const Side& side) {
    const Shape& shape = state.shapes[side.number];
    std::vector<Index> axes;
    for (std::size_t i = 1; i < layer["axes"].size(); ++i) {
      const bool all = layer["axes"][i] == "space";
      for (Index axis = 0; all && axis < std::ssize(shape); ++axis) axes.push_back(axis);
      if (!all) axes.push_back(layer["axes"][i]);
    }
    Variances values = side.variances;
    for (const std::vector<Index>& group : groups_along(shape, axes)) {
      Real sum = 0, count = 0;
      for (const Index a : group) {
        if (!state.masks[side.number][static_cast<std::size_t>(a)]) continue;
        sum += side.variances[static_cast<std::size_t>(a)];
        ++count;
      }
      for (const Index a : group)
        values[static_cast<std::size_t>(a)] = count == 0 ? 0 : 1 / std::sqrt(sum / count + epsilon);
    }
    return values;
  };
  return replace(state, [&](const NaivePair& pair, const Side& left, const Side& right) -> NaivePair {
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
  return replace(state, [&](const NaivePair& pair, const Side&, const Side&) -> NaivePair {
    NaivePair result = pair;
    if (pair.same_input) {
      result.k.diagonal() /= keep;
      result.t.diagonal() /= keep;
    }
    return result;
  });
}

/// P of y = P x.
RealMatrix aggregation(const RealMatrix& adjacency, const json& layer) {
  RealMatrix p = adjacency.transpose();
  if (layer["self_loops"]) p.diagonal().array() += 1;
  const Vector<Real> degrees = p.rowwise().sum();
  const Vector<Real> roots = degrees.cwiseSqrt();
  if (layer["normalise"] == "mean") return degrees.cwiseInverse().asDiagonal() * p;
  if (layer["normalise"] == "none") return p;
  return roots.cwiseInverse().asDiagonal() * p * roots.cwiseInverse().asDiagonal();
}

NaiveState aggregate(const NaiveState& state, const json& layer) {
  const std::array<RealMatrix, 2> p{aggregation(state.adjacency[0], layer),
                                    aggregation(state.adjacency[1], layer)};
  return map_each(state, [&](const NaivePair& pair, const Side& left, const Side& right) -> NaivePair {
    const RealMatrix &of_left = p[left.number], &of_right = p[right.number];
    return {of_left * pair.k * of_right.transpose(), of_left * pair.t * of_right.transpose(),
            pair.same_input};
  });
}

NaiveState sequence(NaiveState state, const json& layers, const std::string& path, Real& largest_variance);

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

/// A position counts if it does in one of the branches.
void join(NaiveMask& counts, const NaiveMask& of_branch) {
  if (counts.empty()) counts.assign(of_branch.size(), false);
  for (std::size_t a = 0; a < counts.size(); ++a) counts[a] = counts[a] || of_branch[a];
}

NaiveState branches(const NaiveState& state, const json& layer, const std::string& path,
                    Real& largest_variance) {
  const std::string kind = layer["layer"];
  NaiveState result;
  std::vector<NaivePair> left, cross, right;
  Real factor = 1;
  for (std::size_t i = 0; i < layer["branches"].size(); ++i) {
    const json& branch = layer["branches"][i];
    const NaiveState end = sequence(state, branch["layers"],
                                    path + ".branches[" + std::to_string(i) + "].layers", largest_variance);
    const Real weight = branch[kind == "concat" ? "share" : "scale"].get<double>();
    result.shapes = end.shapes;
    result.adjacency = end.adjacency;
    for (std::size_t side = 0; side < 2; ++side) join(result.masks[side], end.masks[side]);
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

NaiveState one_layer(const NaiveState& state, const json& layer, const std::string& path,
                     Real& largest_variance) {
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
  if (is({"aggregate"})) return aggregate(state, layer);
  if (is({"sum", "product", "concat"})) return branches(state, layer, path, largest_variance);
  throw std::logic_error("the naive kernel does not know " + kind);
}

/// Zeros where nothing counts. Throws NoPositionLeft if that is everywhere.
void mask(NaiveState& state, const std::string& path) {
  for (std::size_t side = 0; side < 2; ++side)
    if (count_of(state.masks[side]) == 0) throw NoPositionLeft{path, side};
  const PairMap zeros = [&](const NaivePair& pair, const Side& left, const Side& right) {
    NaivePair result = pair;
    for (Index a = 0; a < pair.k.rows(); ++a)
      for (Index b = 0; b < pair.k.cols(); ++b)
        if (!state.masks[left.number][static_cast<std::size_t>(a)] ||
            !state.masks[right.number][static_cast<std::size_t>(b)])
          result.k(a, b) = result.t(a, b) = 0;
    return result;
  };
  state = map_each(state, zeros);
}

NaiveState sequence(NaiveState state, const json& layers, const std::string& path, Real& largest_variance) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const json& layer = layers[i];
    const std::string here = path + "[" + std::to_string(i) + "]";
    if (layer["layer"] == "repeat")
      for (Index time = 0; time < layer["times"].get<Index>(); ++time)
        state = sequence(std::move(state), layer["layers"], here + ".layers", largest_variance);
    else
      state = one_layer(state, layer, here, largest_variance);
    mask(state, here);
    for (const NaiveGroup& group : state.groups)
      largest_variance = std::max(
          {largest_variance, group.left.k.diagonal().maxCoeff(), group.right.k.diagonal().maxCoeff()});
  }
  return state;
}

NaivePair raw(const RealMatrix& left, const RealMatrix& right, bool same_input) {
  return {left * right.transpose() / static_cast<Real>(left.cols()),
          RealMatrix::Zero(left.rows(), right.rows()), same_input};
}

NaiveMask mask_of(const NaiveInput& input) {
  return input.mask.empty() ? NaiveMask(static_cast<std::size_t>(input.features.rows()), true) : input.mask;
}

}  // namespace

NaiveKernel::NaiveKernel(const Network& network) : layers_(json::parse(to_json(network))["layers"]) {}

NaiveValues NaiveKernel::operator()(const NaiveInput& left, const NaiveInput& right, bool same_input) const {
  NaiveState state{
      {left.shape, right.shape},
      {{1, raw(left.features, left.features, true), raw(left.features, right.features, same_input),
        raw(right.features, right.features, true)}},
      {left.adjacency, right.adjacency},
      {mask_of(left), mask_of(right)}};
  Real largest_variance = 0;
  const NaiveGroup end = merged(sequence(std::move(state), layers_, "layers", largest_variance));
  return {end.cross.k(0, 0), end.cross.t(0, 0), largest_variance};
}

}  // namespace widelimit::testing

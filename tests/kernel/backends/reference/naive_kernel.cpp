#include "kernel/backends/reference/naive_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "kernel/backends/reference/naive_activations.hpp"
#include "kernel/backends/reference/naive_layers.hpp"
#include "kernel/backends/reference/naive_positions.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing {
namespace {

using nlohmann::json;

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

/// What a run notes, and the errors that it makes.
struct Chain {
  NaiveValues noted;
  NaiveRoundings roundings;
  unsigned layers = 0;  ///< So far.
};

NaiveState nonlinearity(const NaiveState& state, const json& layer, Chain& run) {
  const bool kink = has_kink(layer);
  bool met = false;
  NaiveState result =
      map_each(state, [&](const NaivePair& pair, const Side& left, const Side& right) -> NaivePair {
        NaivePair behind = pair;
        for (Index a = 0; a < pair.k.rows(); ++a)
          for (Index b = 0; b < pair.k.cols(); ++b) {
            const NaiveGaussian gaussian =
                snapped(left.variances[static_cast<std::size_t>(a)],
                        right.variances[static_cast<std::size_t>(b)], pair.k(a, b));
            met = met || (kink && gaussian.determinant == 0 && gaussian.p * gaussian.q != 0 &&
                          !(pair.same_input && a == b));
            if (gaussian.p * gaussian.q == 0 && pair.t(a, b) != 0) run.noted.tangent_at_zero = true;
            const DualValue value = naive_dual(layer, gaussian);
            behind.k(a, b) = value.value;
            behind.t(a, b) = pair.t(a, b) * value.derivative;
          }
        return behind;
      });
  run.noted.perfectly_correlated += met ? 1 : 0;
  return result;
}

/// The positions that count, in the order in which a recurrent layer reads them.
std::vector<Index> read_order(const json& layer, const NaiveMask& mask) {
  std::vector<Index> order;
  for (Index a = 0; a < std::ssize(mask); ++a)
    if (mask[static_cast<std::size_t>(a)]) order.push_back(a);
  if (layer["direction"] == "backward") std::reverse(order.begin(), order.end());
  return order;
}

/// Step by step: the variances of both sides first, from their own recursions.
NaiveState recurrent(const NaiveState& state, const json& layer, Chain& run) {
  const Real w = layer["weight_variance"].get<double>(), r = layer["recurrent_variance"].get<double>(),
             bias = layer["bias_variance"].get<double>();
  const json phi =
      layer["nonlinearity"].is_string() ? json{{"layer", layer["nonlinearity"]}} : layer["nonlinearity"];
  bool met = false;
  const auto z_variances = [&](const Side& side, const std::vector<Index>& order) {
    Variances z;
    Real hidden = 0;
    for (const Index a : order) {
      z.push_back(w * side.variances[static_cast<std::size_t>(a)] + bias + r * hidden);
      hidden = naive_dual(phi, snapped(z.back(), z.back(), z.back())).value;
    }
    return z;
  };
  const PairMap recursion = [&](const NaivePair& pair, const Side& left, const Side& right) -> NaivePair {
    const std::vector<Index> rows = read_order(layer, state.masks[left.number]),
                             columns = read_order(layer, state.masks[right.number]);
    const Variances p = z_variances(left, rows), q = z_variances(right, columns);
    NaivePair behind{RealMatrix::Zero(pair.k.rows(), pair.k.cols()),
                     RealMatrix::Zero(pair.k.rows(), pair.k.cols()), pair.same_input};
    for (std::size_t s = 0; s < rows.size(); ++s)
      for (std::size_t t = 0; t < columns.size(); ++t) {
        const bool first = s == 0 || t == 0;
        const Real k_before = first ? 0 : behind.k(rows[s - 1], columns[t - 1]),
                   t_before = first ? 0 : behind.t(rows[s - 1], columns[t - 1]);
        const Real z = w * pair.k(rows[s], columns[t]) + bias + r * k_before;
        const NaiveGaussian gaussian = snapped(p[s], q[t], z);
        met = met || (has_kink(phi) && gaussian.determinant == 0 && gaussian.p * gaussian.q != 0 &&
                      !(pair.same_input && s == t));
        const DualValue dual = naive_dual(phi, gaussian);
        behind.k(rows[s], columns[t]) = dual.value;
        behind.t(rows[s], columns[t]) =
            dual.derivative * (z + w * pair.t(rows[s], columns[t]) + r * t_before);
      }
    return behind;
  };
  NaiveState result = replace(state, recursion);
  run.noted.perfectly_correlated += met ? 1 : 0;
  return result;
}

/// The spatial axes that a norm averages over.
std::vector<Index> normed_axes(const json& layer, const Shape& shape) {
  std::vector<Index> axes;
  for (std::size_t i = 1; i < layer["axes"].size(); ++i) {
    const bool all = layer["axes"][i] == "space";
    for (Index axis = 0; all && axis < std::ssize(shape); ++axis) axes.push_back(axis);
    if (!all) axes.push_back(layer["axes"][i]);
  }
  return axes;
}

NaiveState norm(const NaiveState& state, const json& layer) {
  const Real epsilon = layer["epsilon"].get<double>();
  const auto prepared = [&](const Side& side) {
    const Shape& shape = state.shapes[side.number];
    const std::vector<Index> axes = normed_axes(layer, shape);
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
  Vector<Real> degrees = p.rowwise().sum();
  // Nothing comes to such a node, whatever its zeros are divided by.
  for (Real& degree : degrees)
    if (degree == 0) degree = 1;
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

NaiveState sequence(NaiveState state, const json& layers, const std::string& path, Chain& run);

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

NaiveState branches(const NaiveState& state, const json& layer, const std::string& path, Chain& run) {
  const std::string kind = layer["layer"];
  NaiveState result;
  std::vector<NaiveState> ends;
  std::vector<NaivePair> left, cross, right;
  Real factor = 1;
  for (std::size_t i = 0; i < layer["branches"].size(); ++i) {
    const json& branch = layer["branches"][i];
    const NaiveState end =
        sequence(state, branch["layers"], path + ".branches[" + std::to_string(i) + "].layers", run);
    ends.push_back(end);
    if (layer.contains("axis")) continue;
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
  if (layer.contains("axis")) return concatenated(ends, layer["axis"]);
  if (kind == "sum") result.groups = {merged(result)};
  if (kind == "product")
    result.groups = {{1, product_of(left, factor), product_of(cross, factor), product_of(right, factor)}};
  return result;
}

NaiveState one_layer(const NaiveState& state, const json& layer, const std::string& path, Chain& run) {
  const std::string kind = layer["layer"];
  const auto is = [&](std::initializer_list<const char*> kinds) {
    return std::any_of(kinds.begin(), kinds.end(), [&](const char* name) { return kind == name; });
  };
  if (is({"dense", "conv", "local_conv", "conv_transpose"})) return affine(state, layer);
  if (is({"average_pool", "sum_pool"})) return pool(state, layer);
  if (is({"flatten", "global_average_pool", "global_sum_pool"})) return readout(state, kind);
  if (is({"layer_norm", "rms_norm"})) return norm(state, layer);
  if (is({"dropout"})) return dropout(state, layer);
  if (is({"attention"})) return attention(state, layer);
  if (is({"aggregate"})) return aggregate(state, layer);
  if (is({"recurrent"})) return recurrent(state, layer, run);
  if (is({"slice", "index", "image_resize", "positions_map"})) return map_positions(state, layer);
  if (is({"sum", "product", "concat"})) return branches(state, layer, path, run);
  return nonlinearity(state, layer, run);
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

void note_variances(const NaiveState& state, NaiveValues& noted) {
  for (const NaiveGroup& group : state.groups)
    for (const NaivePair* self : {&group.left, &group.right})
      for (const Real variance : self->k.diagonal()) {
        noted.largest_variance = std::max(noted.largest_variance, variance);
        if (variance > 0) noted.smallest_variance = std::min(noted.smallest_variance, variance);
      }
}

/// -1 or 1; the same for a pair whichever is the left one.
Real any_sign(unsigned seed, std::size_t left, Index a, std::size_t right, Index b) {
  const auto first = static_cast<std::uint64_t>(a) * 2 + left,
             second = static_cast<std::uint64_t>(b) * 2 + right;
  std::uint64_t mixed = seed * 0x9e3779b97f4a7c15U + std::min(first, second) * 0xbf58476d1ce4e5b9U +
                        std::max(first, second) * 0x94d049bb133111ebU;
  for (int i = 0; i < 3; ++i) mixed = (mixed ^ (mixed >> 29U)) * 0xbf58476d1ce4e5b9U;
  return (mixed >> 40U) % 2 == 0 ? -1 : 1;
}

/// An input with itself keeps the bits of its own covariances.
void round_off(NaiveState& state, Chain& run) {
  const unsigned seed = run.roundings.seed * 1000 + ++run.layers;
  if (run.roundings.size == 0) return;
  const auto rounded = [&](RealMatrix& k, const RealMatrix& of_left, const RealMatrix& of_right,
                           std::size_t left, std::size_t right) {
    const Vector<Real> rows = of_left.diagonal().cwiseAbs().cwiseSqrt(),
                       columns = of_right.diagonal().cwiseAbs().cwiseSqrt();
    for (Index a = 0; a < k.rows(); ++a)
      for (Index b = 0; b < k.cols(); ++b)
        k(a, b) += run.roundings.size * any_sign(seed, left, a, right, b) *
                   std::max(rows(a) * columns(b), std::abs(k(a, b)));
  };
  for (NaiveGroup& group : state.groups) {
    const NaiveGroup exact = group;
    for (RealMatrix NaivePair::*kernel : {&NaivePair::k, &NaivePair::t}) {
      rounded(group.left.*kernel, exact.left.*kernel, exact.left.*kernel, 0, 0);
      rounded(group.right.*kernel, exact.right.*kernel, exact.right.*kernel, 1, 1);
      rounded(group.cross.*kernel, exact.left.*kernel, exact.right.*kernel, 0, 1);
    }
    if (group.cross.same_input) group.cross = group.right = group.left;
  }
}

NaiveState sequence(NaiveState state, const json& layers, const std::string& path, Chain& run) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const json& layer = layers[i];
    const std::string here = path + "[" + std::to_string(i) + "]";
    if (layer["layer"] == "repeat")
      for (Index time = 0; time < layer["times"].get<Index>(); ++time)
        state = sequence(std::move(state), layer["layers"], here + ".layers", run);
    else
      state = one_layer(state, layer, here, run);
    mask(state, here);
    note_variances(state, run.noted);
    round_off(state, run);
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

/// A layer norm of raw inputs removes their mean, over the channels and the positions that it averages over.
RealMatrix centred(const NaiveInput& input, const json& norm) {
  RealMatrix features = input.features;
  const NaiveMask counts = mask_of(input);
  for (const std::vector<Index>& group : groups_along(input.shape, normed_axes(norm, input.shape))) {
    Real sum = 0, count = 0;
    for (const Index a : group)
      if (counts[static_cast<std::size_t>(a)]) {
        sum += features.row(a).sum();
        count += static_cast<Real>(features.cols());
      }
    for (const Index a : group)
      if (counts[static_cast<std::size_t>(a)]) features.row(a).array() -= sum / count;
  }
  return features;
}

}  // namespace

NaiveKernel::NaiveKernel(const Network& network) : layers_(json::parse(to_json(network))["layers"]) {}

NaiveValues NaiveKernel::operator()(const NaiveInput& left, const NaiveInput& right, bool same_input,
                                    const NaiveRoundings& roundings) const {
  const bool centre = layers_[0]["layer"] == "layer_norm";
  const RealMatrix x = centre ? centred(left, layers_[0]) : left.features,
                   y = centre ? centred(right, layers_[0]) : right.features;
  NaiveState state{{left.shape, right.shape},
                   {{1, raw(x, x, true), raw(x, y, same_input), raw(y, y, true)}},
                   {left.adjacency, right.adjacency},
                   {mask_of(left), mask_of(right)}};
  Chain run{.noted = {0, 0, 0, std::numeric_limits<Real>::max()}, .roundings = roundings};
  note_variances(state, run.noted);
  round_off(state, run);
  const NaiveGroup end = merged(sequence(std::move(state), layers_, "layers", run));
  run.noted.nngp = end.cross.k(0, 0);
  run.noted.ntk = end.cross.t(0, 0);
  return run.noted;
}

}  // namespace widelimit::testing

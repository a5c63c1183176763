#include "kernel/readouts/pulled_readout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "kernel/readouts/leading_outputs.hpp"
#include "kernel/readouts/pair_sums.hpp"
#include "kernel/readouts/pulled_state.hpp"
#include "kernel/readouts/weights_form.hpp"
#include "network/shape_pairs.hpp"
#include "numerics/gemm.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

using numerics::gemm;
using numerics::linear_rows;
using numerics::Transpose;

void append_names(const LinearTree& tree, std::vector<std::string>& names) {
  if (std::holds_alternative<LinearScaling>(tree.operation)) names.emplace_back("norm");
  if (std::holds_alternative<LinearDense>(tree.operation)) names.emplace_back("dense");
  if (std::holds_alternative<LinearSum>(tree.operation)) names.emplace_back("sum of branches");
  if (const auto* layer = std::get_if<LinearSandwich>(&tree.operation)) names.push_back(layer->path);
  for (const LinearTree& input : tree.inputs) append_names(input, names);
}

std::vector<std::string> names_of(const LinearTree& tree) {
  std::vector<std::string> names;
  append_names(tree, names);
  return names;
}

/// The functional's values, of K and of T.
using Values = FeatureStage::Values;

/// A sum of products in double. Eight partial sums do not wait for each other, and their order is fixed.
template <typename Scalar>
double product_in_double(const Scalar* left, const Scalar* right, Index size) {
  constexpr Index sums = 8;
  std::array<double, sums> partial{};
  for (Index i = 0; i < size; i += sums)
    for (Index k = 0; k < std::min(sums, size - i); ++k)
      partial[static_cast<std::size_t>(k)] +=
          static_cast<double>(left[i + k]) * static_cast<double>(right[i + k]);
  return std::accumulate(partial.begin(), partial.end(), 0.0);
}

/// Evaluates the functional for one pair, walking down the tree along both states. Every step takes the numbers that
/// StateWriter (pulled_state.cpp) wrote at the same node, so that both must visit nodes in the same order.
template <typename Scalar>
class PairWalk {
 public:
  PairWalk(const PairSums<Scalar>& sums, const FeaturePair<Scalar>& pair, Scalar* scratch)
      : sums_{&sums}, states_{pair}, scratch_{scratch} {}

  /// For layers on the inputs themselves, whose leaves hold features instead of weights.
  PairWalk(const FeaturePair<Scalar>& pair, Index channels) : channels_{channels}, states_{pair} {}

  /// The value of sum_ab W_ab K'_ab for the covariance K' behind this node, and of T'. `full` is W if it has all
  /// entries, else null: W then lies in the states.
  Values run(const LinearTree& tree, WeightsForm form, const Scalar* full) {
    return std::visit([&](const auto& operation) { return step(operation, tree, form, full); },
                      tree.operation);
  }

 private:
  /// Numbers at the current place of both states: vectors that make W, or matrices.
  struct Sides {
    const Scalar* left;
    const Scalar* right;
  };

  Values step(const LinearInput&, const LinearTree&, WeightsForm form, const Scalar* full) {
    if (channels_ > 0) {
      // u^T K u' = (x^T u) . (x'^T u') / C. T is 0 at the inputs.
      const Sides features = take(channels_, channels_);
      return {product_in_double(features.left, features.right, channels_) / static_cast<double>(channels_),
              0};
    }
    return contract(form, take_weights(form), full, *sums_);
  }

  Values step(const LinearScaling&, const LinearTree& tree, WeightsForm form, const Scalar* full) {
    // The states below have the scales multiplied in.
    if (form != WeightsForm::full) return run(tree.inputs[0], form_before(tree, form, tree.inputs[0]), full);
    const Sides r = take(d_, e_);
    Scalar* scaled = take_scratch();
    for (Index a = 0; a < d_; ++a)
      for (Index b = 0; b < e_; ++b) scaled[a * e_ + b] = full[a * e_ + b] * r.left[a] * r.right[b];
    const Values values = run(tree.inputs[0], form, scaled);
    scratch_ -= d_ * e_;
    return values;
  }

  Values step(const LinearDense& dense, const LinearTree& tree, WeightsForm form, const Scalar* full) {
    // K' = w K + b adds b sum W to the functional, and T' = K' + w T.
    const double bias = dense.bias_variance * sum(form, take_weights(form), full, dense.bias_variance);
    const Values before = run(tree.inputs[0], form_before(tree, form, tree.inputs[0]), full);
    const double nngp = dense.weight_variance * before.nngp + bias;
    return {nngp, nngp + dense.weight_variance * before.ntk};
  }

  Values step(const LinearSum& node, const LinearTree& tree, WeightsForm form, const Scalar* full) {
    Scalar* const scratch_before = scratch_;
    const Scalar* const entries = multiplies(tree, form) ? product_of_factors(take(d_ * d_, e_ * e_)) : full;
    Values values;
    for (std::size_t i = 0; i < tree.inputs.size(); ++i) {
      const Values branch = run(tree.inputs[i], form_before(tree, form, tree.inputs[i]), entries);
      values.nngp += node.factors[i] * branch.nngp;
      values.ntk += node.factors[i] * branch.ntk;
    }
    scratch_ = scratch_before;
    return values;
  }

  Values step(const LinearSandwich& layer, const LinearTree& tree, WeightsForm form, const Scalar* full) {
    // The formulas of SandwichStage under the sum with W: `nngp` is that of A V A'^T and `ntk` that of A T_V A'^T.
    const auto [factor, bias_variance, input_weight] = layer.sandwich->form();
    const double bias = bias_variance * sum(form, take_weights(form), full, bias_variance);
    Scalar* const scratch_before = scratch_;
    const auto [in_front, weights] = weights_in_front(tree, form);
    const double positions = position_term(layer, form, weights, in_front);
    const Values before = run(tree.inputs[0], form_before(tree, form, tree.inputs[0]), in_front);
    scratch_ = scratch_before;
    const double nngp = input_weight * before.nngp + positions;
    const double ntk = input_weight * before.ntk + positions;
    return {factor * nngp + bias, factor * (ntk + 2 * nngp) + bias};
  }

  struct InFront {
    const Scalar* full;
    Sides vectors;
  };
  /// A^T W A', the weights of V before the attention: as vectors A^T u and A'^T u', or as a matrix, unless only layers
  /// further in front need one.
  InFront weights_in_front(const LinearTree& tree, WeightsForm form) {
    if (form == WeightsForm::outer) return {nullptr, take(d_, e_)};
    if (!multiplies(tree, form)) return {};
    const Sides factors = take(d_ * d_, e_ * e_);
    // Leading outputs exist only behind a flatten, where d = e.
    if (has_leading_outputs(tree, form) && d_ == e_ && leading_size(d_) > 0)
      return {product_of_leading(factors, take(leading_size(d_), leading_size(e_))), {}};
    return {product_of_factors(factors), {}};
  }

  /// B^T B', by leading outputs if both inputs have them.
  const Scalar* product_of_leading(const Sides& factors, const Sides& numbers) {
    const LeadingPair<Scalar> pair{leading_outputs(numbers.left, d_), leading_outputs(numbers.right, e_),
                                   factors.left, factors.right, d_};
    if (pair.left.rank == 0 || pair.right.rank == 0) return product_of_factors(factors);
    Scalar* target = take_scratch();
    leading_weights(pair, scratch_, target);
    return target;
  }

  /// B^T B'.
  const Scalar* product_of_factors(const Sides& factors) {
    Scalar* target = take_scratch();
    gemm(Transpose::yes, Transpose::no, d_, e_, d_, Scalar{1}, {factors.left, d_}, {factors.right, e_},
         Scalar{0}, target, e_);
    return target;
  }

  /// sum_ab (A^T W A')_ab R_ab, of the encodings in the values. It enters NNGP and NTK alike.
  double position_term(const LinearSandwich& layer, WeightsForm form, const Sides& vectors,
                       const Scalar* full) const {
    const auto positions = layer.sandwich->value_positions(states_.left_shape, states_.right_shape);
    if (!positions) return 0;
    const Matrix<Scalar> r = positions->template cast<Scalar>();
    return contract(form == WeightsForm::outer ? form : WeightsForm::full, vectors, full,
                    MatrixSums<Scalar>(r.data(), nullptr, d_, e_))
        .nngp;
  }

  /// The sums with W in whichever form it is given.
  static Values contract(WeightsForm form, const Sides& weights, const Scalar* full,
                         const PairSums<Scalar>& sums) {
    switch (form) {
      case WeightsForm::outer:
        return sums.outer(weights.left, weights.right);
      case WeightsForm::diagonal:
        return sums.diagonal(weights.left, weights.right);
      case WeightsForm::factors:  // no input of the tree has them
      case WeightsForm::full:
        break;
    }
    return sums.full(full);
  }

  /// The sum of the entries of W, which multiplies a bias. It is not computed for a bias of 0.
  double sum(WeightsForm form, const Sides& weights, const Scalar* full, double factor) const {
    if (factor == 0) return 0;
    const auto& rows = linear_rows<Scalar>();
    const auto d = static_cast<std::size_t>(d_), e = static_cast<std::size_t>(e_);
    if (form == WeightsForm::diagonal || form == WeightsForm::factors)
      return rows.dot(weights.left, weights.right, d);
    if (form == WeightsForm::outer) return rows.sum(weights.left, d) * rows.sum(weights.right, e);
    double total = 0;
    for (Index a = 0; a < d_; ++a) total += rows.sum(full + a * e_, e);
    return total;
  }

  /// The next numbers of both states.
  Sides take(Index left, Index right) {
    const Sides numbers{left_, right_};
    left_ += left;
    right_ += right;
    return numbers;
  }
  /// States hold no weights of a full W, which has no vectors.
  Sides take_weights(WeightsForm form) { return form == WeightsForm::full ? Sides{} : take(d_, e_); }
  Scalar* take_scratch() {
    Scalar* matrix = scratch_;
    scratch_ += d_ * e_;
    return matrix;
  }

  const PairSums<Scalar>* sums_ = nullptr;
  Index channels_ = 0;  ///< Channels of the features; 0 if sums_ are used.
  FeaturePair<Scalar> states_;
  Index d_ = position_count(states_.left_shape);
  Index e_ = position_count(states_.right_shape);
  const Scalar* left_ = states_.left_state;
  const Scalar* right_ = states_.right_state;
  Scalar* scratch_ = nullptr;
};

/// The factor of one input in W at the readout: u, or the diagonal's p. The product of both sides is 1 / d for
/// flatten, 1 / (d d') for averages and 1 for sums.
template <typename Scalar>
Scalar readout_weight(ReadoutKind kind, Index d) {
  switch (kind) {
    case ReadoutKind::flatten:
      return 1 / std::sqrt(static_cast<Scalar>(d));
    case ReadoutKind::average:
      return 1 / static_cast<Scalar>(d);
    case ReadoutKind::sum:
      break;
  }
  return 1;
}

/// Calls check(stage) for the pair stages of a tree. Errors name the stage's own layer, not the readout.
template <typename Check>
void check_stages(const LinearTree& tree, const Check& check) {
  if (const auto* layer = std::get_if<LinearSandwich>(&tree.operation)) {
    try {
      check(*layer->stage);
    } catch (const ArgumentError& error) {
      throw ArgumentError(fmt::format("{}: {}", layer->path, error.what()));
    }
  }
  for (const LinearTree& before : tree.inputs) check_stages(before, check);
}

void check_shapes(const LinearTree& tree, const Shape& input) {
  check_stages(tree, [&](const PairStage& stage) { static_cast<void>(stage.output_shape(input)); });
}

void check_pairs(const LinearTree& tree, const Shape& left, const Shape& right) {
  check_stages(tree, [&](const PairStage& stage) { check_shape_pair(stage, left, right); });
}

/// The stage of make_pulled_readout(). The engine calls it by sums (FunctionalStage) where K lies in planes, and as a
/// plain PairStage where K is a matrix.
class PulledReadout final : public PairStageOf<PulledReadout>, public FunctionalStage, public ShapePairCheck {
 public:
  PulledReadout(ReadoutKind kind, LinearTree layers, AttentionProducts products)
      : kind_{kind}, layers_{std::move(layers)}, products_{products} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .own_weights = false};
  }

  Shape output_shape(const Shape& input) const override {
    check_shapes(layers_, input);
    return {1};
  }

  void check_pair(const Shape& left, const Shape& right) const override { check_pairs(layers_, left, right); }

  [[nodiscard]] ReadoutKind kind() const { return kind_; }
  [[nodiscard]] PulledTree tree() const { return {&layers_, form()}; }

  Entries self_entries() const override { return Entries::all; }

  std::size_t state_size(const Shape& input) const override {
    return static_cast<std::size_t>(pulled_state_size(layers_, form(), position_count(input)));
  }

  std::size_t scratch_size(const Shape& left, const Shape& right) const override {
    return static_cast<std::size_t>(scratch_matrices(layers_, form()) * position_count(left) *
                                        position_count(right) +
                                    scratch_of_leading(layers_, form(), position_count(left)));
  }

  double flops(const PairSize& pair) const override { return flops_below(layers_, form(), pair); }

  [[nodiscard]] std::vector<std::string> names() const { return names_of(layers_); }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    static_cast<void>(write<Scalar>(input, nullptr, state));
  }

  bool reads_own_ntk(const Shape& shape) const override {
    // Leading outputs must hold nearly all of the NTK too, whose tail is five to ten times the NNGP's.
    return products_ == AttentionProducts::shortened &&
           keeps_leading_outputs(layers_, form(), position_count(shape));
  }
  Shortening prepare_with_ntk(const SelfView<float>& input, const float* ntk, float* state) const override {
    return write(input, ntk, state);
  }
  Shortening prepare_with_ntk(const SelfView<double>& input, const double* ntk,
                              double* state) const override {
    return write(input, ntk, state);
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const MatrixSums<Scalar> sums(pair.nngp.data(), pair.ntk.size() > 0 ? pair.ntk.data() : nullptr,
                                  pair.nngp.rows(), pair.nngp.cols());
    const Values values =
        value(sums, {pair.left_state, pair.right_state, pair.left_shape, pair.right_shape}, result.scratch);
    result.nngp(0, 0) = static_cast<Scalar>(values.nngp);
    if (result.ntk.size() > 0) result.ntk(0, 0) = static_cast<Scalar>(values.ntk);
  }

  using PairStageOf<PulledReadout>::apply;
  Values apply(const PairSums<float>& sums, const FeaturePair<float>& pair, float* scratch) const override {
    return value(sums, pair, scratch);
  }
  Values apply(const PairSums<double>& sums, const FeaturePair<double>& pair,
               double* scratch) const override {
    return value(sums, pair, scratch);
  }

 private:
  template <typename Scalar>
  Shortening write(const SelfView<Scalar>& input, const Scalar* ntk, Scalar* state) const {
    return write_pulled_state(layers_, form(), input, ntk, readout_weight<Scalar>(kind_, input.nngp.rows()),
                              state);
  }

  template <typename Scalar>
  Values value(const PairSums<Scalar>& sums, const FeaturePair<Scalar>& pair, Scalar* scratch) const {
    return PairWalk<Scalar>(sums, pair, scratch).run(layers_, form(), nullptr);
  }

  [[nodiscard]] WeightsForm form() const {
    return kind_ == ReadoutKind::flatten ? WeightsForm::diagonal : WeightsForm::outer;
  }

  ReadoutKind kind_;
  LinearTree layers_;
  AttentionProducts products_;
};

/// The stage of make_feature_readout(). Behind global pooling W always is an outer product.
class FeatureReadoutStage final : public FeatureStage, public ShapePairCheck {
 public:
  FeatureReadoutStage(ReadoutKind kind, LinearTree layers) : kind_{kind}, layers_{std::move(layers)} {}

  void check_shape(const Shape& shape) const override { check_shapes(layers_, shape); }

  void check_pair(const Shape& left, const Shape& right) const override { check_pairs(layers_, left, right); }

  [[nodiscard]] std::vector<std::string> names() const { return names_of(layers_); }

  std::size_t state_size(const Shape& shape, Index channels) const override {
    return static_cast<std::size_t>(feature_state_size(layers_, position_count(shape), channels));
  }

  void prepare(const FeatureView<float>& features, float* state) const override { write(features, state); }
  void prepare(const FeatureView<double>& features, double* state) const override { write(features, state); }

  Values apply(const FeaturePair<float>& pair, Index channels) const override {
    return value(pair, channels);
  }
  Values apply(const FeaturePair<double>& pair, Index channels) const override {
    return value(pair, channels);
  }

 private:
  template <typename Scalar>
  void write(const FeatureView<Scalar>& features, Scalar* state) const {
    write_feature_state(layers_, features, readout_weight<Scalar>(kind_, features.values.cols()), state);
  }

  template <typename Scalar>
  Values value(const FeaturePair<Scalar>& pair, Index channels) const {
    return PairWalk<Scalar>(pair, channels).run(layers_, WeightsForm::outer, nullptr);
  }

  ReadoutKind kind_;
  LinearTree layers_;
};

}  // namespace

std::shared_ptr<const PairStage> make_pulled_readout(ReadoutKind kind, LinearTree layers,
                                                     AttentionProducts products) {
  return std::make_shared<PulledReadout>(kind, std::move(layers), products);
}

std::shared_ptr<const FeatureStage> make_feature_readout(ReadoutKind kind, LinearTree layers) {
  return std::make_shared<FeatureReadoutStage>(kind, std::move(layers));
}

std::optional<PulledTree> pulled_tree(const PairStage& stage) {
  const auto* readout = dynamic_cast<const PulledReadout*>(&stage);
  return readout != nullptr ? std::optional(readout->tree()) : std::nullopt;
}

std::vector<std::string> pulled_layers(const PairStage& stage) {
  const auto* readout = dynamic_cast<const PulledReadout*>(&stage);
  return readout != nullptr ? readout->names() : std::vector<std::string>{};
}

std::vector<std::string> pulled_layers(const FeatureStage& stage) {
  return dynamic_cast<const FeatureReadoutStage&>(stage).names();
}

bool is_pulled_flatten(const PairStage& stage) {
  const auto* readout = dynamic_cast<const PulledReadout*>(&stage);
  return readout != nullptr && readout->kind() == ReadoutKind::flatten;
}

}  // namespace widelimit

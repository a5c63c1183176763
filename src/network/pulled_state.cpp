#include "network/pulled_state.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "network/leading_outputs.hpp"
#include "network/position_rotation.hpp"
#include "network/weights_form.hpp"
#include "numerics/gemm.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit {
namespace {

/// The numbers that an input's state holds for each kind of node, as a visitor. `form` is that of W behind the node.
/// The layout is described at pulled_state_size().
struct StateSizes {
  Index d;
  Index at_input;  ///< The numbers of a leaf: d of u or p, or the channels of x^T u.

  /// The vector u or p. A full W has none; the pair puts it together in its scratch.
  [[nodiscard]] Index weights(WeightsForm form) const { return form == WeightsForm::full ? 0 : d; }

  Index operator()(const LinearInput&, WeightsForm form) const {
    return form == WeightsForm::full ? 0 : at_input;
  }
  /// A vector has r multiplied in already; a full W is scaled by the pair.
  Index operator()(const LinearScaling&, WeightsForm form) const { return form == WeightsForm::full ? d : 0; }
  Index operator()(const LinearDense&, WeightsForm form) const { return weights(form); }
  /// The weights behind the attention, for its bias, and those before it, unless they are factors.
  Index operator()(const LinearSandwich&, WeightsForm form) const {
    return weights(form) + (form == WeightsForm::outer ? d : 0);
  }
  Index operator()(const LinearSum&, WeightsForm) const { return 0; }
};

/// The kernels of an input with itself before the tree, from which leading outputs are found.
template <typename Scalar>
struct OwnKernels {
  const SelfView<Scalar>& input;
  const Scalar* ntk;
};

/// V and T_V + 2 V of an input with itself before attention's weights (linear_stages.hpp).
template <typename Scalar>
class OwnValues {
 public:
  OwnValues(const SandwichStage& sandwich, const OwnKernels<Scalar>& own) : nngp_{own.input.nngp.data()} {
    const Index d = own.input.nngp.rows();
    const Eigen::Map<const Matrix<Scalar>> ntk(own.ntk, d, d);
    const auto weight = static_cast<Scalar>(sandwich.form().input_weight);
    const auto positions = sandwich.value_positions(own.input.shape, own.input.shape);
    if (!positions && weight == 1) {
      ntk_ = ntk + 2 * own.input.nngp;
      return;
    }
    values_ = weight * own.input.nngp;
    ntk_ = weight * ntk;
    if (positions) {
      const Matrix<Scalar> r = positions->template cast<Scalar>();
      values_ += r;
      ntk_ += r;
    }
    ntk_ += 2 * values_;
    nngp_ = values_.data();
  }

  [[nodiscard]] const Scalar* nngp() const { return nngp_; }
  [[nodiscard]] const Scalar* ntk() const { return ntk_.data(); }

 private:
  const Scalar* nngp_;
  Matrix<Scalar> values_;  ///< V, unless it is the input's own covariance.
  Matrix<Scalar> ntk_;
};

/// The layers run forward on one input with itself, as a tree of the same form: attention weights and scales of every
/// node.
template <typename Scalar>
struct Forward {
  Matrix<Scalar> covariance;    ///< Behind the node. Empty if not needed, and for the input.
  Vector<Scalar> variances;     ///< Its diagonal. May be empty if not needed.
  std::vector<Scalar> numbers;  ///< A [d, d] of attention, r [d] of a norm.
  bool searched = false;        ///< Whether normed_outputs() was tried.
  /// What it found.
  std::optional<NormedOutputs<Scalar>> leading;
  std::vector<Forward> inputs;
};

/// What the nodes behind need of a node's covariance, in ascending order: a norm needs variances, and attention
/// everything.
enum class Needed { nothing, diagonal, all };

/// Computes a Forward tree from the leaves to the root. Covariances of d^2 numbers are formed only where `needed`
/// asks for them.
template <typename Scalar>
class ForwardPass {
 public:
  /// With `own`, attention that leading outputs may stand for takes its variances from them, if few suffice.
  explicit ForwardPass(const SelfView<Scalar>& input, const OwnKernels<Scalar>* own = nullptr)
      : input_{input}, own_{own} {}

  Forward<Scalar> run(const LinearTree& tree, Needed needed) const {
    return std::visit([&](const auto& operation) { return step(operation, tree.inputs, needed); },
                      tree.operation);
  }

 private:
  using Covariance = Eigen::Map<const Matrix<Scalar>>;

  /// The covariance behind a node for which everything was needed. A leaf's is the input's own.
  [[nodiscard]] Covariance covariance(const Forward<Scalar>& forward) const {
    if (forward.covariance.size() == 0) return input_.nngp;
    return {forward.covariance.data(), forward.covariance.rows(), forward.covariance.cols()};
  }

  Forward<Scalar> step(const LinearInput&, const std::vector<LinearTree>&, Needed) const {
    Forward<Scalar> result;
    result.variances = input_.nngp.diagonal();
    return result;
  }

  Forward<Scalar> step(const LinearScaling& scaling, const std::vector<LinearTree>& inputs,
                       Needed needed) const {
    Forward<Scalar> result;
    // The scales r come from the variances before the norm.
    result.inputs.push_back(run(inputs[0], std::max(needed, Needed::diagonal)));
    const Forward<Scalar>& before = result.inputs[0];
    result.numbers.resize(static_cast<std::size_t>(before.variances.size()));
    Scalar* scales = result.numbers.data();
    scaling.stage->prepare(before.variances.data(), result.numbers.size(), &scales);
    const Eigen::Map<const Vector<Scalar>> r(scales, before.variances.size());
    result.variances = before.variances.cwiseProduct(r.cwiseAbs2());
    if (needed == Needed::all) result.covariance = r.asDiagonal() * covariance(before) * r.asDiagonal();
    return result;
  }

  Forward<Scalar> step(const LinearDense& dense, const std::vector<LinearTree>& inputs, Needed needed) const {
    Forward<Scalar> result;
    result.inputs.push_back(run(inputs[0], needed));
    const auto behind = [w = static_cast<Scalar>(dense.weight_variance),
                         b = static_cast<Scalar>(dense.bias_variance)](const auto& before) {
      return (w * before.array() + b).matrix();
    };
    result.variances = behind(result.inputs[0].variances);
    if (needed == Needed::all) result.covariance = behind(covariance(result.inputs[0]));
    return result;
  }

  Forward<Scalar> step(const LinearSandwich& layer, const std::vector<LinearTree>& inputs,
                       Needed needed) const {
    Forward<Scalar> result;
    // Attention weights depend on the whole covariance before the attention.
    result.inputs.push_back(run(inputs[0], Needed::all));
    const Covariance before = covariance(result.inputs[0]);
    result.numbers.resize(layer.stage->state_size(input_.shape));
    layer.stage->prepare(SelfView<Scalar>{before, input_.shape, input_.stop}, result.numbers.data());
    if (needed == Needed::diagonal) {
      // A norm follows, and no attention behind it, which would have needed everything. So W behind this attention is
      // still a diagonal, and its leading outputs serve the pairs as well as the norm.
      if (std::holds_alternative<LinearInput>(inputs[0].operation)) search(layer, result);
      if (!result.leading) result.variances = variances_behind(layer, before, result.numbers.data());
    }
    if (needed != Needed::all) return result;
    result.covariance = covariance_behind(layer, before, result.numbers.data());
    result.variances = result.covariance.diagonal();
    return result;
  }

  /// Searches leading outputs of the attention, and takes its variances f diag(A V A^T) + b from them if it finds
  /// any.
  void search(const LinearSandwich& layer, Forward<Scalar>& result) const {
    const Index d = input_.nngp.rows();
    if (own_ == nullptr || leading_size(d) == 0) return;
    const OwnValues<Scalar> values(*layer.sandwich, *own_);
    result.searched = true;
    result.leading =
        normed_outputs<Scalar>({result.numbers.data(), values.nngp(), values.ntk(), d, input_.stop});
    if (!result.leading) return;
    const auto form = layer.sandwich->form();
    result.variances = (static_cast<Scalar>(form.factor) * result.leading->variances.array() +
                        static_cast<Scalar>(form.bias))
                           .matrix();
  }

  /// f diag(A V A^T) + b exactly. A V = (A Q^T) (Q V) is made for 256 rows at a time, with the rotation Q of
  /// position_rotation.hpp.
  Vector<Scalar> variances_behind(const LinearSandwich& layer, const Covariance& before,
                                  const Scalar* attention) const {
    constexpr Index most_rows = 256;
    const Index d = before.rows();
    const auto [factor, bias, input_weight] = layer.sandwich->form();
    Matrix<Scalar> values = static_cast<Scalar>(input_weight) * before;
    if (const auto positions = layer.sandwich->value_positions(input_.shape, input_.shape))
      values += positions->template cast<Scalar>();
    rotate_rows(values.data(), d, d);
    Matrix<Scalar> turned, half;
    Vector<Scalar> variances(d);
    for (Index first = 0; first < d; first += most_rows) {
      const Index rows = std::min(most_rows, d - first);
      turned = Eigen::Map<const Matrix<Scalar>>(attention + first * d, rows, d);
      rotate_columns(turned.data(), rows, d);
      half.resize(rows, d);
      numerics::gemm(numerics::Transpose::no, numerics::Transpose::no, rows, d, d, Scalar{1},
                     {turned.data(), d}, {values.data(), d}, Scalar{0}, half.data(), d);
      for (Index a = 0; a < rows; ++a)
        variances[first + a] = static_cast<Scalar>(
            factor * numerics::linear_rows<Scalar>().dot(half.data() + a * d, attention + (first + a) * d,
                                                         static_cast<std::size_t>(d)) +
            bias);
    }
    return variances;
  }

  /// K' of the input with itself by the stage, exactly as it would be computed if it were a node.
  Matrix<Scalar> covariance_behind(const LinearSandwich& layer, const Covariance& before,
                                   const Scalar* attention) const {
    const Index d = before.rows();
    Matrix<Scalar> behind(d, d);
    std::vector<Scalar> scratch(layer.stage->scratch_size(input_.shape, input_.shape));
    const Vector<Scalar> variances = before.diagonal();
    PairResult<Scalar> target{{behind.data(), d, d}, {nullptr, 0, 0}, scratch.data()};
    layer.stage->apply(PairView<Scalar>{.nngp = before,
                                        .ntk = {nullptr, 0, 0},
                                        .left_variance = variances.data(),
                                        .right_variance = variances.data(),
                                        .left_state = attention,
                                        .right_state = attention,
                                        .left_shape = input_.shape,
                                        .right_shape = input_.shape,
                                        .same_input = true,
                                        .wanted = Entries::all,
                                        .stop = input_.stop},
                       target);
    return behind;
  }

  Forward<Scalar> step(const LinearSum& sum, const std::vector<LinearTree>& inputs, Needed needed) const {
    Forward<Scalar> result;
    for (const LinearTree& input : inputs) result.inputs.push_back(run(input, needed));
    // The branches' variances may be empty then.
    if (needed == Needed::nothing) return result;
    const Index d = input_.nngp.rows();
    result.variances = Vector<Scalar>::Zero(d);
    if (needed == Needed::all) result.covariance = Matrix<Scalar>::Zero(d, d);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto factor = static_cast<Scalar>(sum.factors[i]);
      result.variances += factor * result.inputs[i].variances;
      if (needed == Needed::all) result.covariance += factor * covariance(result.inputs[i]);
    }
    return result;
  }

  const SelfView<Scalar>& input_;
  const OwnKernels<Scalar>* own_;
};

/// The sizes of all nodes below, factors and leading outputs included.
Index state_size(const LinearTree& tree, WeightsForm form, const StateSizes& sizes) {
  Index size = std::visit([&](const auto& operation) { return sizes(operation, form); }, tree.operation);
  if (multiplies(tree, form)) size += sizes.d * sizes.d;
  if (has_leading_outputs(tree, form)) size += leading_size(sizes.d);
  for (const LinearTree& input : tree.inputs)
    size += state_size(input, form_before(tree, form, input), sizes);
  return size;
}

/// Whether a state depends on the input's covariance with itself: attention weights and norms do, dense layers and
/// sums do not.
bool needs_covariance(const LinearTree& tree) {
  return std::holds_alternative<LinearSandwich>(tree.operation) ||
         std::holds_alternative<LinearScaling>(tree.operation) ||
         std::any_of(tree.inputs.begin(), tree.inputs.end(), needs_covariance);
}

/// An input's share of W at a point of the tree.
template <typename Scalar>
struct Share {
  /// u or p; of factors their row sums B 1, whose products add up to the sum of W. Where W is full, this has no
  /// meaning but its size.
  Vector<Scalar> weights;
  /// B [d, d], if W is a product of factors. In double, because products of several layers' weights are sums of
  /// numbers of one sign.
  std::shared_ptr<const Matrix<double>> factor;
};

/// Writes an input's state, its share of W, from the readout down to the input. A node writes its numbers, then its
/// factor and its leading outputs, then its inputs write theirs from left to right. PairWalk reads them in this order.
template <typename Scalar>
class StateWriter {
 public:
  /// With `features`, leaves write products with them instead of weights. With `own`, leading outputs are searched.
  explicit StateWriter(Scalar* state, const FeatureView<Scalar>* features = nullptr,
                       const OwnKernels<Scalar>* own = nullptr)
      : next_{state}, features_{features}, own_{own} {}

  /// `share` is that behind the node.
  void run(const LinearTree& tree, const Forward<Scalar>& forward, WeightsForm form,
           const Share<Scalar>& share) {
    const Share<Scalar> in_front = std::visit(
        [&](const auto& operation) { return step(operation, tree, forward, form, share); }, tree.operation);
    if (has_leading_outputs(tree, form))
      write_leading(std::get<LinearSandwich>(tree.operation), forward, share.weights);
    for (std::size_t i = 0; i < tree.inputs.size(); ++i)
      run(tree.inputs[i], forward.inputs[i], form_before(tree, form, tree.inputs[i]), in_front);
  }

 private:
  using Vec = Vector<Scalar>;
  using Shared = Share<Scalar>;

  Shared step(const LinearInput&, const LinearTree&, const Forward<Scalar>&, WeightsForm form,
              const Shared& share) {
    if (features_ == nullptr) {
      write_weights(form, share);
      return share;
    }
    // x^T u, the sum over positions in double: it costs nothing beside the pairs.
    const Vec pooled = (features_->values.template cast<double>() * share.weights.template cast<double>())
                           .template cast<Scalar>();
    write(pooled);
    return share;
  }

  Shared step(const LinearDense&, const LinearTree&, const Forward<Scalar>&, WeightsForm form,
              const Shared& share) {
    write_weights(form, share);
    return share;
  }

  Shared step(const LinearSum&, const LinearTree& tree, const Forward<Scalar>&, WeightsForm form,
              const Shared& share) {
    if (multiplies(tree, form)) write_factor(*share.factor);
    return share;
  }

  Shared step(const LinearScaling&, const LinearTree&, const Forward<Scalar>& forward, WeightsForm form,
              const Shared& share) {
    const Eigen::Map<const Vec> r(forward.numbers.data(), static_cast<Index>(forward.numbers.size()));
    if (form == WeightsForm::factors)
      return with_factor(*share.factor * r.template cast<double>().asDiagonal());
    if (form != WeightsForm::full) return {share.weights.cwiseProduct(r), nullptr};
    write(r);
    return share;
  }

  Shared step(const LinearSandwich&, const LinearTree& tree, const Forward<Scalar>& forward, WeightsForm form,
              const Shared& share) {
    const Index d = share.weights.size();
    const Eigen::Map<const Matrix<Scalar>> attention(forward.numbers.data(), d, d);
    write_weights(form, share);
    if (form == WeightsForm::outer) {
      Vec in_front = attention.transpose() * share.weights;
      write(in_front);
      return {in_front, nullptr};
    }
    if (form == WeightsForm::diagonal && form_before(tree, form, tree.inputs[0]) == WeightsForm::full) {
      Eigen::Map<Matrix<Scalar>> target(next_, d, d);
      target = share.weights.asDiagonal() * attention;
      rotate_rows(next_, d, d);
      next_ += d * d;
      return share;
    }
    Matrix<double> factor = attention.template cast<double>();
    if (form == WeightsForm::diagonal)
      factor = share.weights.template cast<double>().asDiagonal() * factor;
    else
      factor = product(*share.factor, factor);
    if (multiplies(tree, form)) write_factor(factor);
    return with_factor(std::move(factor));
  }

  static Shared with_factor(Matrix<double> factor) {
    Vec sums = factor.rowwise().sum().template cast<Scalar>();
    return {std::move(sums), std::make_shared<const Matrix<double>>(std::move(factor))};
  }

  static Matrix<double> product(const Matrix<double>& left, const Matrix<double>& right) {
    const Index d = left.rows();
    Matrix<double> result(d, d);
    numerics::gemm(numerics::Transpose::no, numerics::Transpose::no, d, d, d, 1.0, {left.data(), d},
                   {right.data(), d}, 0.0, result.data(), d);
    return result;
  }

  void write_factor(const Matrix<double>& factor) {
    const Index d = factor.rows();
    Eigen::Map<Matrix<Scalar>>(next_, d, d) = factor.template cast<Scalar>();
    rotate_rows(next_, d, d);
    next_ += d * d;
  }

  /// Runs right after the step of the attention, so that Z = diag(p) A [d, d] stands rotated just before next_.
  void write_leading(const LinearSandwich& layer, const Forward<Scalar>& forward, const Vec& weights) {
    const Index d = weights.size();
    if (leading_size(d) == 0) return;
    // Directions found for the norm's variances are used again. A search that failed there would fail here too and is
    // not repeated. Without such a search, or if p is too far from the scales that it assumed, Z itself is searched.
    const bool written = forward.leading && write_normed_outputs(*forward.leading, weights, next_);
    if (own_ == nullptr || (forward.searched && !forward.leading)) {
      write_no_leading_outputs(next_);
    } else if (!written) {
      const OwnValues<Scalar> values(*layer.sandwich, *own_);
      write_leading_outputs<Scalar>({next_ - d * d, values.nngp(), values.ntk(), d, own_->input.stop}, next_);
    }
    next_ += leading_size(d);
  }

  template <typename Source>
  void write(const Source& vector) {
    std::copy_n(vector.data(), vector.size(), next_);
    next_ += vector.size();
  }
  void write_weights(WeightsForm form, const Shared& share) {
    if (form != WeightsForm::full) write(share.weights);
  }

  Scalar* next_;
  const FeatureView<Scalar>* features_;
  const OwnKernels<Scalar>* own_;
};

}  // namespace

Index pulled_state_size(const LinearTree& tree, WeightsForm form, Index d) {
  return state_size(tree, form, {d, d});
}

Index feature_state_size(const LinearTree& tree, Index d, Index channels) {
  return state_size(tree, WeightsForm::outer, {d, channels});
}

template <typename Scalar>
void write_pulled_state(const LinearTree& tree, WeightsForm form, const SelfView<Scalar>& input,
                        const Scalar* ntk, Scalar weight, Scalar* state) {
  const OwnKernels<Scalar> kernels{input, ntk};
  // Only a diagonal W can meet attention that keeps leading outputs.
  const OwnKernels<Scalar>* own = ntk == nullptr || form != WeightsForm::diagonal ? nullptr : &kernels;
  const Forward<Scalar> forward = ForwardPass<Scalar>(input, own).run(tree, Needed::nothing);
  StateWriter<Scalar>(state, nullptr, own)
      .run(tree, forward, form, {Vector<Scalar>::Constant(input.nngp.rows(), weight), nullptr});
}

template <typename Scalar>
void write_feature_state(const LinearTree& tree, const FeatureView<Scalar>& features, Scalar weight,
                         Scalar* state) {
  const Index channels = features.values.rows(), d = features.values.cols();
  Matrix<Scalar> covariance(d, d);
  // K = x^T x / C of features x [channels, d]. Without attention and norms nothing reads it, so that zeros do.
  if (needs_covariance(tree))
    numerics::gemm(numerics::Transpose::yes, numerics::Transpose::no, d, d, channels,
                   Scalar{1} / static_cast<Scalar>(channels), {features.values.data(), d},
                   {features.values.data(), d}, Scalar{0}, covariance.data(), d);
  else
    covariance.setZero();
  const SelfView<Scalar> input{{covariance.data(), d, d}, features.shape};
  const Forward<Scalar> forward = ForwardPass<Scalar>(input).run(tree, Needed::nothing);
  StateWriter<Scalar>(state, &features)
      .run(tree, forward, WeightsForm::outer, {Vector<Scalar>::Constant(d, weight), nullptr});
}

template void write_feature_state(const LinearTree&, const FeatureView<float>&, float, float*);
template void write_feature_state(const LinearTree&, const FeatureView<double>&, double, double*);
template void write_pulled_state(const LinearTree&, WeightsForm, const SelfView<float>&, const float*, float,
                                 float*);
template void write_pulled_state(const LinearTree&, WeightsForm, const SelfView<double>&, const double*,
                                 double, double*);

}  // namespace widelimit

#include "kernel/readouts/pulled_state.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernel/readouts/leading_outputs.hpp"
#include "kernel/readouts/position_rotation.hpp"
#include "kernel/readouts/pulled_forward.hpp"
#include "kernel/readouts/weights_form.hpp"
#include "numerics/gemm.hpp"

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

  [[nodiscard]] const Shortening& shortening() const { return shortening_; }

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
    const LeadingOutputs<Scalar> leading = leading_outputs<Scalar>(next_, d);
    shortening_.rank = std::max(shortening_.rank, leading.rank);
    shortening_.tail = std::max({shortening_.tail, leading.nngp_tail, leading.ntk_tail});
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
  Shortening shortening_;
};

}  // namespace

Index pulled_state_size(const LinearTree& tree, WeightsForm form, Index d) {
  return state_size(tree, form, {d, d});
}

Index feature_state_size(const LinearTree& tree, Index d, Index channels) {
  return state_size(tree, WeightsForm::outer, {d, channels});
}

template <typename Scalar>
Shortening write_pulled_state(const LinearTree& tree, WeightsForm form, const SelfView<Scalar>& input,
                              const Scalar* ntk, Scalar weight, Scalar* state) {
  const OwnKernels<Scalar> kernels{input, ntk};
  // Only a diagonal W can meet attention that keeps leading outputs.
  const OwnKernels<Scalar>* own = ntk == nullptr || form != WeightsForm::diagonal ? nullptr : &kernels;
  const Forward<Scalar> forward = ForwardPass<Scalar>(input, own).run(tree, Needed::nothing);
  StateWriter<Scalar> writer(state, nullptr, own);
  writer.run(tree, forward, form, {Vector<Scalar>::Constant(input.nngp.rows(), weight), nullptr});
  return writer.shortening();
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
template Shortening write_pulled_state(const LinearTree&, WeightsForm, const SelfView<float>&, const float*,
                                       float, float*);
template Shortening write_pulled_state(const LinearTree&, WeightsForm, const SelfView<double>&, const double*,
                                       double, double*);

}  // namespace widelimit

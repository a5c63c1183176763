#include "network/pulled_state.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "numerics/gemm.hpp"

namespace widelimit {
namespace {

/// What an input's state holds at a node of the tree.
struct StateSizes {
  Index d;
  Index at_input;  ///< Numbers of the vector where the tree ends.

  /// At a point where W is given by one vector an input: that vector. W itself is put together by the pair.
  [[nodiscard]] Index weights(WeightsForm form) const { return form == WeightsForm::full ? 0 : d; }

  Index operator()(const LinearInput&, WeightsForm form) const {
    return form == WeightsForm::full ? 0 : at_input;
  }
  /// r, where W is not a product.
  Index operator()(const LinearScaling&, WeightsForm form) const { return form == WeightsForm::full ? d : 0; }
  Index operator()(const LinearDense&, WeightsForm form) const { return weights(form); }
  /// W and what makes the W in front of it: A^T u; diag(p) A; A.
  Index operator()(const LinearSandwich&, WeightsForm form) const {
    return weights(form) + (form == WeightsForm::outer ? d : d * d);
  }
  Index operator()(const LinearSum&, WeightsForm) const { return 0; }
};

/// The layers run forward on one input with itself: attention weights and scales of every node.
template <typename Scalar>
struct Forward {
  Matrix<Scalar> covariance;    ///< Behind the node; empty where nobody needs it.
  std::vector<Scalar> numbers;  ///< A or r.
  std::vector<Forward> inputs;
};

enum class Needed { nothing, diagonal, all };

template <typename Scalar>
class ForwardPass {
 public:
  explicit ForwardPass(const SelfView<Scalar>& input) : input_{input} {}

  Forward<Scalar> run(const LinearTree& tree, Needed needed) const {
    return std::visit([&](const auto& operation) { return step(operation, tree.inputs, needed); },
                      tree.operation);
  }

 private:
  Forward<Scalar> step(const LinearInput&, const std::vector<LinearTree>&, Needed) const {
    return {input_.nngp, {}, {}};
  }

  Forward<Scalar> step(const LinearScaling& scaling, const std::vector<LinearTree>& inputs,
                       Needed needed) const {
    Forward<Scalar> result{{}, {}, {run(inputs[0], std::max(needed, Needed::diagonal))}};
    const Matrix<Scalar>& before = result.inputs[0].covariance;
    const Vector<Scalar> variances = before.diagonal();
    result.numbers.resize(static_cast<std::size_t>(variances.size()));
    Scalar* scales = result.numbers.data();
    scaling.stage->prepare(variances.data(), result.numbers.size(), &scales);
    const Eigen::Map<const Vector<Scalar>> r(scales, variances.size());
    if (needed != Needed::nothing) result.covariance = r.asDiagonal() * before * r.asDiagonal();
    return result;
  }

  Forward<Scalar> step(const LinearDense& dense, const std::vector<LinearTree>& inputs, Needed needed) const {
    Forward<Scalar> result{{}, {}, {run(inputs[0], needed)}};
    const auto w = static_cast<Scalar>(dense.weight_variance);
    const auto b = static_cast<Scalar>(dense.bias_variance);
    if (needed != Needed::nothing) result.covariance = (w * result.inputs[0].covariance.array() + b).matrix();
    return result;
  }

  Forward<Scalar> step(const LinearSandwich& layer, const std::vector<LinearTree>& inputs,
                       Needed needed) const {
    Forward<Scalar> result{{}, {}, {run(inputs[0], Needed::all)}};
    const Matrix<Scalar>& before = result.inputs[0].covariance;
    const Index d = before.rows();
    const Eigen::Map<const Matrix<Scalar>> nngp(before.data(), d, d);
    result.numbers.resize(layer.stage->state_size(input_.shape));
    layer.stage->prepare(SelfView<Scalar>{nngp, input_.shape}, result.numbers.data());
    if (needed == Needed::nothing) return result;
    result.covariance = Matrix<Scalar>::Constant(d, d, std::numeric_limits<Scalar>::quiet_NaN());
    std::vector<Scalar> scratch(layer.stage->scratch_size(input_.shape, input_.shape));
    const Vector<Scalar> variances = before.diagonal();
    PairResult<Scalar> target{{result.covariance.data(), d, d}, {nullptr, 0, 0}, scratch.data()};
    layer.stage->apply({.nngp = nngp,
                        .ntk = {nullptr, 0, 0},
                        .left_variance = variances.data(),
                        .right_variance = variances.data(),
                        .left_state = result.numbers.data(),
                        .right_state = result.numbers.data(),
                        .left_shape = input_.shape,
                        .right_shape = input_.shape,
                        .same_input = true,
                        .wanted = needed == Needed::all ? Entries::all : Entries::diagonal},
                       target);
    return result;
  }

  Forward<Scalar> step(const LinearSum& sum, const std::vector<LinearTree>& inputs, Needed needed) const {
    Forward<Scalar> result;
    for (const LinearTree& input : inputs) result.inputs.push_back(run(input, needed));
    if (needed == Needed::nothing) return result;
    result.covariance = static_cast<Scalar>(sum.factors[0]) * result.inputs[0].covariance;
    for (std::size_t i = 1; i < inputs.size(); ++i)
      result.covariance += static_cast<Scalar>(sum.factors[i]) * result.inputs[i].covariance;
    return result;
  }

  const SelfView<Scalar>& input_;
};

Index state_size(const LinearTree& tree, WeightsForm form, const StateSizes& sizes) {
  Index size = std::visit([&](const auto& operation) { return sizes(operation, form); }, tree.operation);
  for (const LinearTree& input : tree.inputs) size += state_size(input, form_in_front(tree, form), sizes);
  return size;
}

/// True if the weights depend on the covariance.
bool needs_covariance(const LinearTree& tree) {
  return std::holds_alternative<LinearSandwich>(tree.operation) ||
         std::holds_alternative<LinearScaling>(tree.operation) ||
         std::any_of(tree.inputs.begin(), tree.inputs.end(), needs_covariance);
}

/// Writes an input's state: its share of W, from the readout down to the input.
template <typename Scalar>
class StateWriter {
 public:
  /// With `features`, products with them are written where the tree ends.
  explicit StateWriter(Scalar* state, const FeatureView<Scalar>* features = nullptr)
      : next_{state}, features_{features} {}

  /// `weights`: this input's vector of W, meaningless where W has all entries.
  void run(const LinearTree& tree, const Forward<Scalar>& forward, WeightsForm form,
           const Vector<Scalar>& weights) {
    const Vector<Scalar> in_front = std::visit(
        [&](const auto& operation) { return step(operation, forward, form, weights); }, tree.operation);
    for (std::size_t i = 0; i < tree.inputs.size(); ++i)
      run(tree.inputs[i], forward.inputs[i], form_in_front(tree, form), in_front);
  }

 private:
  using Vec = Vector<Scalar>;

  Vec step(const LinearInput&, const Forward<Scalar>&, WeightsForm form, const Vec& weights) {
    if (features_ == nullptr) return write_weights(form, weights);
    const Vec pooled = features_->values * weights;
    write(pooled);
    return weights;
  }
  Vec step(const LinearDense&, const Forward<Scalar>&, WeightsForm form, const Vec& weights) {
    return write_weights(form, weights);
  }
  Vec step(const LinearSum&, const Forward<Scalar>&, WeightsForm, const Vec& weights) { return weights; }

  Vec step(const LinearScaling&, const Forward<Scalar>& forward, WeightsForm form, const Vec& weights) {
    const Eigen::Map<const Vec> r(forward.numbers.data(), static_cast<Index>(forward.numbers.size()));
    if (form != WeightsForm::full) return weights.cwiseProduct(r);
    write(r);
    return weights;
  }

  Vec step(const LinearSandwich&, const Forward<Scalar>& forward, WeightsForm form, const Vec& weights) {
    const Index d = weights.size();
    const Eigen::Map<const Matrix<Scalar>> attention(forward.numbers.data(), d, d);
    write_weights(form, weights);
    if (form == WeightsForm::outer) {
      Vec in_front = attention.transpose() * weights;
      write(in_front);
      return in_front;
    }
    Eigen::Map<Matrix<Scalar>> target(next_, d, d);
    target = attention;
    if (form == WeightsForm::diagonal) target = weights.asDiagonal() * attention;
    next_ += d * d;
    return weights;
  }

  template <typename Source>
  void write(const Source& vector) {
    std::copy_n(vector.data(), vector.size(), next_);
    next_ += vector.size();
  }
  Vec write_weights(WeightsForm form, const Vec& weights) {
    if (form != WeightsForm::full) write(weights);
    return weights;
  }

  Scalar* next_;
  const FeatureView<Scalar>* features_;
};

}  // namespace

WeightsForm in_front_of_sandwich(WeightsForm form) {
  return form == WeightsForm::outer ? WeightsForm::outer : WeightsForm::full;
}

WeightsForm form_in_front(const LinearTree& tree, WeightsForm form) {
  return std::holds_alternative<LinearSandwich>(tree.operation) ? in_front_of_sandwich(form) : form;
}

Index pulled_state_size(const LinearTree& tree, WeightsForm form, Index d) {
  return state_size(tree, form, {d, d});
}

Index feature_state_size(const LinearTree& tree, Index d, Index channels) {
  return state_size(tree, WeightsForm::outer, {d, channels});
}

template <typename Scalar>
void write_pulled_state(const LinearTree& tree, WeightsForm form, const SelfView<Scalar>& input,
                        Scalar weight, Scalar* state) {
  const Forward<Scalar> forward = ForwardPass<Scalar>(input).run(tree, Needed::nothing);
  StateWriter<Scalar>(state).run(tree, forward, form, Vector<Scalar>::Constant(input.nngp.rows(), weight));
}

template <typename Scalar>
void write_feature_state(const LinearTree& tree, const FeatureView<Scalar>& features, Scalar weight,
                         Scalar* state) {
  const Index channels = features.values.rows(), d = features.values.cols();
  Matrix<Scalar> covariance(d, d);
  if (needs_covariance(tree))
    numerics::gemm(numerics::Transpose::yes, numerics::Transpose::no, d, d, channels,
                   Scalar{1} / static_cast<Scalar>(channels), {features.values.data(), d},
                   {features.values.data(), d}, Scalar{0}, covariance.data(), d);
  else
    covariance.setZero();
  const SelfView<Scalar> input{{covariance.data(), d, d}, features.shape};
  const Forward<Scalar> forward = ForwardPass<Scalar>(input).run(tree, Needed::nothing);
  StateWriter<Scalar>(state, &features)
      .run(tree, forward, WeightsForm::outer, Vector<Scalar>::Constant(d, weight));
}

template void write_feature_state(const LinearTree&, const FeatureView<float>&, float, float*);
template void write_feature_state(const LinearTree&, const FeatureView<double>&, double, double*);
template void write_pulled_state(const LinearTree&, WeightsForm, const SelfView<float>&, float, float*);
template void write_pulled_state(const LinearTree&, WeightsForm, const SelfView<double>&, double, double*);

}  // namespace widelimit

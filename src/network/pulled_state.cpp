#include "network/pulled_state.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace widelimit {
namespace {

/// What an input's state holds at a node of the tree.
struct StateSizes {
  Index d;

  /// At a point where W is given by one vector an input: that vector. W itself is put together by the pair.
  [[nodiscard]] Index weights(WeightsForm form) const { return form == WeightsForm::full ? 0 : d; }

  Index operator()(const LinearInput&, WeightsForm form) const { return weights(form); }
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

/// Writes an input's state: its share of W, from the readout down to the input.
template <typename Scalar>
class StateWriter {
 public:
  explicit StateWriter(Scalar* state) : next_{state} {}

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
    return write_weights(form, weights);
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
      const Vec in_front = attention.transpose() * weights;
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
};

}  // namespace

WeightsForm in_front_of_sandwich(WeightsForm form) {
  return form == WeightsForm::outer ? WeightsForm::outer : WeightsForm::full;
}

WeightsForm form_in_front(const LinearTree& tree, WeightsForm form) {
  return std::holds_alternative<LinearSandwich>(tree.operation) ? in_front_of_sandwich(form) : form;
}

Index pulled_state_size(const LinearTree& tree, WeightsForm form, Index d) {
  Index size =
      std::visit([&](const auto& operation) { return StateSizes{d}(operation, form); }, tree.operation);
  for (const LinearTree& input : tree.inputs) size += pulled_state_size(input, form_in_front(tree, form), d);
  return size;
}

template <typename Scalar>
void write_pulled_state(const LinearTree& tree, WeightsForm form, const SelfView<Scalar>& input,
                        Scalar weight, Scalar* state) {
  const Forward<Scalar> forward = ForwardPass<Scalar>(input).run(tree, Needed::nothing);
  StateWriter<Scalar>(state).run(tree, forward, form, Vector<Scalar>::Constant(input.nngp.rows(), weight));
}

template void write_pulled_state(const LinearTree&, WeightsForm, const SelfView<float>&, float, float*);
template void write_pulled_state(const LinearTree&, WeightsForm, const SelfView<double>&, double, double*);

}  // namespace widelimit

#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "kernel/readouts/leading_outputs.hpp"
#include "kernel/readouts/position_rotation.hpp"
#include "kernel/readouts/pulled_readout.hpp"
#include "numerics/gemm.hpp"
#include "widelimit/network/pair_stage.hpp"

/// The layers that a readout is pulled back through, run forward on one input with itself.
namespace widelimit {

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
      if (!result.leading) result.variances = variances_after(layer, before, result.numbers.data());
    }
    if (needed != Needed::all) return result;
    result.covariance = covariance_after(layer, before, result.numbers.data());
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
  Vector<Scalar> variances_after(const LinearSandwich& layer, const Covariance& before,
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
      // The sums along the rows have one sign again. In double they cost little beside the product.
      const Eigen::Map<const Matrix<Scalar>> weights(attention + first * d, rows, d);
      for (Index a = 0; a < rows; ++a)
        variances[first + a] = static_cast<Scalar>(
            factor * half.row(a).template cast<double>().dot(weights.row(a).template cast<double>()) + bias);
    }
    return variances;
  }

  /// K' of the input with itself by the stage, exactly as it would be computed if it were a node.
  Matrix<Scalar> covariance_after(const LinearSandwich& layer, const Covariance& before,
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

}  // namespace widelimit

#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "network/linear_adjoints.hpp"
#include "widelimit/network/pair_stage.hpp"
#include "widelimit/network/row_stage.hpp"

/// Stages that put tokens of known covariance in front of a network's layers, and that look at them on their way.
namespace widelimit::propagation {

/// Puts a covariance of tokens and a tangent kernel in the place of what comes: the inputs themselves do not matter.
class GivenTokens final : public PairStageOf<GivenTokens> {
 public:
  /// Both [n, n].
  GivenTokens(Matrix<double> gram, Matrix<double> tangent)
      : gram_{std::move(gram)}, tangent_{std::move(tangent)} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::gaussian,
            .fresh_weights = true};
  }
  Shape output_shape(const Shape& input) const override { return input; }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>&, PairResult<Scalar>& result) const {
    result.nngp = gram_.cast<Scalar>();
    if (result.ntk.size() != 0) result.ntk = tangent_.cast<Scalar>();
  }

 private:
  Matrix<double> gram_, tangent_;
};

/// A stage that changes the tangent kernel only.
template <typename Stage>
class TangentStageOf : public LinearStageOf<Stage> {
 public:
  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .fresh_weights = false};
  }
  std::size_t auxiliary_count() const override { return 0; }
  bool clears_gaps() const override { return true; }

  template <typename Scalar>
  void prepare_row(const Scalar*, std::size_t, Scalar* const*) const {}
};

/// T' = factor T.
class TangentFactor final : public TangentStageOf<TangentFactor> {
 public:
  explicit TangentFactor(double factor) : factor_{factor} {}

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    if (row.ntk == nullptr) return;
    for (std::size_t i = 0; i < row.size; ++i) row.ntk[i] *= static_cast<Scalar>(factor_);
  }

  template <typename Scalar>
  void self_adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    apply_row(adjoints_as_row(row));
  }

 private:
  double factor_;
};

/// T' = factor (K - bias): the part of a layer's own tangent kernel that weights behind K's last product have.
class NormIntoTangent final : public TangentStageOf<NormIntoTangent> {
 public:
  NormIntoTangent(double factor, double bias) : factor_{factor}, bias_{bias} {}

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    if (row.ntk == nullptr) return;
    for (std::size_t i = 0; i < row.size; ++i)
      row.ntk[i] = static_cast<Scalar>(factor_) * (row.nngp[i] - static_cast<Scalar>(bias_));
  }

 private:
  double factor_, bias_;
};

/// Keeps what passes of one input with itself, once a replicate. Not for several threads.
class TokenTap final : public PairStageOf<TokenTap> {
 public:
  struct Passed {
    Matrix<double> gram, tangent;
  };

  /// `on_passed` is called whenever something has been kept.
  explicit TokenTap(std::function<void()> on_passed) : on_passed_{std::move(on_passed)} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .fresh_weights = false};
  }
  Shape output_shape(const Shape& input) const override { return input; }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    result.nngp = pair.nngp;
    // While states are made an input meets itself without its tangent kernel.
    if (result.ntk.size() == 0) return;
    result.ntk = pair.ntk;
    passed_.push_back({pair.nngp.template cast<double>(), pair.ntk.template cast<double>()});
    if (on_passed_) on_passed_();
  }

  /// One a replicate.
  [[nodiscard]] const std::vector<Passed>& passed() const { return passed_; }

 private:
  std::function<void()> on_passed_;
  mutable std::vector<Passed> passed_;
};

}  // namespace widelimit::propagation

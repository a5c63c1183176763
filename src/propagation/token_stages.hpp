#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "network/linear_adjoints.hpp"
#include "widelimit/network/pair_stage.hpp"
#include "widelimit/network/row_stage.hpp"

/// Stages that put tokens of known covariance before a network's layers, and that look at them on their way.
namespace widelimit::propagation {

/// A start T of the tangent recursion is multiplied by it, and results are divided by it: T' is linear in T but for
/// what parameters add on the way, which so vanishes in rounding, a factor of 1e-60 away.
inline constexpr double tangent_scale = 0x1p200;

/// Puts a covariance of tokens and a tangent kernel in the place of what comes: the inputs themselves do not matter.
class GivenTokens final : public PairStageOf<GivenTokens> {
 public:
  /// Both [n, n].
  GivenTokens(Matrix<double> gram, Matrix<double> tangent)
      : gram_{std::move(gram)}, tangent_{std::move(tangent)} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::gaussian,
            .own_weights = true};
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
            .own_weights = false};
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

/// T' = factor (K - bias): the part of a layer's own tangent kernel that weights after K's last product have.
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

/// Whether this is the Gram matrix of tokens that are equal but for rounding.
[[nodiscard]] bool is_of_equal_tokens(const Matrix<double>& gram);

/// What a tap does to tokens on their way, beside keeping them.
enum class TokenRule {
  as_they_are,  ///< It changes nothing.
  scaled,       ///< A power of two is taken out of the tangent kernel, which brings it back to its scale.
  equal_tokens,  ///< The same, and equal tokens stay equal: a chaotic block would tear them apart by their rounding.
  contrasts  ///< The same, and the tangent kernel keeps differences between equal tokens only.
};

/// Keeps what passes of one input with itself, once a replicate. Under every rule but the first the tangent kernel
/// neither overflows nor vanishes at any depth. Not for several threads.
class TokenTap final : public PairStageOf<TokenTap> {
 public:
  struct Passed {
    Matrix<double> gram, tangent;
    int exponent;  ///< The tangent kernel is `tangent` times 2^exponent.
  };

  /// `before`: the tap before this one, null for the first. `on_passed` is called whenever something has been kept.
  TokenTap(TokenRule rule, std::shared_ptr<const TokenTap> before, std::function<void()> on_passed)
      : rule_{rule}, before_{std::move(before)}, on_passed_{std::move(on_passed)} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .own_weights = false};
  }
  Shape output_shape(const Shape& input) const override { return input; }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    Matrix<double> gram = pair.nngp.template cast<double>();
    const bool equal = rule_ >= TokenRule::equal_tokens && equalise(gram);
    result.nngp = gram.template cast<Scalar>();
    // While states are made an input meets itself without its tangent kernel.
    if (result.ntk.size() == 0) return;
    Matrix<double> tangent = pair.ntk.template cast<double>();
    if (equal && rule_ == TokenRule::contrasts) take_means_away(tangent);
    result.ntk = (tangent * std::ldexp(1.0, -taken_out(tangent))).template cast<Scalar>();
    const int exponent = before_ ? before_->exponent_after(passed_.size()) : 0;
    passed_.push_back({std::move(gram), std::move(tangent), exponent});
    if (on_passed_) on_passed_();
  }

  /// One a replicate.
  [[nodiscard]] const std::vector<Passed>& passed() const { return passed_; }

 private:
  /// Whether all tokens are equal but for rounding; then they are made so to the last bit.
  static bool equalise(Matrix<double>& gram);
  /// P T P, where P takes the mean over tokens away.
  static void take_means_away(Matrix<double>& tangent);
  /// The power of two by which the largest entry is above the scale; 0 where tokens go on as they are.
  int taken_out(const Matrix<double>& tangent) const;

  int exponent_after(std::size_t replicate) const {
    return passed_[replicate].exponent + taken_out(passed_[replicate].tangent);
  }

  TokenRule rule_;
  std::shared_ptr<const TokenTap> before_;
  std::function<void()> on_passed_;
  mutable std::vector<Passed> passed_;
};

}  // namespace widelimit::propagation

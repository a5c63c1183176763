#pragma once

#include "widelimit/network/pair_stage.hpp"
#include "widelimit/network/row_stage.hpp"

/// Stages whose numbers are simple, so that a test can say what they must make of what the engine hands them.
namespace widelimit::testing {

/// K' = 2 K + l r, T' = 3 T with one auxiliary number, the variance and 1; inputs with themselves give 5 K + l r,
/// multiples 7 K + l r.
class LoopRowStage final : public RowStageOf<LoopRowStage> {
 public:
  static constexpr double usual = 2, itself = 5, multiple = 7, ntk = 3;

  [[nodiscard]] StageRules rules() const override { return {}; }
  [[nodiscard]] std::size_t auxiliary_count() const override { return 1; }
  [[nodiscard]] Multiples multiples() const override { return Multiples::kept; }

  template <typename Scalar>
  void prepare_row(const Scalar* variance, std::size_t positions, Scalar* const* auxiliary) const {
    for (std::size_t i = 0; i < positions; ++i) auxiliary[0][i] = variance[i] + 1;
  }
  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    apply_with(row, usual);
  }
  void apply_to_multiples(const numerics::DualRow<float>& row) const override { apply_with(row, multiple); }
  void apply_to_multiples(const numerics::DualRow<double>& row) const override { apply_with(row, multiple); }
  void apply_self(const numerics::DualRow<float>& row) const override { apply_with(row, itself); }
  void apply_self(const numerics::DualRow<double>& row) const override { apply_with(row, itself); }

 private:
  template <typename Scalar>
  static void apply_with(const numerics::DualRow<Scalar>& row, double factor) {
    for (std::size_t i = 0; i < row.size; ++i) {
      row.nngp[i] = static_cast<Scalar>(factor) * row.nngp[i] + row.left[0][i] * row.right[0][i];
      if (row.ntk != nullptr) row.ntk[i] *= static_cast<Scalar>(ntk);
    }
  }
};

/// K'[a][b] = K[a][b] + s[a] s'[b] + v[a] - v'[b], 1 more for an input with itself, T'[a][b] = 2 T[a][b]; the states s
/// are twice the variances v. Entries that nobody wants are left alone.
class LoopPairStage final : public PairStageOf<LoopPairStage> {
 public:
  [[nodiscard]] StageRules rules() const override { return {}; }
  [[nodiscard]] Shape output_shape(const Shape& input) const override { return input; }
  [[nodiscard]] std::size_t state_size(const Shape& shape) const override {
    return static_cast<std::size_t>(position_count(shape));
  }
  [[nodiscard]] std::size_t scratch_size(const Shape& /*left*/, const Shape& /*right*/) const override {
    return 3;
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    for (Eigen::Index a = 0; a < input.nngp.rows(); ++a) state[a] = 2 * input.nngp(a, a);
  }
  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    for (int k = 0; k < 3; ++k) result.scratch[k] = Scalar{99};  // it is the stage's own
    for (Eigen::Index a = 0; a < result.nngp.rows(); ++a)
      for (Eigen::Index b = 0; b < result.nngp.cols(); ++b) {
        if (pair.wanted == Entries::diagonal && a != b) continue;
        result.nngp(a, b) = pair.nngp(a, b) + pair.left_state[a] * pair.right_state[b] +
                            pair.left_variance[a] - pair.right_variance[b] + (pair.same_input ? 1 : 0);
        if (result.ntk.size() > 0) result.ntk(a, b) = 2 * pair.ntk(a, b);
      }
  }
};

}  // namespace widelimit::testing

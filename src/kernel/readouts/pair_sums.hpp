#pragma once

#include "network/feature_stage.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit {

/// Weighted sums over the covariance K [d, d'] of a pair and its NTK T. They are all that a linear functional needs
/// of both, so that the engine can form them where the entries lie, in planes or matrices. T is 0 when only the NNGP
/// is computed. O(d d') each, the diagonal O(d).
template <typename Scalar>
class PairSums {
 public:
  using Values = FeatureStage::Values;

  virtual ~PairSums() = default;

  /// sum_ab u_a K_ab u'_b, likewise for T: W = u u'^T.
  [[nodiscard]] virtual Values outer(const Scalar* left, const Scalar* right) const = 0;
  /// sum_a p_a K_aa p'_a, likewise for T: a diagonal W, for inputs of equal shape.
  [[nodiscard]] virtual Values diagonal(const Scalar* left, const Scalar* right) const = 0;
  /// sum_ab W_ab K_ab, likewise for T; W [d, d'] row by row.
  [[nodiscard]] virtual Values full(const Scalar* weights) const = 0;
};

/// Sums over covariances that lie as matrices [d, d'], row by row. Scalar is float or double.
template <typename Scalar>
class MatrixSums final : public PairSums<Scalar> {
 public:
  using typename PairSums<Scalar>::Values;

  /// `ntk` may be null.
  MatrixSums(const Scalar* nngp, const Scalar* ntk, Index rows, Index columns)
      : nngp_{nngp}, ntk_{ntk}, rows_{rows}, columns_{columns} {}

  [[nodiscard]] Values outer(const Scalar* left, const Scalar* right) const override;
  [[nodiscard]] Values diagonal(const Scalar* left, const Scalar* right) const override;
  [[nodiscard]] Values full(const Scalar* weights) const override;

 private:
  template <typename Sum>
  [[nodiscard]] Values both(const Sum& sum) const {
    return {sum(nngp_), ntk_ != nullptr ? sum(ntk_) : 0};
  }

  const Scalar* nngp_;
  const Scalar* ntk_;
  Index rows_;
  Index columns_;
};

/// What leading outputs (leading_outputs.hpp) leave out of an input.
struct Shortening {
  Index rank = 0;   ///< The most directions of its attentions; 0 if the input is computed exactly.
  double tail = 0;  ///< The largest share of the input's own NNGP or NTK that is left out.
};

/// An additional interface of pair stages whose result stands on a single position and is a functional of such sums.
/// Pulled back readouts have it (pulled_readout.hpp).
class FunctionalStage {
 public:
  virtual ~FunctionalStage() = default;

  /// Whether the state of an input of this shape needs its NTK with itself too. prepare_with_ntk() then replaces
  /// PairStage::prepare(), whichever kernels are wanted. Otherwise asking for the NTK as well would change the bits
  /// of the NNGP.
  [[nodiscard]] virtual bool reads_own_ntk(const Shape&) const { return false; }
  /// `ntk` is [d, d].
  virtual Shortening prepare_with_ntk(const SelfView<float>& input, const float* ntk, float* state) const = 0;
  virtual Shortening prepare_with_ntk(const SelfView<double>& input, const double* ntk,
                                      double* state) const = 0;

  /// `scratch`: PairStage::scratch_size() numbers.
  [[nodiscard]] virtual FeatureStage::Values apply(const PairSums<float>& sums,
                                                   const FeaturePair<float>& pair, float* scratch) const = 0;
  [[nodiscard]] virtual FeatureStage::Values apply(const PairSums<double>& sums,
                                                   const FeaturePair<double>& pair,
                                                   double* scratch) const = 0;
};

/// The stage by its additional interface, or null if it has none.
[[nodiscard]] inline const FunctionalStage* functional_stage(const PairStage& stage) {
  return dynamic_cast<const FunctionalStage*>(&stage);
}

}  // namespace widelimit

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// Slopes of a positively homogeneous phi(x) = negative * min(x, 0) + positive * max(x, 0).
struct HomogeneousSlopes {
  double negative;
  double positive;
};

/// An elementwise nonlinearity phi together with its dual activation, the map it induces on covariances.
///
/// Let (u, v) be centred Gaussian with variances p, q >= 0 and covariance c, c^2 <= pq up to rounding. Properties:
///   1. dual(p, q, c).value = E[phi(u) phi(v)], .derivative = E[phi'(u) phi'(v)].
///   2. Symmetry: dual(p, q, c) = dual(q, p, c).
///   3. Price's theorem: the slope of .value in c is .derivative (except where phi jumps, as in sign, whose
///      derivative dual is 0 by convention).
///   4. A zero variance means the constant 0: dual(0, q, 0).value = phi(0) E[phi(v)], .derivative = phi'(0) E[phi'(v)],
///      where phi'(0) is the mean of both sides at a kink, as if u were uncorrelated with anything; never NaN.
///   5. Perfect correlation is exact: dual(p, p, p).value = E[phi(u)^2] to rounding, also where the closed
///      form is singular there, and c^2 > pq by rounding counts as perfect correlation.
///   6. The row functions agree with dual() to the precision of their scalar type.
///
/// Implementations are immutable and safe to call from any number of threads.
class Activation {
 public:
  virtual ~Activation() = default;

  /// phi(x).
  [[nodiscard]] virtual double value(double x) const = 0;

  /// phi'(x) almost everywhere; at a kink in 0 the mean of both sides, at other kinks either. Used by finite networks.
  [[nodiscard]] virtual double derivative(double x) const = 0;

  /// The dual activation of one entry.
  [[nodiscard]] virtual Dual<double> dual(double p, double q, double c) const = 0;

  /// dual(p, q, c) and its partial derivatives, each by its argument with the others fixed. Never NaN unless dual() is.
  /// A slope that is infinite, or that has no limit, counts as 0: those of ReLU's derivative at c^2 = pq (within
  /// 32 rounding errors), of a jump's value there, and those in p at p = 0 unless a closed form gives more
  /// (docs/theory/derivatives.md, section 3). The default extrapolates differences of dual(), one-sided at the
  /// ends of the range, to about 1e-9 relative to the scale of the Dual
  /// over p, q or sqrt(pq). Cost: 70 calls of dual().
  [[nodiscard]] virtual DualSlopes slopes(double p, double q, double c) const;

  /// dual(p, p, p) and its total derivative in p; the default takes differences, and 0 at p = 0.
  [[nodiscard]] virtual SelfSlopes self_slopes(double p) const;

  /// The slopes, if phi is positively homogeneous of degree one (ReLU, leaky ReLU, abs, identity).
  [[nodiscard]] virtual std::optional<HomogeneousSlopes> homogeneous() const { return std::nullopt; }

  /// How many numbers the row functions need for each position, prepared once from its variance. The
  /// default is one: the variance itself.
  [[nodiscard]] virtual std::size_t auxiliary_count() const { return 1; }

  /// Fills `auxiliary[k][i]`, k < auxiliary_count(), from `variance[i]`, i < size. Variances may be 0. No
  /// pointer aliases another. The default copies the variance.
  virtual void prepare(const float* variance, float* const* auxiliary, std::size_t size) const;
  virtual void prepare(const double* variance, double* const* auxiliary, std::size_t size) const;

  /// True if apply() turns every entry whose auxiliary numbers are all 0 into 0; see RowStage::clears_gaps().
  [[nodiscard]] virtual bool clears_gaps() const { return false; }

  /// Transforms a row of entries. The default calls dual() entry by entry in double precision.
  virtual void apply(const DualRow<float>& row) const;
  virtual void apply(const DualRow<double>& row) const;

  /// The same for positions of which one is known to be a multiple of the other: entries with |c| = sqrt(pq)
  /// up to 32 rounding errors count as perfectly correlated. Default: apply(), which is as good if
  /// the dual has a finite slope at correlation 1.
  virtual void apply_to_multiples(const DualRow<float>& row) const { apply(row); }
  virtual void apply_to_multiples(const DualRow<double>& row) const { apply(row); }

  /// The backward pass through apply(): with f the value and g the derivative of the dual, K' and T' after the stage,
  ///     c-bar = K'-bar df/dc + T'-bar T dg/dc,  T-bar = T'-bar g,  p-bar = K'-bar df/dp + T'-bar T dg/dp,
  /// and q-bar likewise. The default calls slopes() entry by entry. If apply() clears gaps, so does this.
  virtual void apply_adjoint(const AdjointRow<float>& row) const;
  virtual void apply_adjoint(const AdjointRow<double>& row) const;
};

/// Activations are immutable and shared.
using ActivationPtr = std::shared_ptr<const Activation>;

}  // namespace widelimit::numerics

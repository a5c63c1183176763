#pragma once

#include <cstddef>

#include "widelimit/numerics/dual.hpp"

namespace widelimit {

/// What a layer accepts at its input and leaves at its output (docs/layers.md, "Which layer may follow which").
struct StageRules {
  enum class Accepts { anything, gaussian };
  enum class Leaves { gaussian, as_it_was, not_gaussian };
  Accepts accepts = Accepts::anything;
  Leaves leaves = Leaves::not_gaussian;
  /// True for a layer with its own weights, whose output is therefore zero-mean and independent of its
  /// input.
  bool own_weights = false;
};

/// The effect of a stage on two inputs that are positive multiples of each other, c^2 = pq (see
/// RowStage::apply_to_multiples()).
enum class Multiples {
  unknown,   ///< Nothing is known, as for dropout, which treats equal inputs differently from one input.
  equal,     ///< Equal inputs stay equal, other multiples do not stay multiples.
  kept,      ///< Multiples by some factor stay multiples by that factor.
  equalised  ///< Multiples become equal.
};

/// A layer that acts on every covariance entry by itself, given the variances of the two positions:
/// nonlinearities, norms, dropout, and your own. Such a layer joins plane runs (it is "offset-local").
///
/// A row stage may keep a few numbers for each position of an input, its auxiliary arrays, prepared once for each
/// input from the variances at the stage's input. Properties that every stage must have:
///   1. apply() treats entries independently of each other and of how they are cut into rows.
///   2. Exchanging left and right leaves the result unchanged.
///   3. apply_self() on the variances gives the variances after the stage.
///
/// A worked case: ReLU, of two positions with variances p = 1 and q = 4, covariance c = 1 and NTK t = 3. prepare()
/// writes what apply() needs of each variance, such as its root: 1 and 2. The correlation is 1 / (1 * 2) = 0.5 and its
/// angle a = pi / 3. apply() replaces nngp = 1 by 2 (sin a + (pi - a) cos a) / (2 pi) = 0.6090 and ntk = 3 by
/// 3 (pi - a) / (2 pi) = 1. apply_self() takes p = 1 to 1 / 2 and q = 4 to 2, which are the variances from there on.
///
/// Implementations are immutable; all functions may be called from any number of threads. Implement the float
/// and double functions from one template; RowStageOf does it for you.
class RowStage {
 public:
  virtual ~RowStage() = default;

  /// What may come before the stage, and what it leaves.
  [[nodiscard]] virtual StageRules rules() const = 0;

  /// Auxiliary numbers for each position.
  [[nodiscard]] virtual std::size_t auxiliary_count() const = 0;

  /// Fills auxiliary[k][i], k < auxiliary_count(), i < positions, from variance[i] >= 0, the variances of one
  /// input.
  virtual void prepare(const float* variance, std::size_t positions, float* const* auxiliary) const = 0;
  virtual void prepare(const double* variance, std::size_t positions, double* const* auxiliary) const = 0;

  /// True if apply() and apply_self() turn every finite entry whose auxiliary numbers are all 0 into 0, nngp and ntk.
  /// The engine then need not clear the gaps between rows of positions before a convolution; false is always right.
  [[nodiscard]] virtual bool clears_gaps() const { return false; }

  /// The effect of the stage on inputs that are multiples of each other (docs/theory/accuracy.md, section 2).
  [[nodiscard]] virtual Multiples multiples() const { return Multiples::unknown; }

  /// Transforms a row of entries in place.
  virtual void apply(const numerics::DualRow<float>& row) const = 0;
  virtual void apply(const numerics::DualRow<double>& row) const = 0;

  /// The same for vectors of which one is a multiple of the other: |c| = sqrt(pq) at the stage's input unless
  /// layers before it turned -1 into another correlation. Rounding hides it, which costs half the digits
  /// if the stage has an infinite slope at correlation 1. Default: apply().
  virtual void apply_to_multiples(const numerics::DualRow<float>& row) const { apply(row); }
  virtual void apply_to_multiples(const numerics::DualRow<double>& row) const { apply(row); }

  /// The same for entries that pair a position of an input with itself (dropout differs there). Default:
  /// apply().
  virtual void apply_self(const numerics::DualRow<float>& row) const { apply(row); }
  virtual void apply_self(const numerics::DualRow<double>& row) const { apply(row); }

  /// True if the stage has a backward pass, for derivatives of kernels (gram_vjp()).
  [[nodiscard]] virtual bool has_adjoint() const { return false; }

  /// The backward pass through apply(): see AdjointRow. Its adjoints of p and q are those of the direct dependence, not
  /// through the auxiliary numbers. Only called if has_adjoint().
  virtual void apply_adjoint(const numerics::AdjointRow<float>& row) const;
  virtual void apply_adjoint(const numerics::AdjointRow<double>& row) const;

  /// The same through apply_self(), where p, q and c are one number: nngp_adjoint gets the total derivative by it, and
  /// the adjoints of p and q are not written.
  virtual void apply_self_adjoint(const numerics::AdjointRow<float>& row) const;
  virtual void apply_self_adjoint(const numerics::AdjointRow<double>& row) const;

  /// True if prepare() mixes variances: auxiliary numbers of a position also depend on other positions of its input.
  /// apply_adjoint() then treats them as the position's own, and so does apply_self_adjoint(), which gives nngp_adjoint
  /// the part through the covariance and left_adjoint the part through both variances; prepare_adjoint() follows.
  [[nodiscard]] virtual bool mixes_variances() const { return false; }

  /// The backward pass through prepare(), once for each input, if mixes_variances(): `variance` [positions] holds the
  /// sums of the adjoints of a position's variance over all entries, and receives
  /// the adjoints of the variances. Default: leaves them.
  virtual void prepare_adjoint(float* /*variance*/, std::size_t /*positions*/) const {}
  virtual void prepare_adjoint(double* /*variance*/, std::size_t /*positions*/) const {}
};

/// Implements both precisions of RowStage by calling the templates
///
///     template <typename Scalar> void prepare_row(const Scalar*, std::size_t, Scalar* const*) const;
///     template <typename Scalar> void apply_row(const numerics::DualRow<Scalar>&) const;
///
/// of `Derived`, and, if it has them,
///
///     template <typename Scalar> void adjoint_row(const numerics::AdjointRow<Scalar>&) const;
///     template <typename Scalar> void self_adjoint_row(const numerics::AdjointRow<Scalar>&) const;
template <typename Derived>
class RowStageOf : public RowStage {
 public:
  void prepare(const float* variance, std::size_t positions, float* const* auxiliary) const override {
    self().prepare_row(variance, positions, auxiliary);
  }
  void prepare(const double* variance, std::size_t positions, double* const* auxiliary) const override {
    self().prepare_row(variance, positions, auxiliary);
  }
  void apply(const numerics::DualRow<float>& row) const override { self().apply_row(row); }
  void apply(const numerics::DualRow<double>& row) const override { self().apply_row(row); }

  [[nodiscard]] bool has_adjoint() const override { return adjoint_is_there(); }
  void apply_adjoint(const numerics::AdjointRow<float>& row) const override { backward_pass(row); }
  void apply_adjoint(const numerics::AdjointRow<double>& row) const override { backward_pass(row); }
  void apply_self_adjoint(const numerics::AdjointRow<float>& row) const override { go_back_self(row); }
  void apply_self_adjoint(const numerics::AdjointRow<double>& row) const override { go_back_self(row); }

 private:
  static constexpr bool adjoint_is_there() {
    return requires(const Derived& stage, const numerics::AdjointRow<double>& row) {
      stage.adjoint_row(row);
      stage.self_adjoint_row(row);
    };
  }
  template <typename Scalar>
  void backward_pass(const numerics::AdjointRow<Scalar>& row) const {
    if constexpr (adjoint_is_there())
      self().adjoint_row(row);
    else
      RowStage::apply_adjoint(row);
  }
  template <typename Scalar>
  void go_back_self(const numerics::AdjointRow<Scalar>& row) const {
    if constexpr (adjoint_is_there())
      self().self_adjoint_row(row);
    else
      RowStage::apply_self_adjoint(row);
  }

  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

}  // namespace widelimit

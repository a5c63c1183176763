#pragma once

#include <cstddef>

#include "widelimit/network/pair_views.hpp"
#include "widelimit/network/row_stage.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit {

/// A layer that sees the covariance of a pair as a matrix: attention, and your own layers that mix
/// positions.
///
/// Properties that check_laws() checks for any stage:
///   1. Exchanging left and right transposes the result.
///   2. The result of a pair depends on that pair and the states of its two inputs only.
///   3. With wanted == diagonal the diagonal is the same as with wanted == all.
///   4. Positive semidefinite in, positive semidefinite out.
///
/// A worked case: a weighted mean over positions, with the weight of a position proportional to its variance. Inputs of
/// 2 and 3 positions have variances (1, 3) and (1, 1, 2). prepare() writes their weights as state, (1/4, 3/4) and
/// (1/4, 1/4, 1/2), and state_size() is the number of positions. A pair arrives as K = [[1, 2, 3], [4, 5, 6]];
/// apply() writes the only entry that is left, the sum of w_a K[a, b] w'_b = 4.5, and treats the NTK alike.
/// output_shape() has no positions, and input_entries() stays `all`, since every entry of K is read.
///
/// Implementations are immutable; all functions may be called from any number of threads. PairStageOf
/// implements both precisions from one template.
class PairStage {
 public:
  virtual ~PairStage() = default;

  /// What may come before the stage, and what it leaves.
  [[nodiscard]] virtual StageRules rules() const = 0;

  /// Shape after the stage. Throws ArgumentError, saying what was expected, for a shape the layer cannot
  /// take.
  [[nodiscard]] virtual Shape output_shape(const Shape& input) const = 0;

  /// The entries of the input that the wanted entries of the output need. Default: all.
  [[nodiscard]] virtual Entries input_entries(Entries) const { return Entries::all; }

  /// The entries of an input's self-covariance that prepare() reads. Default: the diagonal.
  [[nodiscard]] virtual Entries self_entries() const { return Entries::diagonal; }

  /// Numbers of state kept for one input of this shape. Default: none.
  [[nodiscard]] virtual std::size_t state_size(const Shape&) const { return 0; }

  /// Numbers of scratch space that apply() needs for a pair. Default: none.
  [[nodiscard]] virtual std::size_t scratch_size(const Shape& /*left*/, const Shape& /*right*/) const {
    return 0;
  }

  /// Throws ArgumentError, saying what was expected, for an input whose graph (null: none) the stage cannot take;
  /// `input` is its shape at the stage. Called once for each input before the computation. Default: takes them all.
  virtual void check_graph(const InputGraph* /*graph*/, const Shape& /*input*/) const {}

  /// Floating-point operations of apply(), roughly, for explain() only. Default: 0, not known.
  [[nodiscard]] virtual double flops(const PairSize&) const { return 0; }

  /// Computes the state of one input, once, before any pair.
  virtual void prepare(const SelfView<float>& input, float* state) const = 0;
  virtual void prepare(const SelfView<double>& input, double* state) const = 0;

  /// Transforms one pair.
  virtual void apply(const PairView<float>& pair, PairResult<float>& result) const = 0;
  virtual void apply(const PairView<double>& pair, PairResult<double>& result) const = 0;

  /// True if the stage has a backward pass, for derivatives of kernels (gram_vjp()).
  [[nodiscard]] virtual bool has_adjoint() const { return false; }

  /// The backward pass through apply(). Only called if has_adjoint().
  virtual void apply_adjoint(const PairView<float>& pair, const PairAdjoint<float>& adjoint) const;
  virtual void apply_adjoint(const PairView<double>& pair, const PairAdjoint<double>& adjoint) const;

  /// The backward pass through prepare(). The default does nothing, as is right for stages without state.
  virtual void prepare_adjoint(const SelfView<float>& input, const SelfAdjoint<float>& adjoint) const;
  virtual void prepare_adjoint(const SelfView<double>& input, const SelfAdjoint<double>& adjoint) const;
};

/// Implements both precisions of PairStage by calling the templates
///
///     template <typename Scalar> void prepare_input(const SelfView<Scalar>&, Scalar* state) const;
///     template <typename Scalar> void apply_pair(const PairView<Scalar>&, PairResult<Scalar>&) const;
///
/// of `Derived`, and, if it has them,
///
///     template <typename Scalar> void adjoint_pair(const PairView<Scalar>&, const PairAdjoint<Scalar>&) const;
///     template <typename Scalar> void adjoint_input(const SelfView<Scalar>&, const SelfAdjoint<Scalar>&) const;
///
/// A stage whose state depends on covariances needs the second of these.
template <typename Derived>
class PairStageOf : public PairStage {
 public:
  void prepare(const SelfView<float>& input, float* state) const override {
    self().prepare_input(input, state);
  }
  void prepare(const SelfView<double>& input, double* state) const override {
    self().prepare_input(input, state);
  }
  void apply(const PairView<float>& pair, PairResult<float>& result) const override {
    self().apply_pair(pair, result);
  }
  void apply(const PairView<double>& pair, PairResult<double>& result) const override {
    self().apply_pair(pair, result);
  }

  [[nodiscard]] bool has_adjoint() const override { return adjoint_is_there(); }
  void apply_adjoint(const PairView<float>& pair, const PairAdjoint<float>& adjoint) const override {
    backward_pass(pair, adjoint);
  }
  void apply_adjoint(const PairView<double>& pair, const PairAdjoint<double>& adjoint) const override {
    backward_pass(pair, adjoint);
  }
  void prepare_adjoint(const SelfView<float>& input, const SelfAdjoint<float>& adjoint) const override {
    go_back_in(input, adjoint);
  }
  void prepare_adjoint(const SelfView<double>& input, const SelfAdjoint<double>& adjoint) const override {
    go_back_in(input, adjoint);
  }

 private:
  static constexpr bool adjoint_is_there() {
    return requires(const Derived& stage, const PairView<double>& pair, const PairAdjoint<double>& adjoint) {
      stage.adjoint_pair(pair, adjoint);
    };
  }
  template <typename Scalar>
  void backward_pass(const PairView<Scalar>& pair, const PairAdjoint<Scalar>& adjoint) const {
    if constexpr (adjoint_is_there())
      self().adjoint_pair(pair, adjoint);
    else
      PairStage::apply_adjoint(pair, adjoint);
  }
  template <typename Scalar>
  void go_back_in(const SelfView<Scalar>& input, const SelfAdjoint<Scalar>& adjoint) const {
    if constexpr (requires(const Derived& stage) { stage.adjoint_input(input, adjoint); })
      self().adjoint_input(input, adjoint);
    else
      PairStage::prepare_adjoint(input, adjoint);
  }

  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

}  // namespace widelimit

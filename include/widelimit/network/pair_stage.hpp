#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "widelimit/matrix.hpp"
#include "widelimit/network/row_stage.hpp"
#include "widelimit/network/shape.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

class InputGraph;

/// Which entries of a pair's d x d' covariance are meant: the diagonal (position a with position a) or all of
/// them.
enum class Entries { diagonal, all };

/// The covariance of one input with itself, as a stage's prepare() sees it.
template <typename Scalar>
struct SelfView {
  /// [d, d]; only the entries asked for by self_entries() are defined, others are NaN.
  Eigen::Map<const Matrix<Scalar>> nngp;
  const Shape& shape;  ///< Shape of the input at this stage; d positions.
  StopRequest stop{};  ///< Stages that take long check it now and then.
  /// Of an input with a mask, [d]: 0 at the positions that do not count, whose covariances are 0, and 1 elsewhere. Empty
  /// without masks.
  std::span<const std::uint8_t> counts{};
  const InputGraph* graph = nullptr;  ///< Of the input, if it carries one.
};

/// A pair of inputs (left, right) at the input of a stage.
template <typename Scalar>
struct PairView {
  Eigen::Map<const Matrix<Scalar>> nngp;   ///< [d, d']; entries not asked for by input_entries() are NaN.
  Eigen::Map<const Matrix<Scalar>> ntk;    ///< [d, d'], or 0 x 0 when only the NNGP is computed.
  const Scalar* left_variance;             ///< [d]: nngp of the left input with itself, position by position.
  const Scalar* right_variance;            ///< [d'].
  const Scalar* left_state;                ///< What prepare() wrote for the left input.
  const Scalar* right_state;               ///< The same for the right input.
  const Shape& left_shape;                 ///< d positions.
  const Shape& right_shape;                ///< d' positions.
  bool same_input;                         ///< The two are one and the same input, not merely equal.
  Entries wanted;                          ///< Entries of the output that will be read.
  StopRequest stop{};                      ///< Stages that take long check it now and then.
  const InputGraph* left_graph = nullptr;  ///< Of the left input, if it carries one.
  const InputGraph* right_graph = nullptr;  ///< Of the right input.
};

/// Where apply() writes: [e, e'] entries, e and e' the positions of output_shape(); preset to NaN.
template <typename Scalar>
struct PairResult {
  Eigen::Map<Matrix<Scalar>> nngp;
  Eigen::Map<Matrix<Scalar>> ntk;  ///< 0 x 0 when only the NNGP is computed.
  /// [scratch_size()] numbers to use freely during the call.
  Scalar* scratch;
};

/// Floating-point operations of a dual activation and its derivative in closed form, roughly.
inline constexpr double flops_per_dual = 25;

/// The size of a pair at the input of a stage, and what is to be computed.
struct PairSize {
  Index left;   ///< Positions d.
  Index right;  ///< Positions d'.
  Entries wanted;
  bool with_ntk;

  [[nodiscard]] double kernels() const { return with_ntk ? 2 : 1; }
  /// Entries of the input covariance, d d'.
  [[nodiscard]] double entries() const { return static_cast<double>(left) * static_cast<double>(right); }
  /// Entries of a d x d' output that are wanted.
  [[nodiscard]] double wanted_entries() const {
    return wanted == Entries::all ? entries() : static_cast<double>(left < right ? left : right);
  }
};

/// A layer that sees the covariance of a pair as a matrix: attention, and a user's own layers that mix
/// positions.
///
/// Laws, checked by check_laws() for any stage:
///   1. Exchanging left and right transposes the result.
///   2. The result of a pair depends on that pair and the states of its two inputs only.
///   3. With wanted == diagonal the diagonal is the same as with wanted == all.
///   4. Positive semidefinite in, positive semidefinite out.
/// Implementations are immutable; all functions may be called from any number of threads. PairStageOf
/// implements both precisions from one template.
class PairStage {
 public:
  virtual ~PairStage() = default;

  /// What may stand in front of the stage, and what it leaves.
  [[nodiscard]] virtual StageRules rules() const = 0;

  /// Shape behind the stage. Throws ArgumentError, saying what was expected, for a shape the layer cannot
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

  /// Throws ArgumentError, saying what was expected, for an input whose graph (null: none) the stage cannot take; `input`
  /// is its shape at the stage. Called once an input before anything is computed. Default: takes them all.
  virtual void check_graph(const InputGraph* /*graph*/, const Shape& /*input*/) const {}

  /// Floating-point operations of apply(), roughly, for explain() only. Default: 0, not known.
  [[nodiscard]] virtual double flops(const PairSize&) const { return 0; }

  /// Computes the state of one input, once, before any pair.
  virtual void prepare(const SelfView<float>& input, float* state) const = 0;
  virtual void prepare(const SelfView<double>& input, double* state) const = 0;

  /// Transforms one pair.
  virtual void apply(const PairView<float>& pair, PairResult<float>& result) const = 0;
  virtual void apply(const PairView<double>& pair, PairResult<double>& result) const = 0;
};

/// Implements both precisions of PairStage by calling the templates
///     template <typename Scalar> void prepare_input(const SelfView<Scalar>&, Scalar* state) const;
///     template <typename Scalar> void apply_pair(const PairView<Scalar>&, PairResult<Scalar>&) const;
/// of `Derived`.
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

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

}  // namespace widelimit

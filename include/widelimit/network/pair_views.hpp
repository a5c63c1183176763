#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"
#include "widelimit/stop_request.hpp"

/// The data that pair stages see and write (pair_stage.hpp).
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
  /// The mask of the input, [d]: 0 at the positions that do not count, whose covariances are 0, and 1 elsewhere.
  /// Empty without masks.
  std::span<const std::uint8_t> counts{};
  const InputGraph* graph = nullptr;  ///< The graph of the input, if it carries one.
};

/// A pair of inputs (left, right) at the input of a stage.
template <typename Scalar>
struct PairView {
  Eigen::Map<const Matrix<Scalar>> nngp;   ///< [d, d']; entries not asked for by input_entries() are NaN.
  Eigen::Map<const Matrix<Scalar>> ntk;    ///< [d, d'], or 0 x 0 when only the NNGP is computed.
  const Scalar* left_variance;             ///< [d]: nngp of the left input with itself, position by position.
  const Scalar* right_variance;            ///< [d'].
  const Scalar* left_state;                ///< The state that prepare() wrote for the left input.
  const Scalar* right_state;               ///< The same for the right input.
  const Shape& left_shape;                 ///< d positions.
  const Shape& right_shape;                ///< d' positions.
  bool same_input;                         ///< The two are one and the same input, not merely equal.
  Entries wanted;                          ///< Entries of the output that will be read.
  StopRequest stop{};                      ///< Stages that take long check it now and then.
  const InputGraph* left_graph = nullptr;  ///< The graph of the left input, if it carries one.
  const InputGraph* right_graph = nullptr;  ///< The graph of the right input.
};

/// The result of apply(): [e, e'] entries, e and e' the positions of output_shape(); preset to NaN.
template <typename Scalar>
struct PairResult {
  Eigen::Map<Matrix<Scalar>> nngp;
  Eigen::Map<Matrix<Scalar>> ntk;  ///< 0 x 0 when only the NNGP is computed.
  /// [scratch_size()] numbers to use freely during the call.
  Scalar* scratch;
};

/// A pair of inputs in the backward pass through a stage. L is a number that depends on its results; an adjoint is the
/// derivative of L by a quantity. Add to the adjoints of what the stage reads, whatever values they have;
/// those of an input with itself may share one array, left and right. In that case only their sum over all entries that
/// are one number matters: the variance of a position, its covariance with itself and what
/// the state keeps of it may share a slope in any way.
template <typename Scalar>
struct PairAdjoint {
  /// [e, e'], adjoints of the results; 0 at entries that were not wanted.
  Eigen::Map<const Matrix<Scalar>> nngp_after;
  Eigen::Map<const Matrix<Scalar>> ntk_after;  ///< [e, e'], or 0 x 0.
  Eigen::Map<Matrix<Scalar>> nngp;             ///< [d, d']
  Eigen::Map<Matrix<Scalar>> ntk;              ///< [d, d'], or 0 x 0.
  Scalar* left_variance;                       ///< [d]
  Scalar* right_variance;                      ///< [d']
  Scalar* left_state;                          ///< [state_size()]
  Scalar* right_state;
};

/// An input with itself in the backward pass through prepare().
template <typename Scalar>
struct SelfAdjoint {
  const Scalar* state;          ///< What prepare() wrote.
  const Scalar* state_adjoint;  ///< [state_size()]
  /// [d, d]: add to the entries that prepare() reads. K_ab and K_ba count as two.
  Eigen::Map<Matrix<Scalar>> nngp;
};

/// Floating-point operations of a dual activation and its derivative in closed form, roughly.
inline constexpr double flops_per_dual = 25;

/// The size of a pair at the input of a stage, and which entries are to be computed.
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

}  // namespace widelimit

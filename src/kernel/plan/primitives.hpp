#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "network/graph.hpp"

/// What the engine asks of a primitive operation besides computing with it. primitives.cpp has one class for each kind
/// of operation with all its answers, and does not compile while a kind lacks one.
namespace widelimit {

class InputDemand;
struct Offsets;

/// How an operation reads the covariance before it. The schedule and all backends go by this.
enum class Reads {
  inputs,           ///< Nothing: it reads the inputs themselves.
  entries,          ///< Plane by plane, every entry alone.
  windows,          ///< Plane by plane, the entries around.
  kept_windows,     ///< The same, of a node that is kept as a whole.
  pooled,           ///< Every plane is added to those of the windows that see it.
  mapped,           ///< Every plane is added to those that a map of positions leads to.
  equal_positions,  ///< The sum of the entries with equal positions, plane by plane.
  all_positions,    ///< The sum of all entries, plane by plane.
  matrix,           ///< All entries of a pair at once.
};
[[nodiscard]] Reads reads_of(const Operation& operation);

/// True for poolings, and for pair stages that map planes (PlaneMapping). The planes of the chain before them are added
/// to theirs as they are finished.
[[nodiscard]] bool gathers_planes(const Operation& operation);
/// True for what leads from positions to none.
[[nodiscard]] bool reads_out(const Operation& operation);

/// The window through which positions of an operation with shared weights lead to those before it; null for others.
[[nodiscard]] const Window* shared_window(const Operation& operation);

/// The offsets that an operation needs of one of its inputs (docs/engine.md, "Demand"). Something is wanted of it.
[[nodiscard]] Offsets offsets_before(const Operation& operation, const InputDemand& demand);

/// What the state of an input has for an operation.
enum class Recorded {
  nothing,
  features,       ///< What products of inputs multiply; the NTK after them is 0.
  feature_state,  ///< The state of a FeatureStage.
  auxiliaries,    ///< The auxiliary arrays of a row stage, made of variances.
  pair_state,     ///< Variances, and the state of a pair stage that reads matrices.
};
[[nodiscard]] Recorded recorded_of(const Operation& operation);
/// True for operations that multiply the features of both inputs.
[[nodiscard]] bool multiplies_features(const Operation& operation);
/// True if the state of an input has something that is made of the variances before this operation.
[[nodiscard]] bool needs_variances(const Operation& operation);

/// Stages by the operation that has them; null for other operations. row_stage_of() and pair_stage_of() are in
/// graph.hpp. That of a local convolution acts where positions are equal.
[[nodiscard]] const FeatureStage* feature_stage_of(const Operation& operation);
[[nodiscard]] const RowStage* local_stage_of(const Operation& operation);
/// The convolution or dense layer of an operation, also a local one; null for others.
[[nodiscard]] const AffineNode* affine_part(const Operation& operation);
/// The rule of the mask that a pair stage reads; null without one.
[[nodiscard]] const MaskRule* mask_rule_of(const Operation& operation);

/// What a plane contains between its rows, and between the planes of a stack: any bits, finite numbers, or zeros. The
/// order matters: gaps_after() takes the least of several.
enum class Gaps { unknown, finite, zero };

/// What an operation leaves in the gaps of its planes, if `inputs` is the least of what its inputs have there.
[[nodiscard]] Gaps gaps_after(const Operation& operation, Gaps inputs);

/// Whether the kernels of an operation of so many inputs allow the target to be one of them.
[[nodiscard]] bool works_in_place(const Operation& operation, std::size_t inputs);

/// A number of an operation, by its name in messages.
struct NamedNumber {
  const char* name;
  double value;
};
/// The numbers of an operation that are not hidden inside its stage.
[[nodiscard]] std::vector<NamedNumber> numbers_of(const Operation& operation);
/// Whether numbers_of() has all numbers on which an operation depends.
[[nodiscard]] bool has_numbers_only(const Operation& operation);

/// How a convolution or dense layer is evaluated on planes: entry by entry (single_position), as a sum of shifted
/// copies (shifted), as windows of any place and stride (strided), or entry by entry from a kept node, around the
/// border (circular). The schedule, the engine and the derivatives all go by this.
enum class AffineKind { single_position, shifted, strided, circular };
[[nodiscard]] AffineKind affine_kind(const AffineNode& node);

/// Those of a convolution or dense layer. Without trained weights there is no term K' in T'.
struct AffineNumbers {
  double weight_variance;
  double bias_variance;
  bool trained;
};

/// What the backward pass through an operation reads of the forward pass.
struct ReadBack {
  bool values;  ///< Of the nodes before it.
  bool result;  ///< Its own.
};
/// `with_numbers`: derivatives with respect to numbers_of() are wanted as well.
[[nodiscard]] ReadBack read_back(const Operation& operation, bool with_numbers);

/// Whether an operation has an adjoint.
[[nodiscard]] bool has_adjoint(const Operation& operation);

/// The degree with which a kernel scales, K(a x, b x') = (ab)^degree K(x, x') for a, b > 0; none if it does not. A
/// kernel of degree 0 does not change when its inputs are multiplied, so that multiples stay perfectly correlated
/// through any layer except dropout.
using Degree = std::optional<int>;
[[nodiscard]] Degree degree_after(const Operation& operation, std::span<const Degree> inputs);

/// At how many positions an instruction's variances are above 0.
enum class Positive { none, some, all };

/// True if exact arithmetic leaves a variance above 0 after an operation that reads planes of its inputs. A row stage
/// may still be one that makes 0 of everything.
[[nodiscard]] bool stays_positive(const Operation& operation, std::span<const Positive> inputs);

}  // namespace widelimit

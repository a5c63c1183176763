#pragma once

#include "network/feature_stage.hpp"
#include "network/pulled_readout.hpp"
#include "widelimit/network/pair_stage.hpp"

/// What a readout that is pulled back (pulled_readout.hpp) keeps of an input.
namespace widelimit {

/// How the functional's weights W [d, d'] are given at a point of the tree: as an outer product u u'^T, as the
/// diagonal matrix of p_a p'_a, or by all entries.
enum class WeightsForm { outer, diagonal, full };

/// The form of A^T W A', before a 1/width attention: an outer product stays one, anything else becomes a matrix.
WeightsForm in_front_of_sandwich(WeightsForm form);

/// The form before the tree's root, if `form` is that behind it.
WeightsForm form_in_front(const LinearTree& tree, WeightsForm form);

/// Whether the tree's root is attention that makes a matrix of a diagonal W and reads the covariance before the tree
/// itself. Its leading outputs may then replace that matrix (leading_outputs.hpp).
bool has_leading_outputs(const LinearTree& tree, WeightsForm form);

/// Whether the tree has such attention anywhere, and inputs of d positions keep its leading outputs.
bool keeps_leading_outputs(const LinearTree& tree, WeightsForm form, Index d);

/// Numbers of state for an input of d positions. They lie in the order of a walk down the tree:
///     inputs, dense layers   u or p, unless W has all entries
///     scalings               r, if W has all entries
///     1/width attention      u or p, unless W has all entries; then what makes W before it: A^T u,
///                            diag(p) A, or A; where has_leading_outputs(), these
Index pulled_state_size(const LinearTree& tree, WeightsForm form, Index d);

/// Runs the layers forward on one input with itself, for attention weights and norms, and writes the state; u and p
/// are `weight` at the readout. `ntk` [d, d] is that of the input with itself. If it is null, no leading outputs are
/// searched. Scalar is float or double.
template <typename Scalar>
void write_pulled_state(const LinearTree& tree, WeightsForm form, const SelfView<Scalar>& input,
                        const Scalar* ntk, Scalar weight, Scalar* state);

/// Numbers of state for layers on the inputs themselves, behind global pooling: where the tree ends, x^T u [channels]
/// stands in place of u.
Index feature_state_size(const LinearTree& tree, Index d, Index channels);

/// Writes that state; u is `weight` at the readout.
template <typename Scalar>
void write_feature_state(const LinearTree& tree, const FeatureView<Scalar>& features, Scalar weight,
                         Scalar* state);

}  // namespace widelimit

#pragma once

#include "kernel/readouts/pair_sums.hpp"
#include "kernel/readouts/pulled_readout.hpp"
#include "kernel/readouts/weights_form.hpp"
#include "network/feature_stage.hpp"
#include "widelimit/network/pair_stage.hpp"

/// What a readout that is pulled back (pulled_readout.hpp) keeps of an input.
namespace widelimit {

/// Numbers of state for an input of d positions. They lie in the order of a walk down the tree:
///     inputs, dense layers   u, p or B 1, unless W has all entries
///     scalings               r, if W has all entries
///     1/width attention      u, p or B 1; then A^T u of an outer product
/// Where multiplies(), Q B before the node follows, with the rotation Q of position_rotation.hpp, and where
/// has_leading_outputs(), these, of Q B.
Index pulled_state_size(const LinearTree& tree, WeightsForm form, Index d);

/// Runs the layers forward on one input with itself, for attention weights and norms, and writes the state; u and p
/// are `weight` at the readout. `ntk` [d, d] is that of the input with itself. If it is null, no leading outputs are
/// searched. Returns what those that were found leave out. Scalar is float or double.
template <typename Scalar>
Shortening write_pulled_state(const LinearTree& tree, WeightsForm form, const SelfView<Scalar>& input,
                              const Scalar* ntk, Scalar weight, Scalar* state);

/// Numbers of state for layers on the inputs themselves, behind global pooling: where the tree ends, x^T u [channels]
/// stands in place of u.
Index feature_state_size(const LinearTree& tree, Index d, Index channels);

/// Writes that state; u is `weight` at the readout.
template <typename Scalar>
void write_feature_state(const LinearTree& tree, const FeatureView<Scalar>& features, Scalar weight,
                         Scalar* state);

}  // namespace widelimit

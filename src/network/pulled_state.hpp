#pragma once

#include "network/feature_stage.hpp"
#include "network/pulled_readout.hpp"
#include "widelimit/network/pair_stage.hpp"

/// What a readout that is pulled back (pulled_readout.hpp) keeps of an input.
namespace widelimit {

/// How the functional's weights W [d, d'] are given at a point of the tree: u u'^T, the diagonal matrix of
/// p_a p'_a, or all entries.
enum class WeightsForm { outer, diagonal, full };

/// Before a 1/width attention with W' = A^T W A'.
WeightsForm in_front_of_sandwich(WeightsForm form);

/// Before any layer.
WeightsForm form_in_front(const LinearTree& tree, WeightsForm form);

/// True for attention that makes W a matrix, of the covariance before the tree:
/// its leading outputs may stand for it (leading_outputs.hpp).
bool has_leading_outputs(const LinearTree& tree, WeightsForm form);

/// Whether the tree has such attention that keeps them of inputs of d positions.
bool keeps_leading_outputs(const LinearTree& tree, WeightsForm form, Index d);

/// Numbers of state for an input of d positions. They lie in the order of a walk down the tree:
///     inputs, dense layers   u or p, unless W has all entries
///     scalings               r, if W has all entries
///     1/width attention      u or p, unless W has all entries; then what makes W before it: A^T u,
///                            diag(p) A, or A; where has_leading_outputs(), these
Index pulled_state_size(const LinearTree& tree, WeightsForm form, Index d);

/// Runs the layers on one input with itself and writes the state; u and p are `weight` at the readout.
/// `ntk` [d, d], of the input with itself, may be null: there are no leading outputs then. Scalar is float or double.
template <typename Scalar>
void write_pulled_state(const LinearTree& tree, WeightsForm form, const SelfView<Scalar>& input,
                        const Scalar* ntk, Scalar weight, Scalar* state);

/// The same for layers on the inputs themselves: where the tree ends, x^T u [channels] takes the place of u.
Index feature_state_size(const LinearTree& tree, Index d, Index channels);

template <typename Scalar>
void write_feature_state(const LinearTree& tree, const FeatureView<Scalar>& features, Scalar weight,
                         Scalar* state);

}  // namespace widelimit

#pragma once

#include "network/pulled_readout.hpp"

/// The form that the weights W of a functional have at every node of the layers that a readout is pulled back through.
/// States (pulled_state.hpp) and pairs (pulled_readout.cpp) walk down the tree by these rules.
namespace widelimit {

/// How the functional's weights W [d, d'] are given at a point of the tree: as an outer product u u'^T, as the
/// diagonal matrix of p_a p'_a, as a product B^T B' of matrices that the inputs make, or by all entries.
enum class WeightsForm { outer, diagonal, factors, full };

/// The form before a node, towards one of its inputs; `form` is that behind the node. An outer product stays one.
/// After the first attention W is a product, B = diag(p) A, and further layers on the way to the last attention change
/// B alone. Pairs multiply behind that, so that each branch takes one product however many layers it has.
WeightsForm form_before(const LinearTree& tree, WeightsForm form, const LinearTree& input);

/// Whether a pair makes W = B^T B' before this node, so that states keep B [d, d].
bool multiplies(const LinearTree& tree, WeightsForm form);

/// Whether the tree's root is attention that makes a matrix of a diagonal W and reads the covariance before the tree
/// itself. Its leading outputs may then replace that matrix (leading_outputs.hpp).
bool has_leading_outputs(const LinearTree& tree, WeightsForm form);

/// Whether the tree has such attention anywhere, and inputs of d positions keep its leading outputs.
bool keeps_leading_outputs(const LinearTree& tree, WeightsForm form, Index d);

}  // namespace widelimit

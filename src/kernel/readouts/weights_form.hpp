#pragma once

#include <optional>

#include "kernel/readouts/pulled_readout.hpp"
#include "widelimit/network/pair_stage.hpp"

/// The form that the weights W of a functional have at every node of the layers that a readout is pulled back through.
/// States (pulled_state.hpp) and pairs (pulled_readout.cpp) walk down the tree by these rules, which also say what a
/// pair costs.
namespace widelimit {

/// How the functional's weights W [d, d'] are given at a point of the tree: as an outer product u u'^T, as the
/// diagonal matrix of p_a p'_a, as a product B^T B' of matrices that the inputs make, or by all entries.
enum class WeightsForm { outer, diagonal, factors, full };

/// The layers of a readout that is pulled back, and the form of W behind them.
struct PulledTree {
  const LinearTree* layers;
  WeightsForm form;
};

/// Those of a stage; nothing for stages that are no pulled back readouts.
std::optional<PulledTree> pulled_tree(const PairStage& stage);

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

/// The matrices [d, d'] of scratch that a pair needs at once at a node of the tree and below. Branches are walked one
/// after the other and use the same room.
Index scratch_matrices(const LinearTree& tree, WeightsForm form);

/// Numbers of scratch for the two factors of W by leading outputs (leading_weights()), the most of all branches.
Index scratch_of_leading(const LinearTree& tree, WeightsForm form, Index d);

/// The operations of a pair at a node of the tree and below, with `form` that of W behind the node. Leading outputs
/// are not counted on, because it is not known before whether inputs have them.
double flops_below(const LinearTree& tree, WeightsForm form, const PairSize& pair);

}  // namespace widelimit

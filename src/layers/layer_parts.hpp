#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "widelimit/finite/finite_layer.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/network/layer.hpp"

/// What layers are made of, where their fields do not tell all: for those that build something else of them
/// (finite networks). Each function returns nothing for another sort of layer.
namespace widelimit::layers {

enum class BranchKind { sum, product, concat };

/// `weight` is a branch's scale, or its share in a concatenation.
struct WeightedBranch {
  double weight;
  Layers layers;
};

struct BranchParts {
  BranchKind kind;
  std::vector<WeightedBranch> branches;
};

struct RepeatParts {
  Index times;
  Layers layers;
};

std::optional<AttentionOptions> attention_options(const Layer& layer);
std::optional<BranchParts> branch_parts(const Layer& layer);
std::optional<RepeatParts> repeat_parts(const Layer& layer);
/// Null as well for a user's layer without a finite counterpart.
std::shared_ptr<const finite::FiniteCounterpart> finite_counterpart_of(const Layer& layer);

}  // namespace widelimit::layers

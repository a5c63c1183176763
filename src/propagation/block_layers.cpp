#include "propagation/block_layers.hpp"

#include <fmt/format.h>

#include "layers/layer_parts.hpp"
#include "widelimit/layers/branches.hpp"

namespace widelimit::propagation {
namespace {

/// Makes the whole block from what takes the place of the layers that are being visited.
using Rebuild = std::function<Layers(const Layers&)>;

/// Lists layers in their order, those in branches too, each with its path and a way to replace it in the whole block.
void collect(const Layers& layers, const std::string& path, const Rebuild& rebuild,
             std::vector<BlockLayer>& found);

Layer joined(const layers::BranchParts& parts) {
  std::vector<layers::Branch> branches;
  std::vector<layers::ConcatBranch> shares;
  std::vector<Layers> positions;
  for (const layers::WeightedBranch& branch : parts.branches) {
    branches.push_back({branch.weight, branch.layers});
    shares.push_back({branch.weight, branch.layers});
    positions.push_back(branch.layers);
  }
  switch (parts.kind) {
    case layers::BranchKind::sum:
      return layers::sum(std::move(branches));
    case layers::BranchKind::product:
      return layers::product(std::move(branches));
    case layers::BranchKind::concat:
      return layers::concat(std::move(shares));
    case layers::BranchKind::concat_positions:
      break;
  }
  return layers::concat_positions(parts.axis, std::move(positions));
}

/// A replacement within branch k changes that branch, and the changed branches replace their layer in the block.
void collect_branches(const layers::BranchParts& parts, const std::string& path, const Rebuild& rebuild,
                      std::vector<BlockLayer>& found) {
  for (std::size_t k = 0; k < parts.branches.size(); ++k)
    collect(
        parts.branches[k].layers, fmt::format("{}.branches[{}].layers", path, k),
        [=](const Layers& layers) {
          layers::BranchParts changed = parts;
          changed.branches[k].layers = layers;
          return rebuild({joined(changed)});
        },
        found);
}

/// Repeated layers are taken one after another: each time has weights of its own.
void collect_times(const layers::RepeatParts& parts, const std::string& path, const Rebuild& rebuild,
                   std::vector<BlockLayer>& found) {
  for (Index time = 0; time < parts.times; ++time)
    collect(
        parts.layers, fmt::format("{}.times[{}].layers", path, time),
        [=](const Layers& layers) {
          Layers all;
          for (Index k = 0; k < parts.times; ++k) {
            const Layers& once = k == time ? layers : parts.layers;
            all.insert(all.end(), once.begin(), once.end());
          }
          return rebuild(all);
        },
        found);
}

void collect(const Layers& layers, const std::string& path, const Rebuild& rebuild,
             std::vector<BlockLayer>& found) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", path, i);
    const Rebuild replaced = [=](const Layers& part) {
      Layers all(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(i));
      all.insert(all.end(), part.begin(), part.end());
      all.insert(all.end(), layers.begin() + static_cast<std::ptrdiff_t>(i) + 1, layers.end());
      return rebuild(all);
    };
    if (const auto branches = layers::branch_parts(layers[i]))
      collect_branches(*branches, here, replaced, found);
    else if (const auto times = layers::repeat_parts(layers[i]))
      collect_times(*times, here, replaced, found);
    else
      found.push_back({here, layers[i], replaced});
  }
}

}  // namespace

std::vector<BlockLayer> layers_of_block(const Layers& block) {
  std::vector<BlockLayer> found;
  collect(
      block, "layers", [](const Layers& layers) { return layers; }, found);
  return found;
}

}  // namespace widelimit::propagation

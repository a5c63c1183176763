#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernel/backends/reference/naive_activations.hpp"
#include "kernel/backends/reference/naive_kernel.hpp"

/// What the layers of the naive kernel are made of.
namespace widelimit::testing {

using Variances = std::vector<Real>;

/// One of a pair's inputs: 0 or 1, and its variances at a layer's input.
struct Side {
  std::size_t number;
  Variances variances;
};

/// Two numbers of these variances whose correlation is 1 or -1 up to roundings of a Real are perfectly correlated.
NaiveGaussian snapped(Real p, Real q, Real c);

/// Transforms one pair.
using PairMap = std::function<NaivePair(const NaivePair&, const Side& left, const Side& right)>;

NaiveGroup map_group(const NaiveGroup& group, const PairMap& map);

/// All channels together.
NaiveGroup merged(const NaiveState& state);

/// The map on all channels together, or on each group of them.
NaiveState replace(NaiveState state, const PairMap& map);
NaiveState map_each(NaiveState state, const PairMap& map);

/// Dense layers and convolutions.
NaiveState affine(const NaiveState& state, const nlohmann::json& layer);

/// Poolings over windows.
NaiveState pool(const NaiveState& state, const nlohmann::json& layer);

/// Of either scaling, but for sampled softmax.
NaiveState attention(const NaiveState& state, const nlohmann::json& layer);

}  // namespace widelimit::testing

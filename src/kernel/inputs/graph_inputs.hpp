#pragma once

#include "network/drawn_graph.hpp"
#include "widelimit/kernel/inputs.hpp"

namespace widelimit {

/// Random inputs for checks and measurements. Inputs with positions each get a random graph, for layers that need one.
template <typename Scalar>
Inputs<Scalar> with_drawn_graphs(const Inputs<Scalar>& x, std::uint64_t seed) {
  constexpr std::uint64_t stream = 0x67726170;
  if (x.axes() == 0) return x;
  numerics::RandomStream random(seed, stream);
  std::vector<InputGraph> graphs;
  for (Index i = 0; i < x.size(); ++i) graphs.push_back(draw_graph(position_count(x.shape(i)), random));
  return {x, std::move(graphs)};
}

}  // namespace widelimit

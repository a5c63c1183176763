#pragma once

#include <random>
#include <vector>

#include "kernel/backends/cpu/planes/input_state.hpp"

namespace widelimit::testing {

/// States of some inputs, random wherever a position has a number, zero in the guards.
class RandomStates {
 public:
  RandomStates(const StateLayout& layout, Index inputs, NodeId node, std::mt19937& generator)
      : block_(std::vector<const StateLayout*>(static_cast<std::size_t>(inputs), &layout), 0) {
    const PlaneLayout& plane = layout.planes[node];
    std::normal_distribution<double> normal;
    for (Index i = 0; i < inputs; ++i) {
      states_.push_back(&block_[i]);
      for (Index k = 0; k < layout.arrays[node]; ++k)
        for_each_row(plane.extent, [&](Index x, Index y) {
          for (Index z = 0; z < plane.extent[2]; ++z)
            block_[i].array(node, k)[plane.at(x, y) + z] = normal(generator);
        });
    }
  }

  [[nodiscard]] const std::vector<const InputState<double>*>& states() const { return states_; }

 private:
  StateBlock<double> block_;
  std::vector<const InputState<double>*> states_;
};

inline double value_at(const InputState<double>& state, NodeId node, Index k, const Index3& position) {
  return state.array(node, k)[state.layout().planes[node].at(position[0], position[1]) + position[2]];
}

}  // namespace widelimit::testing

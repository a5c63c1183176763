#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernel/backends/device/chain_source.hpp"

namespace widelimit {

/// A kernel that is launched for some pairs: see run_kernel_head().
struct DeviceStep {
  std::string source;
  std::string path;          ///< The layer at its end, for messages.
  std::vector<int> offsets;  ///< Of all axes, two numbers each; or other numbers that its kernel reads.
  Index
      shares;  ///< Parts of a pair: of chains, form->planes of them are a work-group, of others each is one.
  /// What its sums are multiplied by, and the readout that they belong to; none if it leaves no sums.
  struct Sums {
    NodeId readout;
    double weight;
  };
  std::optional<Sums> sums = {};
  std::size_t local_bytes = 0;          ///< Local memory of a work-group.
  std::optional<DeviceForm> form = {};  ///< Of chains.
  /// Numbers that are the same for all pairs; null if it reads none.
  std::shared_ptr<const std::vector<double>> table = nullptr;
};

/// How many work-groups share a pair that has `count` parts, of which one takes `of_group` before others take turns.
Index shares_of(Index count, Index of_group);

/// What is launched for pairs of inputs of some shapes, one after the other.
struct DevicePair {
  std::vector<DeviceStep> steps;
  Index kept = 0;  ///< Numbers of a pair that are kept between the steps.

  /// The largest number of work-groups of a pair.
  [[nodiscard]] Index most_shares() const;
};

/// The steps for pairs of inputs of two shapes.
DevicePair pair_steps(const Program& program, const PairGeometry& geometry, const StateLayout& left,
                      const StateLayout& right, const ChainSourceOptions& options);

/// The steps in which an input meets itself and leaves in its state what row stages need of its variances. `geometry`
/// is that of Purpose::state.
DevicePair record_steps(const Program& program, const PairGeometry& geometry, const StateLayout& state,
                        const ChainSourceOptions& options);

}  // namespace widelimit

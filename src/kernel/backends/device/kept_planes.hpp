#pragma once

#include <array>
#include <map>
#include <string>

#include "kernel/plan/pair_geometry.hpp"

namespace widelimit {

/// How the covariance of a pair between all positions at some node is kept in a device's memory: [displacement][left
/// position], one displacement b - a along each axis from `low` on, so that the entries of a plane are neighbours.
/// Where `count` is the size of the right input, displacements are taken modulo it and every pair of positions has a
/// place.
struct KeptPlanes {
  Index3 left{1, 1, 1}, right{1, 1, 1};
  Index3 low{0, 0, 0}, count{1, 1, 1};
  Index first = 0;  ///< Where it begins among the numbers of a pair.

  /// For displacements from `least` to `most`.
  KeptPlanes(const Index3& left_sizes, const Index3& right_sizes, const Index3& least, const Index3& most);
  /// For some offsets.
  KeptPlanes(const Index3& left_sizes, const Index3& right_sizes, const Offsets& demanded);

  [[nodiscard]] Index size() const { return product(count) * product(left); }
  [[nodiscard]] bool wraps(std::size_t axis) const { return count[axis] == right[axis]; }

  using Names = std::array<std::string, 3>;
  /// Which displacement along an axis is that of b - a, as text.
  [[nodiscard]] std::string displacement(std::size_t axis, const std::string& difference) const;
  /// The place of an entry whose displacements and left positions are known, as text.
  [[nodiscard]] std::string place(const Names& displacements, const Names& positions) const;
};

/// What is kept of a pair while its steps are computed.
struct KeptNodes {
  std::map<NodeId, KeptPlanes> nodes;
  Index size = 0;  ///< Numbers of one kernel of a pair.
};

}  // namespace widelimit

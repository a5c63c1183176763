#include "kernel/backends/device/kept_planes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace widelimit {
namespace {

Index3 ends(const Offsets& offsets, bool last) {
  Index3 result{0, 0, 0};
  for (std::size_t k = 0; k < 3; ++k)
    if (!offsets.axis[k].empty()) result[k] = last ? offsets.axis[k].back() : offsets.axis[k].front();
  return result;
}

}  // namespace

KeptPlanes::KeptPlanes(const Index3& left_sizes, const Index3& right_sizes, const Index3& least,
                       const Index3& most)
    : left{left_sizes}, right{right_sizes} {
  for (std::size_t k = 0; k < 3; ++k) {
    count[k] = std::clamp<Index>(most[k] - least[k] + 1, 1, right[k]);
    low[k] = wraps(k) ? 0 : least[k];
  }
}

KeptPlanes::KeptPlanes(const Index3& left_sizes, const Index3& right_sizes, const Offsets& demanded)
    : KeptPlanes(left_sizes, right_sizes, ends(demanded, false), ends(demanded, true)) {}

std::string KeptPlanes::displacement(std::size_t axis, const std::string& difference) const {
  return wraps(axis) ? fmt::format("around({}, {})", difference, right[axis])
                     : fmt::format("({} - ({}))", difference, low[axis]);
}

std::string KeptPlanes::place(const Names& displacements, const Names& positions) const {
  return fmt::format("((((({0} * {6} + {1}) * {7} + {2}) * {8} + {3}) * {9} + {4}) * {10} + {5})",
                     displacements[0], displacements[1], displacements[2], positions[0], positions[1],
                     positions[2], count[1], count[2], left[0], left[1], left[2]);
}

}  // namespace widelimit

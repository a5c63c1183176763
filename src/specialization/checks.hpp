#pragma once

#include <string_view>
#include <vector>

#include "numerics/arguments.hpp"
#include "widelimit/specialization/activation.hpp"

/// Argument checks of this folder.
namespace widelimit::specialization {

/// Of numerics::symmetric_root(), for differences of overlaps.
inline constexpr double overlap_rounding = 1e-6;

using numerics::require_at_least;
using numerics::require_at_most;
using numerics::require_finite;
using numerics::require_index;
using numerics::require_not_negative;
using numerics::require_positive;
using numerics::require_shape;
using numerics::require_symmetric;

/// The steps to record, with the last of all; at least 0 and the last. `where` stands in errors.
[[nodiscard]] inline std::vector<Index> checked_record(std::string_view where, std::vector<Index> record,
                                                       Index steps) {
  if (record.empty()) record.push_back(0);
  if (record.back() < steps) record.push_back(steps);
  for (std::size_t i = 0; i < record.size(); ++i)
    if (record[i] < (i == 0 ? 0 : record[i - 1] + 1) || record[i] > steps)
      throw ArgumentError(fmt::format("{}: record must increase and stay within [0, {}], got {} at place {}",
                                      where, steps, record[i], i));
  return record;
}

/// Every head has a direction: its squared length is positive.
inline void require_directions(std::string_view where, const Vector<double>& squared_lengths) {
  for (Index h = 0; h < squared_lengths.size(); ++h)
    if (!(squared_lengths[h] > 0))
      throw ArgumentError(fmt::format("{}: head {} has length 0, so its direction is undefined", where, h));
}

}  // namespace widelimit::specialization

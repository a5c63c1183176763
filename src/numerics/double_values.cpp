#include "numerics/double_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "widelimit/error.hpp"

namespace widelimit::numerics {
namespace {

constexpr std::size_t sampled_places = 512;
/// Values that come up more often belong to steps, and steps may have any heights.
constexpr std::size_t most_repetitions = 2;
/// An eighth of the places must have values of their own before their few digits prove anything.
constexpr std::size_t least_single_values = sampled_places / 8;

/// How many numbers, of a sorted list, come up no more often than values of a function that varies.
std::size_t single_values(const std::vector<double>& sorted) {
  std::size_t single = 0;
  for (auto begin = sorted.begin(); begin != sorted.end();) {
    const auto end = std::upper_bound(begin, sorted.end(), *begin);
    const auto count = static_cast<std::size_t>(end - begin);
    if (count <= most_repetitions) single += count;
    begin = end;
  }
  return single;
}

}  // namespace

void require_double_values(const FunctionValues& function, const std::string& name) {
  std::array<double, sampled_places> places{}, values{};
  // The places have all digits of a double, so that even the values of the identity are no numbers of float.
  for (std::size_t i = 0; i < sampled_places; ++i)
    places[i] = 3 * std::sin(1.7 * static_cast<double>(i) + 0.3);
  function(places, values.data());
  std::vector<double> finite;
  for (const double value : values)
    if (std::isfinite(value)) finite.push_back(value);
  const bool are_float = std::all_of(finite.begin(), finite.end(), [](double value) {
    return static_cast<double>(static_cast<float>(value)) == value;
  });
  if (!are_float) return;
  std::sort(finite.begin(), finite.end());
  if (single_values(finite) < least_single_values) return;
  throw ArgumentError(
      fmt::format("{}: all values of phi, or of its derivative, are numbers of float32: expected a function "
                  "that computes in double (float64), whose rounding quadrature does not see; take away what "
                  "casts to float32 or less, or give the dual itself",
                  name));
}

}  // namespace widelimit::numerics

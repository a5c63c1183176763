#include "widelimit/gp/median_distance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "widelimit/error.hpp"

namespace widelimit::gp {

template <typename Scalar>
std::optional<double> median_distance(const Inputs<Scalar>& x) {
  constexpr Index most_inputs = 500;
  if (x.is_ragged() || x.is_masked() || !x.graphs().empty() || x.size() < 2) return std::nullopt;
  const Index count = std::min(x.size(), most_inputs), numbers = static_cast<Index>(x[0].size());
  const auto input = [&](Index i) {
    return Eigen::Map<const Vector<Scalar>>(x[i * x.size() / count].data(), numbers);
  };
  for (Index i = 0; i < count; ++i)
    if (!input(i).allFinite())
      throw ArgumentError(fmt::format(
          "median_distance: x must be finite, got a number that is not in input {}", i * x.size() / count));
  // Differences, and no products, whose rounding would hide small distances of large numbers.
  std::vector<double> squares;
  squares.reserve(static_cast<std::size_t>(count) * static_cast<std::size_t>(count - 1) / 2);
  for (Index i = 0; i < count; ++i)
    for (Index j = 0; j < i; ++j) {
      const double square = (input(i) - input(j)).template cast<double>().squaredNorm();
      if (square > 0 && std::isfinite(square)) squares.push_back(square);
    }
  if (squares.empty()) return std::nullopt;
  const auto middle = squares.begin() + static_cast<std::ptrdiff_t>(squares.size() / 2);
  std::ranges::nth_element(squares, middle);
  return std::sqrt(*middle / static_cast<double>(numbers));
}

template std::optional<double> median_distance(const Inputs<float>&);
template std::optional<double> median_distance(const Inputs<double>&);

}  // namespace widelimit::gp

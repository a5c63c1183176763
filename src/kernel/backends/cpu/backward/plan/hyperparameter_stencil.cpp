#include "kernel/backends/cpu/backward/plan/hyperparameter_stencil.hpp"

#include <array>
#include <cstddef>

#include "numerics/central_slope.hpp"

namespace widelimit {
namespace {

/// Central differences with four places on either side. The place 0 has weight 0.
Stencil central_stencil() {
  constexpr std::array<double, 4> coarse = {2.0 / 3, -1.0 / 12, 0, 0};
  Stencil places;
  for (std::size_t k = 0; k < coarse.size(); ++k)
    for (const double sign : {1.0, -1.0})
      places.push_back(
          {sign * static_cast<double>(k + 1), sign * numerics::central_weights[k], sign * coarse[k]});
  return places;
}

/// Differences of nine places from 0 to one side. The weights are those of the forward differences of orders eight
/// and four.
Stencil one_sided_stencil(double side) {
  constexpr std::array<double, 9> fine = {-761.0 / 280, 8,         -14,     56.0 / 3, -35.0 / 2,
                                          56.0 / 5,     -14.0 / 3, 8.0 / 7, -1.0 / 8};
  constexpr std::array<double, 9> coarse = {-25.0 / 12, 4, -3, 4.0 / 3, -1.0 / 4, 0, 0, 0, 0};
  Stencil places;
  for (std::size_t k = 0; k < fine.size(); ++k)
    places.push_back({side * static_cast<double>(k), side * fine[k], side * coarse[k]});
  return places;
}

}  // namespace

std::optional<Stencil> stencil_in_range(double step, const std::function<bool(double)>& is_in_range) {
  // Ranges of numbers are taken to be intervals, so that a stencil stays within them if its outermost places do.
  constexpr double central_reach = 4, one_sided_reach = 8;
  if (is_in_range(central_reach * step) && is_in_range(-central_reach * step)) return central_stencil();
  for (const double side : {1.0, -1.0})
    if (is_in_range(side * one_sided_reach * step)) return one_sided_stencil(side);
  return std::nullopt;
}

}  // namespace widelimit

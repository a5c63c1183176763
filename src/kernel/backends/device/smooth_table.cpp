#include "kernel/backends/device/smooth_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>

#include "numerics/chebyshev_series.hpp"
#include "widelimit/error.hpp"

namespace widelimit {

using numerics::chebyshev_angle;
using numerics::chebyshev_series;
using numerics::DeepSeries;
using numerics::MehlerTable;
using numerics::Parity;
using numerics::QuadratureActivation;
using numerics::series_truncations;
using numerics::VarianceGrid;
using numerics::formula::Precision;

namespace {

/// Devices round a variance otherwise than the CPU does: within this share of a piece it may belong to the next one.
constexpr double piece_margin = 1e-3;

using Panel = std::array<double, SmoothTable::degrees>;

double node_of(double begin, double end, std::size_t i) {
  return begin + (end - begin) / 2 * (1 + std::cos(chebyshev_angle<SmoothTable::degrees>(i)));
}

Panel values_of(const std::function<double(double)>& f, double begin, double end) {
  Panel values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = f(node_of(begin, end, i));
  return values;
}

/// The value of phi at an end of a panel, as seen from within: there may be a jump.
double value_at_end(const std::function<double(double)>& phi, double at, const Panel& values, double sign) {
  const Panel series = chebyshev_series(values);
  double inside = 0, size = 0, power = 1;
  for (const double coefficient : series) {
    inside += power * coefficient;
    power *= sign;
  }
  for (const double value : values) size = std::max(size, std::abs(value));
  constexpr double rounding = 1e-13;
  const double exact = phi(at);
  return std::abs(exact - inside) <= rounding * size ? exact : inside;
}

}  // namespace

SmoothTable::SmoothTable(const QuadratureActivation& activation, Precision precision)
    : parts_{activation.parts()}, precision_{precision}, numbers_(place_of(VarianceGrid::pieces), 0.0) {
  const MehlerTable& table = parts_.series;
  numbers_[first_skips] = table.order(1) - table.order(0) == 2 ? 1 : 0;
  numbers_[others_skip] = table.order(2) - table.order(1) == 2 ? 1 : 0;
  numbers_[rises] = table.has_own_rises() ? 1 : 0;
  numbers_[reach] = parts_.mesh.reach();
  write_panels();
}

void SmoothTable::write_panels() {
  const std::vector<double>&mesh = parts_.mesh.edges(), &kinks = parts_.mesh.breakpoints();
  numbers_[panels] = static_cast<double>(mesh.size() - 1);
  numbers_[edges] = static_cast<double>(numbers_.size());
  numbers_.insert(numbers_.end(), mesh.begin(), mesh.end());
  numbers_[breakpoint_count] = static_cast<double>(kinks.size());
  numbers_[breakpoints] = static_cast<double>(numbers_.size());
  numbers_.insert(numbers_.end(), kinks.begin(), kinks.end());
  numbers_[series] = static_cast<double>(numbers_.size());
  const bool differentiates = parts_.phi.has_derivative_dual();
  for (std::size_t i = 0; i + 1 < mesh.size(); ++i) {
    const double begin = mesh[i], end = mesh[i + 1];
    // phi is the value at the end that is nearer to 0 and a rise: small variances need its digits there.
    const bool from_end = std::abs(end) < std::abs(begin);
    const double origin = from_end ? end : begin;
    Panel values = values_of(parts_.phi.value, begin, end);
    const double at_origin = value_at_end(parts_.phi.value, origin, values, from_end ? 1 : -1);
    for (std::size_t k = 0; k < degrees; ++k)
      values[k] = (values[k] - at_origin) / (node_of(begin, end, k) - origin);
    numbers_.insert(numbers_.end(), {origin, at_origin});
    for (const double number : chebyshev_series(values)) numbers_.push_back(number);
    const Panel slopes = differentiates ? values_of(parts_.phi.derivative, begin, end) : Panel{};
    for (const double number : chebyshev_series(slopes)) numbers_.push_back(number);
  }
}

bool SmoothTable::require(const std::vector<double>& variances) {
  bool fresh = false;
  for (const double variance : variances) {
    if (!(variance > 0)) continue;
    const double place = VarianceGrid::place(variance);
    for (const double near : {place - piece_margin, place, place + piece_margin}) {
      // Variances beyond the grid have no tables. Their windows are those of its last piece.
      const auto piece = static_cast<std::size_t>(
          std::clamp(std::floor(near), 0.0, static_cast<double>(VarianceGrid::pieces - 1)));
      if (!pieces_.insert(piece).second) continue;
      fresh = true;
      add_window(piece);
      add_series(piece, parts_.series, series_truncations.back(), 1);
    }
  }
  if (!fresh || !needs_deep()) return fresh;
  for (const std::size_t piece : pieces_)
    if (numbers_[place_of(piece) + 1] > 0 && numbers_[place_of(piece) + 2] == 0)
      add_series(piece, parts_.deep, DeepSeries::truncations.back(), 2);
  return true;
}

void SmoothTable::add_window(std::size_t piece) {
  const double window = parts_.window.of_piece(piece);
  if (!std::isfinite(window))
    throw NumericalError(
        fmt::format("{}: devices compute with variances up to where half a binary exponent more can still be "
                    "computed, got "
                    "about {:.6g}; use smaller weight variances, or the device cpu",
                    parts_.phi.name, std::exp2(VarianceGrid::log2_begin(piece))));
  numbers_[place_of(piece)] = window;
}

/// Whether a pair of what was asked for needs more orders than the short series has: one of the pieces then does with
/// itself.
bool SmoothTable::needs_deep() const {
  return std::any_of(pieces_.begin(), pieces_.end(), [&](std::size_t piece) {
    const auto first = static_cast<std::size_t>(numbers_[place_of(piece) + 1]);
    return first > 0 && 2 * numbers_[first + 2 + series_truncations.size() - 1] > log_tolerance(precision_);
  });
}

void SmoothTable::add_series(std::size_t piece, const MehlerTable& table, std::size_t orders,
                             std::size_t place) {
  const auto view = table.piece(piece);
  if (!view) return;
  const std::size_t levels = view->truncations.size(),
                    rows = view->stride - MehlerTable::first_coefficient + 1;
  constexpr std::size_t terms = MehlerTable::chebyshev_nodes;
  numbers_[place_of(piece) + place] = static_cast<double>(numbers_.size());
  numbers_.insert(numbers_.end(), {view->value_growth, view->slope_growth});
  numbers_.insert(numbers_.end(), view->tail_bounds.begin(), view->tail_bounds.end());
  const auto coefficient = [&](std::size_t m, std::size_t k) { return view->series[m * view->stride + k]; };
  // Coefficients need digits of the size of the largest one.
  double size = 0;
  for (std::size_t k = MehlerTable::first_coefficient; k < view->stride; ++k)
    size = std::max(size, std::abs(coefficient(0, k)));
  const double allowed = size * (precision_ == Precision::wide ? 1e-16 : 1e-9);
  std::size_t needed = 2, k = 0;
  for (std::size_t level = 0; level < levels; ++level) {
    for (; k < view->truncations[level]; ++k)
      for (std::size_t from = MehlerTable::first_coefficient + k; from < view->stride; from += orders) {
        double rest = 0;
        for (std::size_t m = terms; m > needed; --m) {
          rest += std::abs(coefficient(m - 1, from));
          if (rest > allowed) needed = std::max(needed, m);
        }
      }
    numbers_.push_back(static_cast<double>(needed));
  }
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t m = 0; m < terms; ++m)
      numbers_.push_back(coefficient(m, row == 0 ? 0 : MehlerTable::first_coefficient + row - 1));
}

}  // namespace widelimit

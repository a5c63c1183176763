#include "numerics/interval_series.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "numerics/chebyshev_series.hpp"

namespace widelimit::numerics {
namespace {

constexpr std::size_t series_order = 24;
constexpr std::size_t tail_terms = 4;
constexpr double series_rounding = 1e-14;  // of the largest value

static_assert(IntervalSeries::value_count == series_order + 2);

using SeriesNumbers = std::array<double, series_order>;

/// Between the ends and the outermost nodes, a thousandth of the interval away, a kink would not be seen.
std::array<double, 2> places_beside_ends(double begin, double end) {
  constexpr double beside_end = 1e-5;
  return {begin + beside_end * (end - begin), end - beside_end * (end - begin)};
}

}  // namespace

IntervalSeries::Numbers IntervalSeries::places(double begin, double end) {
  Numbers result{};
  for (std::size_t i = 0; i < series_order; ++i)
    result[i] = (begin + end) / 2 + (end - begin) / 2 * std::cos(chebyshev_angle<series_order>(i));
  const auto ends = places_beside_ends(begin, end);
  std::copy(ends.begin(), ends.end(), result.begin() + series_order);
  return result;
}

IntervalSeries::IntervalSeries(std::span<const double, value_count> all_values, double begin, double end,
                               double noise)
    : begin_{begin}, end_{end}, tail_{std::numeric_limits<double>::infinity()}, coefficients_{0.0} {
  const auto ends = places_beside_ends(begin, end);
  SeriesNumbers values{};
  std::copy_n(all_values.begin(), series_order, values.begin());
  for (const double value : all_values) {
    if (!std::isfinite(value)) return;
    size_ = std::max(size_, std::abs(value));
  }
  // The error of the interpolant is about as large as its last coefficients.
  const SeriesNumbers all = chebyshev_series(values);
  tail_ = 0;
  for (std::size_t k = series_order - tail_terms; k < series_order; ++k)
    tail_ = std::max(tail_, std::abs(all[k]));
  // Places are rounded too: f moves by its slope times that.
  const double farthest = std::max(std::abs(begin), std::abs(end));
  place_rounding_ = 1e-15 * farthest * std::abs(all[1]) / (end - begin);
  const double rounding = noise + series_rounding * size_ + place_rounding_;
  std::size_t last = series_order - 1;
  while (last > 0 && std::abs(all[last]) <= rounding) --last;
  coefficients_.assign(all.begin(), all.end());
  // At an end all |T_k| are 1, so that an error there adds up those of all terms; its share is compared with the tail.
  constexpr double terms = static_cast<double>(series_order);
  for (std::size_t i = 0; i < ends.size(); ++i)
    tail_ = std::max(tail_, std::abs((*this)(ends[i]) - all_values[series_order + i]) / terms);
  coefficients_.resize(last + 1);
}

double IntervalSeries::operator()(double x) const {
  const double t = (2 * x - begin_ - end_) / (end_ - begin_);
  double after = 0, here = 0;  // Clenshaw's recurrence.
  for (std::size_t k = coefficients_.size(); k-- > 1;) {
    const double next = 2 * t * here - after + coefficients_[k];
    after = here;
    here = next;
  }
  return t * here - after + coefficients_[0];
}

}  // namespace widelimit::numerics

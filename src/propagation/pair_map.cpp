#include "propagation/pair_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "numerics/central_slope.hpp"
#include "numerics/gauss_legendre.hpp"
#include "propagation/chebyshev.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/gaussian_expectation.hpp"

namespace widelimit::propagation {

namespace {

constexpr int fewest_slopes = 16, most_slopes = 512;
constexpr double settled_slopes = 3e-12;       // of the largest value: the size of the last coefficients
constexpr double continuity_tolerance = 1e-3;  // a jump shows at order 1

double unit_node(int j, int degree) { return (1 + chebyshev_point(j, degree)) / 2; }

/// Largest of the last three Chebyshev coefficients, over the largest value.
double tail(const std::vector<double>& values) {
  const int degree = static_cast<int>(values.size()) - 1;
  double largest = 0, rest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  for (int k = degree - 2; k <= degree; ++k) {
    double sum = 0;
    for (int j = 0; j <= degree; ++j) {
      const double half = j == 0 || j == degree ? 0.5 : 1;
      sum += half * values[static_cast<std::size_t>(j)] * std::cos(std::numbers::pi * j * k / degree);
    }
    rest = std::max(rest, std::abs(sum) * 2 / degree);
  }
  return largest > 0 ? rest / largest : 0;
}

}  // namespace

GapTable::GapTable(const numerics::Activation& activation, double variance) {
  const auto slope_at = [&](double t) {
    return activation.dual(variance, variance, variance * (1 - largest_gap * t * t)).derivative;
  };
  for (int degree = fewest_slopes;; degree *= 2) {
    std::vector<double> refined(static_cast<std::size_t>(degree) + 1);
    for (std::size_t j = 0; j < refined.size(); ++j)
      refined[j] =
          // Every other node of a doubled degree was there before.
          j % 2 == 0 && !slopes_.empty() ? slopes_[j / 2] : slope_at(unit_node(static_cast<int>(j), degree));
    slopes_ = std::move(refined);
    if (tail(slopes_) <= settled_slopes) break;
    if (degree == most_slopes)
      throw NumericalError(fmt::format(
          "MlpMap: E phi'(u) phi'(v) at variance {} is not smooth near perfect correlation: {} Chebyshev "
          "nodes leave {:.1e} of it; declare the breakpoints of phi",
          variance, degree, tail(slopes_)));
  }
  // The mean over [1 - gap, 1] is the mean over v in [0, 1] of slope(t v), weight 2 v.
  const int degree = static_cast<int>(slopes_.size()) - 1;
  // Fifteen nodes integrate a polynomial of some 16 degrees to rounding.
  const int panels = 1 + degree / 16;
  for (int j = 0; j <= degree; ++j) {
    const double t = unit_node(j, degree);
    double sum = 0;
    for (int panel = 0; panel < panels; ++panel)
      numerics::gauss_legendre_15().integrate(
          static_cast<double>(panel) / panels, static_cast<double>(panel + 1) / panels,
          [&](double v, double weight) { sum += weight * 2 * v * interpolate(slopes_, t * v); });
    mean_slopes_.push_back(sum);
  }
}

double GapTable::interpolate(const std::vector<double>& values, double t) const {
  const int degree = static_cast<int>(values.size()) - 1;
  double sum = 0, norm = 0;
  for (std::size_t j = 0; j < values.size(); ++j) {
    // The barycentric formula is 0 / 0 at a node, where the value itself is known.
    const double difference = t - unit_node(static_cast<int>(j), degree);
    if (difference == 0) return values[j];
    const double weight = barycentric_weight(static_cast<int>(j), degree) / difference;
    sum += weight * values[j];
    norm += weight;
  }
  return sum / norm;
}

double GapTable::slope(double gap) const { return interpolate(slopes_, std::sqrt(gap / largest_gap)); }

double GapTable::mean_slope(double gap) const {
  return interpolate(mean_slopes_, std::sqrt(gap / largest_gap));
}

PairMap::PairMap(numerics::ActivationPtr activation, double variance)
    : activation_{std::move(activation)}, variance_{variance} {
  const numerics::Dual<double> equal = activation_->dual(variance, variance, variance);
  second_moment_ = equal.value;
  slope_ = equal.derivative;
}

const GapTable& PairMap::table() const {
  std::call_once(made_, [this] { table_ = std::make_unique<const GapTable>(*activation_, variance_); });
  return *table_;
}

double PairMap::output_gap(double gap) const {
  if (gap <= 0 || variance_ == 0) return 0;
  // Near correlation 1 the gap is an integral of slopes (Price's theorem), further away the difference
  // itself keeps enough digits.
  if (gap <= GapTable::largest_gap) return variance_ * gap * table().mean_slope(gap);
  return second_moment_ - activation_->dual(variance_, variance_, variance_ * (1 - gap)).value;
}

double PairMap::slope(double gap) const {
  if (gap <= 0 || variance_ == 0) return slope_;
  if (gap <= GapTable::largest_gap) return table().slope(gap);
  return activation_->dual(variance_, variance_, variance_ * (1 - gap)).derivative;
}

double PairMap::curvature() const {
  const auto second_derivative = [this](double x, double step) {
    return numerics::central_slope([&](double t) { return activation_->derivative(x + t); }, step);
  };
  const auto mean_square = [&](double step) {
    return numerics::gaussian_expectation(
               [&](double x) {
                 const double second = second_derivative(x, step);
                 return second * second;
               },
               variance_)
        .value;
  };
  // The difference is of eighth order: at this step its truncation and its rounding are both far below 1e-6.
  constexpr double step = 0.01;
  const double result = mean_square(step), coarse = mean_square(1.5 * step);
  // Over a kink the difference quotient grows as 1 / step.
  if (!(std::abs(result - coarse) <= 1e-6 * std::max(1.0, result)))
    throw NumericalError(fmt::format(
        "MlpMap::curvature: phi' must be smooth, but the mean square of phi'' at variance {} is {} by "
        "differences of step {} and {} by {}",
        variance_, result, step, coarse, 1.5 * step));
  return result;
}

/// By Price's theorem E[phi phi] rises by the integral of the derivative dual, unless phi jumps.
void require_continuous(const char* where, const numerics::Activation& activation) {
  // Price's theorem between uncorrelated and correlated by 0.95, where no dual is hard.
  const double rise = activation.dual(1, 1, 0.95).value - activation.dual(1, 1, 0).value;
  double integral = 0;
  numerics::gauss_legendre_10().integrate(0, 0.95, [&](double correlation, double weight) {
    integral += weight * activation.dual(1, 1, correlation).derivative;
  });
  if (!(std::abs(rise - integral) <= continuity_tolerance * std::max(std::abs(rise), std::abs(integral))))
    throw ArgumentError(
        fmt::format("{}: activation must be continuous, or angles grow without bound near collapse: E phi(u) "
                    "phi(v) rises by {} between correlations 0 and 0.95, its continuous part by {}",
                    where, rise, integral));
}

}  // namespace widelimit::propagation

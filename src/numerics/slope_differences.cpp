#include "numerics/slope_differences.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "numerics/determinant.hpp"

namespace widelimit::numerics {
namespace {

/// Steps of a table: each is half of the one before, down to a five-hundredth of the first.
constexpr std::size_t step_halvings = 10;

/// The first step, as a share of the length over which the arguments range.
constexpr double first_step = 0.25;

/// Error of a slope, relative to it, above which it has not settled.
constexpr double settled = 1e-3;

/// An extrapolated slope and how far it moved last.
struct SlopeEstimate {
  double slope = 0;
  double error = std::numeric_limits<double>::infinity();

  [[nodiscard]] bool has_settled() const { return error <= settled * std::abs(slope); }
};

/// Estimates for the two parts of a Dual.
struct DualEstimates {
  SlopeEstimate value;
  SlopeEstimate derivative;

  void take_better(const DualEstimates& other) {
    if (other.value.error < value.error) value = other.value;
    if (other.derivative.error < derivative.error) derivative = other.derivative;
  }
};

/// Rows are for steps that halve: row j, column m has m powers of the error eliminated.
/// Neville's table of difference quotients whose error begins with step^order and goes on in its powers.
class NevilleTable {
 public:
  explicit NevilleTable(double order) : ratio_{std::exp2(order)} {}

  void add(double quotient) {
    std::array<double, step_halvings> row{};
    row[0] = quotient;
    double factor = 1;
    for (std::size_t j = 1; j <= rows_; ++j) {
      factor *= ratio_;
      row[j] = row[j - 1] + (row[j - 1] - previous_[j - 1]) / (factor - 1);
      // A column is trusted as far as its neighbours to the left and above agree with it.
      const double change = std::max(std::abs(row[j] - row[j - 1]), std::abs(row[j] - previous_[j - 1]));
      if (change < best_.error) best_ = {row[j], change};
    }
    previous_ = row;
    ++rows_;
  }
  [[nodiscard]] const SlopeEstimate& best() const { return best_; }

 private:
  double ratio_;
  std::size_t rows_ = 0;
  std::array<double, step_halvings> previous_{};
  SlopeEstimate best_;
};

/// A NevilleTable for each part of a Dual, fed with the same places.
struct DualTables {
  explicit DualTables(double order) : values(order), derivatives(order) {}

  void add(const Dual<double>& low, const Dual<double>& high, double length) {
    values.add((high.value - low.value) / length);
    derivatives.add((high.derivative - low.derivative) / length);
  }
  [[nodiscard]] DualEstimates best() const { return {values.best(), derivatives.best()}; }

  NevilleTable values, derivatives;
};

/// `at(t)` is the Dual at distance t along some direction.
template <typename Curve>
DualEstimates central_slopes(const Curve& at, double step) {
  // Central differences have even powers of the step only.
  DualTables tables(2);
  for (std::size_t i = 0; i < step_halvings; ++i, step /= 2) tables.add(at(-step), at(step), 2 * step);
  return tables.best();
}

/// Towards t > 0, or t < 0 for a negative step. Where phi has kinks the errors go on in powers of the step's root.
template <typename Curve>
DualEstimates one_sided_slopes(const Curve& at, double step) {
  // Beside perfect correlation a kink of phi gives the dual a root of the distance
  // (docs/theory/derivatives.md, section 2).
  DualTables smooth(1), kinked(0.5);
  const Dual<double> here = at(0);
  for (std::size_t i = 0; i < step_halvings; ++i, step /= 2) {
    const Dual<double> there = at(step);
    smooth.add(here, there, step);
    kinked.add(here, there, step);
  }
  DualEstimates best = smooth.best();
  best.take_better(kinked.best());
  return best;
}

/// The slopes at t = 0 of a curve that is defined for -below <= t <= above and varies over `length` at least.
template <typename Curve>
DualEstimates curve_slopes(const Curve& at, double length, double below, double above) {
  const double wanted = first_step * length;
  // The very ends are avoided, because rounding can put them outside of the range.
  const double room = 0.9 * std::min(below, above);
  DualEstimates best;
  // Below this room the step is nothing but rounding errors of the place.
  if (room > perfect_tolerance * std::numeric_limits<double>::epsilon() * length)
    best = central_slopes(at, std::min(wanted, room));
  // Near an end of the range the one-sided slopes compete with the central ones; the smaller error wins.
  if (room >= wanted) return best;
  const double reach = std::min(wanted, 0.9 * std::max(below, above));
  best.take_better(one_sided_slopes(at, above >= below ? reach : -reach));
  return best;
}

/// The slope, or 0 if it has not settled. Rounding errors of numbers of this scale look like slopes of that size, which
/// need not settle to count.
double finite_slope(const SlopeEstimate& estimate, double scale, double length) {
  const bool small = estimate.error <= 1e-7 * scale / length;
  return estimate.has_settled() || small ? estimate.slope : 0.0;
}

/// The dual at one place of its range and the sizes of its parts, those of the two variances with themselves.
struct PlaceOfDual {
  const Activation& activation;
  double p, q, c;
  Dual<double> scale;

  [[nodiscard]] Dual<double> along(const DualEstimates& estimates, double length) const {
    return {finite_slope(estimates.value, scale.value, length),
            finite_slope(estimates.derivative, scale.derivative, length)};
  }
  [[nodiscard]] Dual<double> in_left() const {
    if (!(p > 0)) return {0, 0};
    // c^2 <= pq bounds p from below.
    const double below = q > 0 ? std::max(p - c * (c / q), 0.0) : p;
    return along(curve_slopes([&](double t) { return activation.dual(p + t, q, c); }, p, below, p), p);
  }
  [[nodiscard]] Dual<double> in_right() const {
    if (!(q > 0)) return {0, 0};
    const double below = p > 0 ? std::max(q - c * (c / p), 0.0) : q;
    return along(curve_slopes([&](double t) { return activation.dual(p, q + t, c); }, q, below, q), q);
  }
};

Dual<double> scale_of(const Activation& activation, double p, double q) {
  const Dual<double> left = activation.dual(p, p, p), right = activation.dual(q, q, q);
  return {std::sqrt(std::abs(left.value * right.value)),
          std::sqrt(std::abs(left.derivative * right.derivative))};
}

/// By Price's theorem the slope of the value is the derivative, exactly, unless a difference that has settled says that
/// phi jumps.
double value_slope(const SlopeEstimate& difference, double derivative, double unit) {
  const double gap = std::abs(difference.slope - derivative);
  return difference.has_settled() && gap > 1e-5 * unit + 10 * difference.error ? difference.slope
                                                                               : derivative;
}

}  // namespace

DualSlopes slopes_by_differences(const Activation& activation, double p, double q, double c) {
  const Dual<double> dual = activation.dual(p, q, c);
  const double widest = std::sqrt(p) * std::sqrt(q);
  // With a variance of 0 the covariance is 0 and cannot change, so that only slopes in the variances are left.
  if (!(widest > 0)) {
    const PlaceOfDual place{activation, p, q, c, scale_of(activation, p, q)};
    return {dual, place.in_left(), place.in_right(), 0, dual.derivative};
  }
  // Rounding can put c a little outside of its range.
  c = std::clamp(c, -widest, widest);
  const PlaceOfDual place{activation, p, q, c, scale_of(activation, p, q)};
  const DualEstimates in_c =
      curve_slopes([&](double t) { return activation.dual(p, q, c + t); }, widest, widest + c, widest - c);
  return {dual, place.in_left(), place.in_right(), place.along(in_c, widest).derivative,
          value_slope(in_c.value, dual.derivative, place.scale.value / widest)};
}

SelfSlopes self_slopes_by_differences(const Activation& activation, double p) {
  const Dual<double> dual = activation.dual(p, p, p);
  if (!(p > 0)) return {dual, {0, 0}};
  const PlaceOfDual place{activation, p, p, p, {std::abs(dual.value), std::abs(dual.derivative)}};
  const auto at = [&](double t) { return activation.dual(p + t, p + t, p + t); };
  return {dual, place.along(curve_slopes(at, p, p, p), p)};
}

}  // namespace widelimit::numerics

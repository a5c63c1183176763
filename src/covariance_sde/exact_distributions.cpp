#include "widelimit/covariance_sde/exact_distributions.hpp"

#include <fmt/format.h>

#include <boost/math/interpolators/cardinal_quintic_b_spline.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "covariance_sde/arguments.hpp"
#include "covariance_sde/line_diffusion.hpp"
#include "covariance_sde/line_processes.hpp"
#include "covariance_sde/narrow_law.hpp"
#include "numerics/roots.hpp"

namespace widelimit::covariance_sde {

/// A distribution function as a quintic spline between the nodes of its grid: 0 below the first node, the
/// whole mass above the last.
class SmoothLaw {
 public:
  explicit SmoothLaw(const LineDistribution& law)
      : first_{law.low},
        last_{law.low + law.spacing * static_cast<double>(law.cumulative.size() - 1)},
        mass_{law.mass},
        spline_(law.cumulative.data(), law.cumulative.size(), law.low, law.spacing, {0, 0}, {0, 0}) {}

  [[nodiscard]] double first() const { return first_; }
  [[nodiscard]] double last() const { return last_; }
  [[nodiscard]] double cumulative(double y) const {
    if (!(y > first_)) return 0;
    return y < last_ ? std::clamp(spline_(y), 0.0, mass_) : mass_;
  }
  [[nodiscard]] double density(double y) const {
    return y > first_ && y < last_ ? std::max(0.0, spline_.prime(y)) : 0;
  }

 private:
  double first_, last_, mass_;
  boost::math::interpolators::cardinal_quintic_b_spline<double> spline_;
};

namespace {

void require_probability(std::string_view where, double p, double mass) {
  if (!(p > 0 && p < std::min(mass, 1.0)))
    throw ArgumentError(
        fmt::format("{}: p must lie between 0 and the mass not exploded, {}, got {}", where, mass, p));
}

/// Whether the drift is so much stronger than the noise that a grid would have to be too fine to follow it.
bool is_strong(const DriftedDiffusion& diffusion) {
  constexpr double strong = 100;
  return std::abs(diffusion.drift(diffusion.start)) * diffusion.scale(diffusion.start) >
         strong * diffusion.variance;
}

/// P(chart <= y) on a grid of its own; the chart's y as a place of the narrow law.
template <typename Place>
LineDistribution on_grid(const NarrowLaw& law, double low, double high, const Place& place) {
  constexpr std::size_t intervals = 1000;
  LineDistribution result{low, (high - low) / intervals, {}, 1};
  for (std::size_t i = 0; i <= intervals; ++i) {
    const double cumulative = law.cumulative(place(low + result.spacing * static_cast<double>(i)));
    result.cumulative.push_back(std::clamp(cumulative, 0.0, 1.0));
  }
  return result;
}

/// The law at a time of a process that starts at a place of its chart, where
/// Process::Frame is a second chart, of constant noise.
template <typename Process>
LineDistribution law_of(std::string_view where, const Process& process, double start, double time) {
  using Frame = typename Process::Frame;
  const DriftedDiffusion drifted = process.drifted(start);
  if (!is_strong(drifted)) return evolve(where, process.diffusion({start}, time), time);
  const NarrowLaw law = narrow_law(drifted, time);
  const double spread = law_reach * law.deviation;
  // The law stays narrow until the end, so that its expansion is the answer and no grid is evolved.
  if (law.time == time) {
    const double one_end = Frame::back(law.centre - spread), other = Frame::back(law.centre + spread);
    LineDistribution result = on_grid(law, std::min(one_end, other), std::max(one_end, other), Frame::place);
    if (other < one_end)  // the frame is turned round
      for (double& cumulative : result.cumulative) cumulative = 1 - cumulative;
    return result;
  }
  // From here on the drift is weak enough for a grid, which begins with the density of the narrow law.
  const double rest = time - law.time;
  LineDiffusion diffusion = process.diffusion({Frame::back(law.centre), law.deviation}, rest);
  diffusion.initial_density = [&](double y) {
    const double x = Frame::place(y);
    return std::abs(x - law.centre) < spread ? law.density(x) * Frame::stretch(x) : 0;
  };
  return evolve(where, diffusion, rest);
}

/// Masses at points of a law.
struct PointMasses {
  std::vector<double> places, masses;
  double total = 0;
};

/// A law whose points move on as normal ones with this mean and variance.
LineDistribution moved(const PointMasses& law, double mean, double variance) {
  double centre = 0, spread = 0;
  for (std::size_t k = 0; k < law.places.size(); ++k) centre += law.masses[k] / law.total * law.places[k];
  for (std::size_t k = 0; k < law.places.size(); ++k)
    spread += law.masses[k] / law.total * std::pow(law.places[k] - centre, 2);
  constexpr std::size_t intervals = 1000;
  const double half = law_reach * std::sqrt(spread + variance), scale = std::sqrt(2 * variance);
  LineDistribution result{centre + mean - half, 2 * half / intervals, {}, law.total};
  for (std::size_t i = 0; i <= intervals; ++i) {
    const double place = result.low + result.spacing * static_cast<double>(i) - mean;
    double sum = 0;
    for (std::size_t k = 0; k < law.places.size(); ++k)
      sum += law.masses[k] * std::erfc((law.places[k] - place) / scale) / 2;
    result.cumulative.push_back(sum);
  }
  return result;
}

/// The points of a law on one side of 0, or all of them. Trapezoids are exact to rounding: densities vanish at both
/// ends, and change over no less than some units of y.
PointMasses points_of(const SmoothLaw& law, double mass, double from, double to) {
  constexpr int points = 4000;
  const double spacing = (law.last() - law.first()) / points;
  PointMasses result;
  double all = 0;
  for (int k = 0; k <= points; ++k) {
    const double y = law.first() + spacing * k, here = spacing * law.density(y);
    all += here;
    if (!(y >= from && y < to)) continue;
    result.places.push_back(y);
    result.masses.push_back(here);
    result.total += here;
  }
  // The trapezoids' sum is made the mass that the law is known to have.
  for (double& one : result.masses) one *= mass / all;
  result.total *= mass / all;
  return result;
}

/// One law for each way that the process takes.
std::vector<LineDistribution> moved_on(const SmoothLaw& law, double mass, const LateMotion& late,
                                       double rest) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!late.both_ways)
    return {moved(points_of(law, mass, -infinity, infinity), late.drift * rest, late.variance * rest)};
  std::vector<LineDistribution> laws;
  for (const bool up : {false, true}) {
    const PointMasses side = points_of(law, mass, up ? 0 : -infinity, up ? infinity : 0);
    if (side.total > 1e-12)
      laws.push_back(moved(side, (up ? 1 : -1) * late.drift * rest, late.variance * rest));
  }
  return laws;
}

/// Laws whose sum is that at a time: beyond the time from which the process moves with constant drift and noise, one
/// for each way it takes.
template <typename Process>
std::vector<LineDistribution> late_laws_of(std::string_view where, const Process& process, double start,
                                           double time) {
  const LateMotion late = process.late();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  // Weak bends of the slopes keep some paths below 0 for long, so that later beginnings are tried too: 160, 240, 360
  // and 540 in units of s T (docs/theory/covariance-sde.md, section 7.2).
  constexpr double patience = 1.5, most_left_out = 2e-9;
  for (double settled = late.time; settled < 3.4 * late.time && time > 1.25 * settled; settled *= patience) {
    const LineDistribution early = law_of(where, process, start, settled);
    const SmoothLaw law(early);
    const PointMasses points = points_of(law, early.mass, -infinity, infinity);
    double left_out = 0;
    for (std::size_t k = 0; k < points.places.size(); ++k)
      left_out += points.masses[k] * late.left_out(points.places[k]);
    if (left_out < most_left_out) return moved_on(law, early.mass, late, time - settled);
  }
  return {law_of(where, process, start, time)};
}

}  // namespace

struct DiffusionDistribution::Interpolant {
  std::vector<SmoothLaw> parts;
};

DiffusionDistribution::DiffusionDistribution(Chart chart, const std::vector<LineDistribution>& parts)
    : chart_{chart}, first_{HUGE_VAL}, last_{-HUGE_VAL}, mass_{0} {
  Interpolant interpolant;
  for (const LineDistribution& part : parts) {
    interpolant.parts.emplace_back(part);
    first_ = std::min(first_, interpolant.parts.back().first());
    last_ = std::max(last_, interpolant.parts.back().last());
    mass_ += part.mass;
  }
  mass_ = std::clamp(mass_, 0.0, 1.0);
  interpolant_ = std::make_shared<Interpolant>(std::move(interpolant));
}

double DiffusionDistribution::to_y(double x) const {
  return chart_ == Chart::correlation ? std::atanh(x) : std::log(x);
}

double DiffusionDistribution::to_x(double y) const {
  return chart_ == Chart::correlation ? std::tanh(y) : std::exp(y);
}

double DiffusionDistribution::cumulative_of_y(double y) const {
  double sum = 0;
  for (const SmoothLaw& part : interpolant_->parts) sum += part.cumulative(y);
  return std::min(sum, mass_);
}

double DiffusionDistribution::cumulative(double x) const {
  if (std::isnan(x)) return x;
  if (chart_ == Chart::correlation && !(std::abs(x) < 1)) return x < 0 ? 0 : mass_;
  if (chart_ == Chart::gap && !(x > 0)) return 0;
  return cumulative_of_y(to_y(x));
}

double DiffusionDistribution::density(double x) const {
  if (std::isnan(x)) return x;
  if (chart_ == Chart::correlation ? !(std::abs(x) < 1) : !(x > 0)) return 0;
  return chart_density(to_y(x)) / (chart_ == Chart::correlation ? 1 - x * x : x);
}

double DiffusionDistribution::chart_density(double y) const {
  if (std::isnan(y)) return y;
  double sum = 0;
  for (const SmoothLaw& part : interpolant_->parts) sum += part.density(y);
  return sum;
}

double DiffusionDistribution::quantile(double p) const { return to_x(chart_quantile(p)); }

double DiffusionDistribution::chart_quantile(double p) const {
  require_probability("DiffusionDistribution::quantile", p, mass_);
  return numerics::bracketed_root([&](double y) { return cumulative_of_y(y) - p; }, first_, last_).value();
}

double DiffusionDistribution::absolute_quantile(double p) const {
  if (chart_ == Chart::gap) return quantile(p);
  require_probability("DiffusionDistribution::absolute_quantile", p, mass_);
  const double end = std::max(std::abs(first_), std::abs(last_));
  return to_x(numerics::bracketed_root([&](double y) { return cumulative_of_y(y) - cumulative_of_y(-y) - p; },
                                       0.0, end)
                  .value());
}

double longest_law_time(const SdeModel& model) {
  // Beyond 600 in units of s T the slow escape of paths below 0 is not resolved for weak bends (section 7.2).
  constexpr double longest = 1e9, longest_with_weak_bend = 600, weak = 0.02;
  const double bend = model.relu_drift * relu_drift_scale(model.slopes);
  const bool lingers = bend > 0 && bend < weak * model.linear_noise;
  return (lingers ? longest_with_weak_bend : longest) / model.linear_noise;
}

double shortest_law_time(const SdeModel& model) { return 1e-16 / model.linear_noise; }

namespace {

void require_within_reach(std::string_view where, const SdeModel& model, double time) {
  require_positive(where, "time", time);
  if (time < shortest_law_time(model))
    throw ArgumentError(fmt::format("{}: time must be at least {:g} for this model, got {:g}", where,
                                    shortest_law_time(model), time));
  if (time > longest_law_time(model))
    throw ArgumentError(fmt::format("{}: time must be at most {:g} for this model, got {:g}", where,
                                    longest_law_time(model), time));
}

}  // namespace

DiffusionDistribution correlation_distribution(const SdeModel& model, double rho0, double time) {
  constexpr std::string_view where = "correlation_distribution";
  require_model(where, model);
  if (model.attention_drift != 0 || !(model.linear_noise > 0))
    throw ArgumentError(
        "correlation_distribution: the correlation is autonomous only without attention and with noise");
  if (!(std::abs(rho0) < 1))
    throw ArgumentError(fmt::format("correlation_distribution: rho0 must lie in (-1, 1), got {}", rho0));
  require_within_reach(where, model, time);
  const CorrelationProcess process{model.relu_drift * relu_drift_scale(model.slopes), model.linear_noise};
  return {DiffusionDistribution::Chart::correlation, late_laws_of(where, process, std::atanh(rho0), time)};
}

DiffusionDistribution gap_distribution(const SdeModel& model, double gap0, double time) {
  constexpr std::string_view where = "gap_distribution";
  const GapProcess gap = gap_process(where, model, gap0);
  require_within_reach(where, model, time);
  const double start = gap.to_u(gap0);
  std::vector<LineDistribution> laws = late_laws_of(where, gap, start, time);
  // This goes from u = log(sqrt(kappa) Delta) to the chart of the distribution, log(Delta).
  for (LineDistribution& law : laws) law.low += std::log(gap0) - start;
  return {DiffusionDistribution::Chart::gap, laws};
}

double explosion_probability(const SdeModel& model, double gap0) {
  const GapProcess gap = gap_process("explosion_probability", model, gap0);
  // Feller's test: a path reaches the wall only for a > 1/2 (docs/theory/covariance-sde.md, section 7.3).
  if (gap.exponent <= 0.5) return 0;
  // The scale function (1 + kappa x^2)^{-a} integrates to an incomplete beta function of x.
  return boost::math::ibeta(0.5, gap.exponent - 0.5, 1 / (1 + std::exp(-2 * gap.to_u(gap0))));
}

double feedforward_growth_variance(ResidualWeights residual, ActivationSlopes slopes, Index width) {
  require_at_least("feedforward_growth_variance", "width", width, 1);
  const double n = static_cast<double>(width), gamma2 = residual.gamma_squared();
  const double lambda2 = residual.lambda() * residual.lambda();
  const double c = slopes.normaliser();
  const double excess = 1.5 * c * c * (std::pow(slopes.plus, 4) + std::pow(slopes.minus, 4)) - 1;
  return (4 * lambda2 * gamma2 + 2 * gamma2 * gamma2 * (1 + excess / n) + gamma2 * gamma2 * excess) / n;
}

double attention_growth_variance(ResidualWeights residual, Index width) {
  require_at_least("attention_growth_variance", "width", width, 1);
  return 2 * residual.gamma_squared() * (2 - residual.gamma_squared()) / static_cast<double>(width);
}

}  // namespace widelimit::covariance_sde

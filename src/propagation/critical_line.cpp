#include "propagation/critical_line.hpp"

#include <algorithm>
#include <cmath>

#include "propagation/arguments.hpp"
#include "propagation/collapsed.hpp"
#include "propagation/roots.hpp"
#include "widelimit/propagation/exponent_at.hpp"

namespace widelimit::propagation {

namespace {

constexpr int gain_steps = 96, logarithmic_steps = 48, linear_steps = 192;
// Beyond the largest strength next to nothing is left of the skip, and exponents vanish by rounding.
constexpr double smallest_strength = 1e-4, linear_from = 1.0 / 64, largest_strength = 0.999;

/// Statistics of the MLP depend on the gain alone, so that a scan over strengths needs them once a gain.
class CriticalLine {
 public:
  CriticalLine(const Parameters& parameters, const ExponentOptions& options)
      : point_{parameter_point(parameters, options)} {
    // Strengths run at the ratio of the given ones, up to the larger of both.
    const double larger = std::max(parameters.alpha_A, parameters.alpha_M);
    unit_A_ = parameters.alpha_A / larger;
    unit_M_ = parameters.alpha_M / larger;
    for (const double gain : gains_) statistics_.push_back(statistics_at(gain));
  }

  /// Least growth of the squared gradient over the network, as ln, among the gains with lambda_a = 0; nothing
  /// if there is no such gain. Leaves the parameters at it.
  std::optional<double> least_growth(double strength) {
    point_.parameters.alpha_A = strength * unit_A_;
    point_.parameters.alpha_M = strength * unit_M_;
    std::optional<double> least;
    double best_gain = 0;
    for (const double gain : critical_gains()) {
      const double growth = point_.options.depth * value_at(Exponent::gradient, gain);
      if (std::isnan(growth) || (least && *least <= growth)) continue;
      least = growth;
      best_gain = gain;
    }
    if (least) point_.parameters.sigma_w = best_gain;
    return least;
  }

  [[nodiscard]] const Parameters& parameters() const { return point_.parameters; }

 private:
  MlpStatistics statistics_at(double gain) {
    point_.parameters.sigma_w = gain;
    return unchecked_mlp_statistics(point_.parameters);
  }

  double value_at(Exponent which, double gain) {
    const MlpStatistics mlp = statistics_at(gain);
    return exponent_at(which, point_, mlp);
  }

  std::vector<double> critical_gains() {
    std::vector<double> values;
    for (std::size_t k = 0; k < gains_.size(); ++k) {
      point_.parameters.sigma_w = gains_[k];
      values.push_back(exponent_at(Exponent::angle, point_, statistics_[k]));
    }
    return roots_between([&](double gain) { return value_at(Exponent::angle, gain); }, gains_, values);
  }

  ParameterPoint point_;
  double unit_A_ = 1, unit_M_ = 1;
  const std::vector<double> gains_ = places_between(lowest_gain, highest_gain, gain_steps);
  std::vector<MlpStatistics> statistics_;
};

/// Even steps in ln, then even steps.
std::vector<double> rising_strengths() {
  std::vector<double> strengths = places_between(smallest_strength, linear_from, logarithmic_steps);
  for (int k = 1; k <= linear_steps; ++k)
    strengths.push_back(linear_from +
                        (largest_strength - linear_from) * static_cast<double>(k) / linear_steps);
  return strengths;
}

}  // namespace

std::optional<Parameters> strongest_on_line(const Parameters& parameters, const ExponentOptions& options,
                                            double tolerance) {
  require_positive("critical_initialisation", "alpha_A", parameters.alpha_A);
  require_positive("critical_initialisation", "alpha_M", parameters.alpha_M);
  CriticalLine line(parameters, options);
  std::optional<double> allowed;
  for (const double strength : rising_strengths()) {
    const std::optional<double> growth = line.least_growth(strength);
    if (growth && *growth <= tolerance) {
      allowed = strength;
    } else if (growth && allowed) {
      const auto excess = [&](double middle) {
        return line.least_growth(middle).value_or(HUGE_VAL) - tolerance;
      };
      // Between the last allowed strength and the first beyond, growth may jump to another branch; then
      // the last allowed one stands.
      line.least_growth(bracketed_root(excess, *allowed, strength).value_or(*allowed));
      return line.parameters();
    }
  }
  if (!allowed) return std::nullopt;
  // Nowhere on the line is the growth too large, so that the given strengths are as good as any.
  const double given = std::max(parameters.alpha_A, parameters.alpha_M);
  if (!line.least_growth(given)) line.least_growth(*allowed);
  return line.parameters();
}

}  // namespace widelimit::propagation

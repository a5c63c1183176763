#include "covariance_sde/line_diffusion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "numerics/count.hpp"
#include "widelimit/error.hpp"

namespace widelimit::covariance_sde {

namespace {

using Complex = std::complex<double>;
using Eigen::Index;

constexpr Index contour_points = 32;
constexpr double displacement_a_substep = 4;  // more would cost the contour digits
/// The most for a whole evolution: some seconds for each of the grids.
constexpr double most_substeps = 4000;
constexpr Index first_intervals = 1024, most_intervals = 1 << 19;
constexpr Index most_work = 1 << 24;  // intervals times substeps, some ten seconds
constexpr double accuracy = 1e-8;
constexpr double order_gain = 10;  // fall of an error of fourth order at half the spacing, with a margin

/// Rates of the walk from each node to its neighbours.
struct Walk {
  std::vector<double> up, down;
};

/// Nodes start + i spacing, i = -below .. above.
struct Nodes {
  Index below, above;
  double spacing;

  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(below + above + 1); }
  [[nodiscard]] double at(double start, std::size_t i) const {
    return start + spacing * static_cast<double>(static_cast<Index>(i) - below);
  }
  [[nodiscard]] Nodes halved() const { return {2 * below, 2 * above, spacing / 2}; }
};

Nodes coarsest_nodes(const LineDiffusion& diffusion) {
  const double spacing = (diffusion.high - diffusion.low) / first_intervals;
  const auto intervals = [&](double length) { return static_cast<Index>(std::ceil(length / spacing)); };
  return {intervals(diffusion.start - diffusion.low), intervals(diffusion.high - diffusion.start), spacing};
}

Walk walk_on(const LineDiffusion& diffusion, const Nodes& nodes) {
  const std::size_t count = nodes.count();
  const double h = nodes.spacing;
  Walk walk{std::vector<double>(count, 0.0), std::vector<double>(count, 0.0)};
  for (std::size_t i = 0; i < count; ++i) {
    const double x = nodes.at(diffusion.start, i);
    const double rate = diffusion.variance(x) / (2 * h * h), log_scale = diffusion.log_scale_density(x);
    if (i + 1 < count)
      walk.up[i] = rate * std::exp(log_scale - diffusion.log_scale_density(x + h / 2));
    else
      // Beyond the last node the scale function rises to the wall by its density over exit_rate, where between nodes it
      // rises by the density times h.
      walk.up[i] = rate * h * diffusion.exit_rate;
    if (i > 0) walk.down[i] = rate * std::exp(log_scale - diffusion.log_scale_density(x - h / 2));
  }
  return walk;
}

/// Resolvents of the walk, with the workspace for them.
class Resolvent {
 public:
  explicit Resolvent(const Walk& walk)
      : walk_{walk}, inverse_pivots_(walk.up.size()), values_(walk.up.size()) {}

  /// u of (z - A) u = p, A the generator of the walk acting on masses. The elimination carries what a pivot has
  /// besides its rate upwards, which never cancels (Grassmann, Taksar & Heyman 1985).
  const std::vector<Complex>& operator()(Complex z, const std::vector<double>& p) {
    const std::size_t count = p.size();
    Complex excess = z;
    inverse_pivots_[0] = 1.0 / (walk_.up[0] + excess);
    values_[0] = p[0];
    for (std::size_t i = 1; i < count; ++i) {
      excess = z + walk_.down[i] * (excess * inverse_pivots_[i - 1]);
      values_[i] = p[i] + walk_.up[i - 1] * (inverse_pivots_[i - 1] * values_[i - 1]);
      inverse_pivots_[i] = 1.0 / (walk_.up[i] + excess);
    }
    values_[count - 1] *= inverse_pivots_[count - 1];
    for (std::size_t i = count - 1; i-- > 0;)
      values_[i] = (values_[i] + walk_.down[i + 1] * values_[i + 1]) * inverse_pivots_[i];
    return values_;
  }

 private:
  const Walk& walk_;
  std::vector<Complex> inverse_pivots_, values_;
};

/// p <- exp(time A) p.
void substep(Resolvent& resolvent, double time, std::vector<double>& p) {
  std::vector<double> next(p.size(), 0.0);
  constexpr double n = contour_points;
  // The other half of the contour are complex conjugates. The numbers are those of the parabola of Trefethen, Weideman
  // and Schmelzer, z = n (0.1309 - 0.1194 theta^2 + 0.25 i theta).
  for (Index k = 0; k < contour_points / 2; ++k) {
    const double theta = (2 * static_cast<double>(k) + 1) * std::numbers::pi / n;
    const Complex z = n * Complex(0.1309 - 0.1194 * theta * theta, 0.25 * theta);
    const Complex weight = std::exp(z) * Complex(-2 * 0.1194 * theta, 0.25) * (2 / time);
    const std::vector<Complex>& u = resolvent(z / time, p);
    for (std::size_t i = 0; i < p.size(); ++i)
      next[i] += weight.real() * u[i].imag() + weight.imag() * u[i].real();
  }
  p = std::move(next);
}

std::vector<double> initial_masses(const LineDiffusion& diffusion, const Nodes& nodes) {
  std::vector<double> p(nodes.count(), 0.0);
  if (diffusion.initial_density)
    for (std::size_t i = 0; i < p.size(); ++i)
      p[i] = nodes.spacing * diffusion.initial_density(nodes.at(diffusion.start, i));
  else
    p[static_cast<std::size_t>(nodes.below)] = 1;
  return p;
}

/// Cumulated to each node with half of its own mass; after them all of the mass.
std::vector<double> cumulated(const LineDiffusion& diffusion, const Nodes& nodes, double time,
                              Index substeps) {
  const Walk walk = walk_on(diffusion, nodes);
  Resolvent resolvent(walk);
  std::vector<double> p = initial_masses(diffusion, nodes);
  for (Index k = 0; k < substeps; ++k) substep(resolvent, time / static_cast<double>(substeps), p);
  double sum = 0;
  for (double& value : p) {
    const double mass = value;
    value = sum + mass / 2;
    sum += mass;
  }
  p.push_back(sum);
  return p;
}

/// Richardson's extrapolation of errors of second order, at the nodes of the coarse grid, which are every other one of
/// the fine grid. The last entry is the whole mass.
std::vector<double> extrapolated(const std::vector<double>& coarse, const std::vector<double>& fine) {
  std::vector<double> result(coarse.size());
  for (std::size_t i = 0; i + 1 < coarse.size(); ++i) result[i] = (4 * fine[2 * i] - coarse[i]) / 3;
  result.back() = (4 * fine.back() - coarse.back()) / 3;
  return result;
}

/// The largest difference at common nodes. A NaN, which cumulated sums pass on to their ends, counts as infinitely far.
double distance(const std::vector<double>& coarse, const std::vector<double>& fine) {
  double largest = std::abs(coarse.back() - fine.back());
  for (std::size_t i = 0; i + 1 < coarse.size(); ++i) {
    const double here = std::abs(coarse[i] - fine[2 * i]);
    if (!(here <= largest)) largest = here;
  }
  return largest;
}

}  // namespace

LineDistribution evolve(std::string_view where, const LineDiffusion& diffusion, double time) {
  const Index substeps = numerics::checked_count(
      std::ceil((1 + diffusion.displacement) / displacement_a_substep), most_substeps,
      fmt::format("{}: substeps to time {:g}, half its displacement in standard deviations squared", where,
                  time));
  Nodes nodes = coarsest_nodes(diffusion);
  std::vector<double> coarse = cumulated(diffusion, nodes, time, substeps), before;
  Index intervals = first_intervals;
  for (; 2 * intervals <= std::min(most_intervals, most_work / substeps);
       intervals *= 2, nodes = nodes.halved()) {
    std::vector<double> fine = cumulated(diffusion, nodes.halved(), time, substeps);
    std::vector<double> result = extrapolated(coarse, fine);
    // The difference is about the error of `before`; that of `result` is smaller by the gain.
    if (!before.empty() && distance(before, result) < order_gain * accuracy) {
      const double mass = result.back();
      result.pop_back();
      return {diffusion.start - nodes.spacing * static_cast<double>(nodes.below), nodes.spacing,
              std::move(result), mass};
    }
    before = std::move(result);
    coarse = std::move(fine);
  }
  throw NumericalError(
      fmt::format("{}: {} nodes do not give the law at time {:g} to {:g}; take another time, or simulate",
                  where, intervals, time, accuracy));
}

}  // namespace widelimit::covariance_sde

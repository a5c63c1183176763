#include "numerics/pair_quadrature.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "numerics/determinant.hpp"
#include "numerics/gaussian_window.hpp"
#include "numerics/normal_density.hpp"

namespace widelimit::numerics {
namespace {

constexpr double spacing = PairQuadrature::spacing;
constexpr std::size_t most_half_nodes = PairQuadrature::most_half_nodes;

double trapezium_node(std::size_t i) {
  return spacing * (static_cast<double>(i) - static_cast<double>(most_half_nodes));
}

const std::array<double, 2 * most_half_nodes + 1>& trapezium_weights() {
  static const auto weights = [] {
    std::array<double, 2 * most_half_nodes + 1> result{};
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = spacing * normal_density(trapezium_node(i));
    return result;
  }();
  return weights;
}

}  // namespace

template <typename Visit>
void PairQuadrature::for_each_outer(double p, double q, double c, const GaussLegendre& rule,
                                    const Visit& visit) const {
  const double product = std::sqrt(p) * std::sqrt(q);
  const double rho = product > 0 ? std::min(std::abs(c) / product, 1.0) : 0;
  // 1 - rho = (1 - rho^2) / (1 + rho), from the determinant, which does not cancel.
  const double sine = product > 0 ? root_determinant(p, q, c) / product : 1;
  const double rest = product > 0 ? std::min(sine * sine / (1 + rho), 1.0) : 1;
  // The sign of c is that of the common part of v.
  const double left_more = window_.wider_at(p, least_window) - least_window,
               right_more = window_.wider_at(q, least_window) - least_window;
  const Side left{std::sqrt(rho * p), std::sqrt(rest * p), least_window + std::sqrt(rest) * left_more};
  const Side right{std::copysign(std::sqrt(rho * q), c), std::sqrt(rest * q),
                   least_window + std::sqrt(rest) * right_more};
  const double window = least_window + std::sqrt(rho) * std::max(left_more, right_more);
  for (double begin = -window; begin < window;) {
    const double end =
        std::min({panel_end(begin, left), panel_end(begin, right), begin + gaussian_panel, window});
    rule.integrate(begin, end, [&](double g, double weight) {
      visit(g, std::sqrt(weight) * root_normal_density(g), left, right);
    });
    begin = end;
  }
}

Dual<double> PairQuadrature::dual(double p, double q, double c, const GaussLegendre& rule) const {
  Dual<double> sum{0, 0};
  for_each_outer(p, q, c, rule, [&](double g, double root, const Side& left, const Side& right) {
    const Dual<double> u = smoothed(left.mean_slope * g, left, rule);
    // With equal variances and c >= 0 both sides are the same function of g.
    const Dual<double> v = p == q && c >= 0 ? u : smoothed(right.mean_slope * g, right, rule);
    sum.value += (root * u.value) * (root * v.value);
    sum.derivative += (root * u.derivative) * (root * v.derivative);
  });
  return sum;
}

namespace {

/// Means of phi, phi', phi'', x phi' and x phi''.
struct SlopeMeans {
  double value = 0, derivative = 0, curvature = 0, tilted_derivative = 0, tilted_curvature = 0;
};

}  // namespace

DualSlopes PairQuadrature::slopes(double p, double q, double c, const GaussLegendre& rule,
                                  const std::function<double(double)>& second_derivative) const {
  const auto means = [&](double g, const Side& side) {
    SlopeMeans sums;
    for_each_inner(side.mean_slope * g, side, rule, [&](double x, double mass) {
      const double derivative = mass * phi_.derivative(x), curvature = mass * second_derivative(x);
      sums.value += mass * phi_.value(x);
      sums.derivative += derivative;
      sums.curvature += curvature;
      sums.tilted_derivative += x * derivative;
      sums.tilted_curvature += x * curvature;
    });
    return sums;
  };
  DualSlopes all{};
  for_each_outer(p, q, c, rule, [&](double g, double root, const Side& left, const Side& right) {
    const SlopeMeans u = means(g, left), v = p == q && c >= 0 ? u : means(g, right);
    const auto product = [root](double one, double other) { return (root * one) * (root * other); };
    all.dual.value += product(u.value, v.value);
    all.dual.derivative += product(u.derivative, v.derivative);
    all.derivative_in_c += product(u.curvature, v.curvature);
    all.left.value += product(u.tilted_derivative, v.value);
    all.right.value += product(v.tilted_derivative, u.value);
    all.left.derivative += product(u.tilted_curvature, v.derivative);
    all.right.derivative += product(v.tilted_curvature, u.derivative);
  });
  // Stein's lemma: E[u phi'(u) phi(v)] = 2p f_p + c g, and likewise 2p g_p + c g_c for phi''
  // (docs/theory/derivatives.md).
  const auto without_c = [&](Dual<double>& side, double variance) {
    const double over = variance > 0 ? 1 / (2 * variance) : 0;
    side.value = (side.value - c * all.dual.derivative) * over;
    side.derivative = (side.derivative - c * all.derivative_in_c) * over;
  };
  without_c(all.left, p);
  without_c(all.right, q);
  all.value_in_c = all.dual.derivative;
  return all;
}

template <typename Add>
void PairQuadrature::for_each_inner(double mean, const Side& side, const GaussLegendre& rule,
                                    const Add& add) const {
  const double deviation = side.deviation, reach = side.window * deviation;
  if (deviation == 0) return add(mean, 1.0);
  // The trapezium rule converges geometrically if phi is analytic around the window; near kinks
  // and poles panels are needed.
  if (!trapezium_resolves(mean - reach, mean + reach, deviation))
    return for_each_in_panels(mean, side, rule, add);
  const auto half_nodes = std::min(static_cast<std::size_t>(side.window / spacing), most_half_nodes);
  for (std::size_t i = most_half_nodes - half_nodes; i <= most_half_nodes + half_nodes; ++i) {
    const double x = mean + deviation * trapezium_node(i);
    // Past the mesh, where phi may overflow, lies less than the window leaves out.
    if (std::abs(x) <= mesh_.reach()) add(x, trapezium_weights()[i]);
  }
}

template <typename Add>
void PairQuadrature::for_each_in_panels(double mean, const Side& side, const GaussLegendre& rule,
                                        const Add& add) const {
  const double deviation = side.deviation;
  const double begin = mean - side.window * deviation, end = mean + side.window * deviation;
  const auto weigh = [&](double x, double weight) {
    add(x, weight * normal_density((x - mean) / deviation) / deviation);
  };
  for (std::size_t i = mesh_.find(begin); i + 1 < mesh_.edges().size() && mesh_.edges()[i] < end; ++i) {
    const double from = std::max(begin, mesh_.edges()[i]);
    const double to = std::min(end, mesh_.edges()[i + 1]);
    const double parts = std::ceil((to - from) / (gaussian_panel * deviation));
    for (int part = 0; part < parts; ++part)
      rule.integrate(from + (to - from) * part / parts, from + (to - from) * (part + 1) / parts, weigh);
  }
}

Dual<double> PairQuadrature::smoothed(double mean, const Side& side, const GaussLegendre& rule) const {
  const bool differentiates = phi_.has_derivative_dual();
  if (side.deviation == 0) return {phi_.value(mean), differentiates ? phi_.derivative(mean) : 0};
  Dual<double> sum{0, 0};
  for_each_inner(mean, side, rule, [&](double x, double mass) {
    sum.value += mass * phi_.value(x);
    if (differentiates) sum.derivative += mass * phi_.derivative(x);
  });
  return sum;
}

bool PairQuadrature::trapezium_resolves(double begin, double end, double deviation) const {
  const auto breakpoint = std::lower_bound(mesh_.breakpoints().begin(), mesh_.breakpoints().end(), begin);
  if (breakpoint != mesh_.breakpoints().end() && *breakpoint <= end) return false;
  for (std::size_t i = mesh_.find(begin); i + 1 < mesh_.edges().size() && mesh_.edges()[i] < end; ++i)
    if (mesh_.width(i) < panel_per_deviation * deviation) return false;
  return true;
}

/// How far a panel of the outer rule may reach from g, looking at one side: to the end of the mesh panel or
/// three widths of the smoothing, whichever is further; towards a breakpoint, and from it, panels shrink
/// geometrically down to those three widths.
double PairQuadrature::panel_end(double g, const Side& side) const {
  const double slope = std::abs(side.mean_slope);
  if (slope == 0) return std::numeric_limits<double>::infinity();
  // The walk is along x = slope * g; a negative slope walks the mirrored mesh. The nudge keeps an edge that
  // rounding put just ahead of g from making a panel of its own.
  const double nudge = 1e-12 * slope;
  const double x = slope * g;
  const double mirror = side.mean_slope < 0 ? -1 : 1;
  const std::size_t panel = mesh_.find(mirror * (x + nudge));
  const double panel_edge = mirror > 0 ? mesh_.edges()[panel + 1] : -mesh_.edges()[panel];
  const double least = std::max(3 * side.deviation, 10 * nudge);
  double end = std::max(panel_edge, x + least);
  for (const double breakpoint : mesh_.breakpoints()) {
    const double distance = mirror * breakpoint - x;
    if (side.deviation == 0) {
      if (distance > nudge) end = std::min(end, mirror * breakpoint);
    } else if (distance > nudge) {
      end = std::min(end, distance <= 2 * least ? mirror * breakpoint : x + std::max(least, distance / 2));
    } else {
      end = std::min(end, x + std::max(least, -distance));
    }
  }
  return std::max(end / slope, g + 1e-12);
}

}  // namespace widelimit::numerics

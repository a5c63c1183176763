#include "numerics/smooth_mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "numerics/gauss_legendre.hpp"
#include "widelimit/error.hpp"

namespace widelimit::numerics {
namespace {

constexpr double resolution = 1e-9;  // size of the last Legendre coefficients of a panel
/// The same, relative to the panel's own values, where these exceed all that are nearer to 0.
constexpr double growing_resolution = 1e-7;
constexpr double slope_agreement = 1e-7;  // between phi' integrated and phi's rise
constexpr std::size_t most_panels = 1 << 14;
constexpr double cusp_place = 1e-11;      // to which cusps are known that nobody declared
constexpr double cusp_derivative = 1e-2;  // so close no rule integrates phi'
constexpr double least_reach = 64;        // where phi must be smooth and phi' its derivative
constexpr int last_shell = 40;            // the mesh ends at 2^40, standard deviations of 8e10

struct Sizes {
  double value = 0;
  double derivative = 0;
};

/// What the values of a function in a panel say of its series.
struct PanelSeries {
  double tail = 0;  ///< The larger of the last two coefficients of the interpolating Legendre series.
  double size = 0;  ///< The largest value.

  [[nodiscard]] bool is_resolved(double shell_size, double inner_size) const {
    return tail <= resolution * shell_size &&
           tail <= std::max(resolution * inner_size, growing_resolution * size);
  }
};

/// A panel's polynomial has degree 14. Shells that phi cannot be resolved in end the mesh, see is_resolved().
/// Panels from 0 outwards in shells [0,1], [1,2], [2,4], ... on both sides, each bisected until phi is
/// resolved relative to its largest size so far: values far out in a decaying tail need no digits of their
/// own. Of a growing function the outer part of a shell may be so rare that the inner part counts: that is resolved
/// relative to its own values too.
class MeshBuilder {
 public:
  MeshBuilder(const SmoothFunction& phi, const std::vector<double>& breakpoints)
      : phi_{phi}, breakpoints_{breakpoints} {}

  /// Edges in ascending order, as far as `farthest`. The first shell must succeed.
  std::vector<double> edges(double farthest) {
    edges_ = {0};
    double inner = 0;
    for (int shell = 0; shell <= last_shell; ++shell) {
      // [0, 1] is always meshed, so that a mesh exists for any reach.
      const double outer = std::ldexp(1.0, shell);
      if (outer > farthest && shell > 0) break;
      if (!add_whole_shell(inner, outer)) {
        add_parts(inner, outer);
        break;
      }
      inner = outer;
    }
    if (inner == 0) throw ArgumentError(phi_.name + ": phi and its derivative must be finite within [-1, 1]");
    std::sort(edges_.begin(), edges_.end());
    return edges_;
  }

 private:
  bool add_whole_shell(double inner, double outer) {
    const Sizes before = sizes_;
    std::vector<double> attempt = edges_;
    if (!is_resolved(inner, outer, attempt)) {
      sizes_ = before;
      return false;
    }
    edges_ = std::move(attempt);
    return true;
  }

  /// A function that overflows in a shell is followed to 15/16 of the way at most: what grows has its energy far out.
  void add_parts(double inner, double outer) {
    if (inner == 0 || (is_finite(outer) && is_finite(-outer))) return;
    double reached = inner;
    for (double part = (outer - inner) / 2; part >= (outer - inner) / 16; part /= 2) {
      try {
        if (add_whole_shell(reached, reached + part)) reached += part;
      } catch (const ArgumentError&) {
        return;  // So near to the overflow nothing is required of phi.
      }
    }
  }

  [[nodiscard]] bool is_finite(double x) const {
    return std::isfinite(phi_.value(x)) && (!phi_.has_derivative_dual() || std::isfinite(phi_.derivative(x)));
  }

  /// Far out the rounding of phi, or what nobody's variances reach, ends
  /// the mesh before this shell; nearer it is an error.
  bool is_resolved(double inner, double outer, std::vector<double>& edges) {
    try {
      return add_shell(inner, outer, edges);
    } catch (const ArgumentError&) {
      if (inner < least_reach) throw;
      return false;
    }
  }

  /// False where phi overflows or would need too many panels: the mesh ends before this shell.
  bool add_shell(double inner, double outer, std::vector<double>& edges) {
    // sizes_ is kept unless the whole shell is finite.
    Sizes sizes = sizes_;
    for (const double side : {1.0, -1.0}) {
      for (const double x : gauss_legendre_15().nodes) {
        const double at = side * ((inner + outer) / 2 + (outer - inner) / 2 * x);
        const double value = phi_.value(at);
        const double derivative = phi_.has_derivative_dual() ? phi_.derivative(at) : 0;
        if (!std::isfinite(value) || !std::isfinite(derivative)) return false;
        sizes.value = std::max(sizes.value, std::abs(value));
        sizes.derivative = std::max(sizes.derivative, std::abs(derivative));
      }
    }
    inner_sizes_ = inner == 0 ? sizes : sizes_;
    sizes_ = sizes;
    return add_side(inner, outer, edges) && add_side(-outer, -inner, edges);
  }

  /// 0 is an edge already; the outer end of the side is new.
  bool add_side(double begin, double end, std::vector<double>& edges) {
    edges.push_back(std::abs(end) > std::abs(begin) ? end : begin);
    double from = begin;
    for (const double at : breakpoints_) {
      if (at <= begin || at >= end) continue;
      edges.push_back(at);
      if (!add_piece(from, at, edges)) return false;
      from = at;
    }
    return add_piece(from, end, edges);
  }

  /// Bisects [begin, end] and adds the edges within.
  bool add_piece(double begin, double end, std::vector<double>& edges) {
    const Fit fit = judge(begin, end);
    if (fit == Fit::NotFinite || edges.size() > most_panels) return false;
    if (fit == Fit::Resolved) {
      require_derivative(begin, end);
      return true;
    }
    const double middle = begin + (end - begin) / 2;
    // Bisection ends near the rounding of places: a panel as narrow as that is beside a singularity.
    if (end - begin < 1e-13 * std::max(std::abs(begin), std::abs(end)) || end - begin < 1e-18) {
      // Towards a declared breakpoint or a cusp panels may shrink without end: nothing smooth is left to resolve.
      if (touches_breakpoint(begin) || touches_breakpoint(end) || is_beside_cusp(begin, end, cusp_place))
        return true;
      throw ArgumentError(fmt::format(
          "{}: phi or its derivative is not smooth near {:.6g}: declare kinks and jumps as breakpoints",
          phi_.name, middle));
    }
    edges.push_back(middle);
    return add_piece(begin, middle, edges) && add_piece(middle, end, edges);
  }

  [[nodiscard]] bool touches_breakpoint(double x) const {
    return std::binary_search(breakpoints_.begin(), breakpoints_.end(), x);
  }

  enum class Fit { Resolved, Coarse, NotFinite };

  [[nodiscard]] Fit judge(double begin, double end) const {
    const PanelSeries value = series_of(phi_.value, begin, end);
    const PanelSeries derivative =
        phi_.has_derivative_dual() ? series_of(phi_.derivative, begin, end) : PanelSeries{};
    if (!std::isfinite(value.tail) || !std::isfinite(derivative.tail)) return Fit::NotFinite;
    const bool resolved = value.is_resolved(sizes_.value, inner_sizes_.value) &&
                          derivative.is_resolved(sizes_.derivative, inner_sizes_.derivative);
    return resolved ? Fit::Resolved : Fit::Coarse;
  }

  static PanelSeries series_of(const std::function<double(double)>& f, double begin, double end) {
    const GaussLegendre& rule = gauss_legendre_15();
    const auto& [last_weights, before_last_weights] = tail_weights();
    double last = 0, before_last = 0, size = 0;
    for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
      const double value = f((begin + end) / 2 + (end - begin) / 2 * rule.nodes[i]);
      last += last_weights[i] * value;
      before_last += before_last_weights[i] * value;
      size = std::max(size, std::abs(value));
    }
    return {std::max(std::abs(last), std::abs(before_last)), size};
  }

  /// Coefficient k of a function f is sum_i (k + 1/2) weight_i P_k(x_i) f(x_i).
  static const std::array<std::vector<double>, 2>& tail_weights() {
    static const auto weights = [] {
      // Orders 14 and 13: one of them can vanish by symmetry.
      const GaussLegendre& rule = gauss_legendre_15();
      std::array<std::vector<double>, 2> result;
      for (unsigned back = 0; back < 2; ++back) {
        const auto order = static_cast<unsigned>(rule.nodes.size() - 1 - back);
        for (std::size_t i = 0; i < rule.nodes.size(); ++i)
          result[back].push_back((order + 0.5) * rule.weights[i] * std::legendre(order, rule.nodes[i]));
      }
      return result;
    }();
    return weights;
  }

  /// Within this share of max(1, |cusp|).
  [[nodiscard]] bool is_beside_cusp(double begin, double end, double share) const {
    return std::any_of(phi_.cusps.begin(), phi_.cusps.end(), [&](double cusp) {
      const double distance = share * std::max(1.0, std::abs(cusp));
      return begin < cusp + distance && end > cusp - distance;
    });
  }

  /// Compares phi' with phi by integrating it between the outermost nodes of the panel.
  void require_derivative(double begin, double end) const {
    if (is_beside_cusp(begin, end, cusp_derivative)) return;
    const GaussLegendre& rule = gauss_legendre_15();
    const double from = (begin + end) / 2 + (end - begin) / 2 * rule.nodes.front();
    const double to = (begin + end) / 2 + (end - begin) / 2 * rule.nodes.back();
    double integral = 0;
    double length = 0;
    rule.integrate(from, to, [&](double x, double weight) {
      const double slope = phi_.derivative(x);
      integral += weight * slope;
      length += weight * std::abs(slope);
    });
    const double rise = phi_.value(to) - phi_.value(from);
    if (std::abs(rise - integral) <= slope_agreement * std::max(length, sizes_.value)) return;
    throw ArgumentError(fmt::format(
        "{}: the derivative, given or taken by differences, is not that of phi: from {:.6g} to {:.6g} phi "
        "rises by {:.9g}, but its derivative integrates to {:.9g}; give the derivative of phi, and the "
        "places "
        "where it is not smooth",
        phi_.name, from, to, rise, integral));
  }

  const SmoothFunction& phi_;
  const std::vector<double>& breakpoints_;
  std::vector<double> edges_;
  Sizes sizes_;        ///< As far as the outer end of the shell.
  Sizes inner_sizes_;  ///< As far as its inner end.
};

std::vector<Jump> find_jumps(const SmoothFunction& phi, const std::vector<double>& breakpoints) {
  std::vector<Jump> jumps;
  for (const double at : breakpoints) {
    const double step = 4 * std::numeric_limits<double>::epsilon() * std::max(1.0, std::abs(at));
    const double before = phi.value(at - step);
    const double after = phi.value(at + step);
    // phi' on both sides bounds how much a function without a jump could rise over the distance of the two places.
    const double slopes = std::abs(phi.derivative(at - step)) + std::abs(phi.derivative(at + step));
    const double smooth_rise = 1e-10 * std::max(std::abs(before), std::abs(after)) + 4 * step * slopes;
    if (std::abs(after - before) > smooth_rise) jumps.push_back({at, after - before});
  }
  return jumps;
}

/// Parity of phi', seen at all nodes of the mesh. phi itself is then odd or even up to a constant and a linear term.
Parity find_parity(const SmoothFunction& phi, const std::vector<double>& edges) {
  bool even = true;
  bool odd_plus_constant = true;
  // For an odd phi' plus a constant the sum at x and -x is twice the constant everywhere.
  const double twice_constant = phi.derivative(1) + phi.derivative(-1);
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    gauss_legendre_15().integrate(edges[i], edges[i + 1], [&](double x, double) {
      const double here = phi.derivative(x);
      const double mirrored = phi.derivative(-x);
      const double tolerance = 8 * std::numeric_limits<double>::epsilon() *
                               std::max({std::abs(here), std::abs(mirrored), std::abs(twice_constant)});
      even = even && std::abs(here - mirrored) <= tolerance;
      odd_plus_constant = odd_plus_constant && std::abs(here + mirrored - twice_constant) <= tolerance;
    });
  }
  if (even) return Parity::Even;
  return odd_plus_constant ? Parity::OddPlusConstant : Parity::None;
}

}  // namespace

std::vector<double> sorted_breakpoints(std::vector<double> breakpoints, const std::string& name) {
  for (std::size_t i = 0; i < breakpoints.size(); ++i)
    if (!std::isfinite(breakpoints[i]))
      throw ArgumentError(
          fmt::format("{}: breakpoints[{}] must be a finite number, got {}", name, i, breakpoints[i]));
  for (double& breakpoint : breakpoints) breakpoint += 0.0;  // -0 and 0 are one breakpoint
  std::sort(breakpoints.begin(), breakpoints.end());
  breakpoints.erase(std::unique(breakpoints.begin(), breakpoints.end()), breakpoints.end());
  return breakpoints;
}

SmoothMesh::SmoothMesh(const SmoothFunction& phi, const std::vector<double>& breakpoints, double farthest)
    : breakpoints_{sorted_breakpoints(breakpoints, phi.name)} {
  edges_ = MeshBuilder{phi, breakpoints_}.edges(farthest);
  if (!phi.has_derivative_dual()) return;
  jumps_ = find_jumps(phi, breakpoints_);
  if (jumps_.empty()) parity_ = find_parity(phi, edges_);
}

std::size_t SmoothMesh::find(double x) const {
  // Both ends are clamped: a place outside of the mesh counts to the outermost panel.
  const auto above = std::upper_bound(edges_.begin(), edges_.end() - 1, x);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(above - edges_.begin(), 1)) - 1;
}

}  // namespace widelimit::numerics

#include "numerics/energy_window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "numerics/gauss_legendre.hpp"
#include "numerics/gaussian_window.hpp"
#include "numerics/normal_density.hpp"
#include "widelimit/error.hpp"

namespace widelimit::numerics {
namespace {

constexpr double log_energy_share = -50.656872045869;  // log(1e-22)
constexpr double no_window = std::numeric_limits<double>::infinity();

}  // namespace

double VarianceGrid::place(double variance) {
  return (std::log2(variance) - first_exponent) * pieces_per_exponent;
}

double VarianceGrid::log2_begin(std::size_t piece) {
  return first_exponent + static_cast<double>(piece) / pieces_per_exponent;
}

EnergyWindow::EnergyWindow(const SmoothFunction& phi, const SmoothMesh& mesh)
    : phi_{phi},
      mesh_{mesh},
      is_infinite_{outgrows_gaussians(phi.value) ||
                   outgrows_gaussians([&phi](double x) { return phi.value(-x); })} {}

double EnergyWindow::at(double variance) const {
  if (variance == 0) return least_window;
  const double place = VarianceGrid::place(variance);
  if (place >= 0 && place < static_cast<double>(VarianceGrid::pieces)) {
    const auto piece = static_cast<std::size_t>(place);
    const double window = of_piece(piece);
    if (window == least_window) return window;
    // One |x| serves the whole piece.
    if (window < no_window)
      return std::min(window * std::sqrt(std::exp2(VarianceGrid::log2_begin(piece + 1)) / variance),
                      widest_window);
  }
  const double window = find(variance);
  if (!(window < no_window)) refuse(variance);
  return window;
}

double EnergyWindow::wider_at(double variance, double least) const {
  constexpr double wider = 1.1;
  const double window = at(variance);
  const double wanted = std::max(window > least_window ? wider * window : window, least);
  // The mesh holds the window itself.
  return std::max(window, std::min({wanted, widest_window, mesh_.reach() / std::sqrt(variance)}));
}

bool EnergyWindow::covers(std::size_t piece) const { return of_piece(piece) < no_window; }

double EnergyWindow::of_piece(std::size_t index) const {
  Piece& piece = pieces_[index];
  std::call_once(piece.made, [&] { piece.window = find(std::exp2(VarianceGrid::log2_begin(index + 1))); });
  return piece.window;
}

double EnergyWindow::find(double variance) const {
  const double deviation = std::sqrt(variance);
  if (is_infinite_ || !(least_window * deviation <= mesh_.reach())) return no_window;
  const Dual<double> energy = energies(deviation);
  if (!std::isfinite(energy.value) || !std::isfinite(energy.derivative)) return no_window;
  if (is_rare(deviation, energy.value)) return no_window;
  const auto window_of = [&](const std::function<double(double)>& f, double total) {
    // What is 0 has nothing past any window, nor has what is too small for a double.
    if (total == 0) return least_window;
    return gaussian_window([&](double z) { return 2 * std::log(std::abs(f(deviation * z))); },
                           std::log(total) + log_energy_share);
  };
  double window = window_of(phi_.value, energy.value);
  if (phi_.has_derivative_dual()) window = std::max(window, window_of(phi_.derivative, energy.derivative));
  return window * deviation <= mesh_.reach() ? window : no_window;
}

Dual<double> EnergyWindow::energies(double deviation) const {
  Dual<double> sum{0, 0};
  // The root of the density comes to phi before it is squared, which could overflow.
  const auto add = [&](double z, double weight) {
    const double root = std::sqrt(weight) * root_normal_density(z);
    const double value = root * phi_.value(deviation * z);
    sum.value += value * value;
    if (!phi_.has_derivative_dual()) return;
    const double derivative = root * phi_.derivative(deviation * z);
    sum.derivative += derivative * derivative;
  };
  const double end = std::min(mesh_.reach(), widest_window * deviation);
  const std::vector<double>& edges = mesh_.edges();
  constexpr double resolved_panel = 3;  // standard deviations
  for (std::size_t i = mesh_.find(-end); i + 1 < edges.size() && edges[i] < end; ++i) {
    const double from = std::max(edges[i], -end) / deviation, to = std::min(edges[i + 1], end) / deviation;
    const double parts = std::ceil((to - from) / resolved_panel);
    for (int part = 0; part < parts; ++part)
      gauss_legendre_15().integrate(from + (to - from) * part / parts,
                                    from + (to - from) * (part + 1) / parts, add);
  }
  return sum;
}

bool EnergyWindow::is_rare(double deviation, double energy) const {
  constexpr double near = 6;
  constexpr int places = 256;
  if (energy == 0) return false;
  for (int k = -places; k <= places; ++k)
    if (phi_.value(near * deviation * k / places) != 0) return false;
  return true;
}

void EnergyWindow::refuse(double variance) const {
  constexpr const char* advice = "use smaller weight variances, or normalise before this layer";
  if (const double deviation = std::sqrt(variance);
      !is_infinite_ && is_rare(deviation, energies(deviation).value))
    throw NumericalError(
        fmt::format("{}: for u of variance {:.6g} phi is 0 within six standard deviations, so that E "
                    "phi(u)^2 cannot be had "
                    "to 1e-10; use larger weight variances",
                    phi_.name, variance));
  if (is_infinite_)
    throw NumericalError(fmt::format(
        "{}: E phi(u)^2 is infinite for u of variance {:.6g}, and of any other: phi grows faster than every "
        "exp(a x^2); bound it",
        phi_.name, variance));
  const double needed = least_window * std::sqrt(variance);
  if (!(needed <= mesh_.reach()))
    throw NumericalError(fmt::format(
        "{}: phi could be resolved for |x| <= {:.6g} only, a variance of {:.6g} needs at least {:.6g}: {}",
        phi_.name, mesh_.reach(), variance, needed, advice));
  throw NumericalError(fmt::format(
      "{}: for u of variance {:.6g} E phi(u)^2 or E phi'(u)^2 is infinite, beyond the range of double, or "
      "not to be "
      "had to 1e-10, because phi grows too fast: phi could be resolved for |x| <= {:.6g} only; {}",
      phi_.name, variance, mesh_.reach(), advice));
}

}  // namespace widelimit::numerics

#pragma once

#include <cstddef>
#include <functional>

#include "numerics/energy_window.hpp"
#include "numerics/gauss_legendre.hpp"
#include "numerics/smooth_mesh.hpp"
#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// Dual activations by nested one-dimensional rules; refers to a function, its mesh and its window, which must outlive
/// it.
///
/// With rho = |c| / sqrt(pq) and independent standard normals g, x, y, u = sqrt(rho p) g + sqrt((1 - rho) p)
/// x and, up to the sign of c, v likewise: E[phi(u) phi(v)] = E_g[M_u(g) M_v(g)], M = phi smoothed over the
/// width sqrt((1 - rho) p). The split is symmetric, both inner means share the outer node, and perfect
/// correlation needs no inner mean.
///
/// Where u reaches W standard deviations out (EnergyWindow) and x and g are N(0, 1) given nothing else, g reaches
/// sqrt(rho) (W - 10) further out than its own 10, and x likewise: given u / sqrt(p) = t, g has the mean sqrt(rho) t
/// and the variance 1 - rho.
class PairQuadrature {
 public:
  /// Standard deviations that 15 Gauss points resolve to 1e-16.
  static constexpr double gaussian_panel = 3.5;
  /// Of the trapezium rule, in standard deviations: aliasing exp(-2 pi^2 / h^2) = 5e-21.
  static constexpr double spacing = 0.65;
  static constexpr std::size_t most_half_nodes = 80;  ///< spacing * most_half_nodes ~ widest_window
  /// Singularities of phi are 0.9 panel widths away (SmoothMesh); the trapezium rule errs by exp(-2 pi distance /
  /// spacing).
  static constexpr double panel_per_deviation = 4.1;

  PairQuadrature(const SmoothFunction& phi, const SmoothMesh& mesh, const EnergyWindow& window)
      : phi_{phi}, mesh_{mesh}, window_{window} {}

  /// NumericalError for p and q as of EnergyWindow. The
  /// derivative is 0 of functions without a derivative dual.
  [[nodiscard]] Dual<double> dual(double p, double q, double c, const GaussLegendre& rule) const;

  /// The same with slopes, phi being smooth and phi'' given: E[phi'' phi''] for that of the derivative in c, and
  /// Stein's lemma, E[u F(u) G(v)] = p E[F' G] + c E[F G'], for those in p and q, with F = phi' and phi''.
  [[nodiscard]] DualSlopes slopes(double p, double q, double c, const GaussLegendre& rule,
                                  const std::function<double(double)>& second_derivative) const;

 private:
  /// x = mean_slope * g with a smoothing of the given standard deviation around it, over so many of them.
  struct Side {
    double mean_slope;
    double deviation;
    double window;
  };

  /// Calls visit(g, root, left, right) for the nodes of the outer rule, root^2 being the mass of a node.
  template <typename Visit>
  void for_each_outer(double p, double q, double c, const GaussLegendre& rule, const Visit& visit) const;

  /// Calls add(x, mass) for the nodes of an inner mean.
  template <typename Add>
  void for_each_inner(double mean, const Side& side, const GaussLegendre& rule, const Add& add) const;
  template <typename Add>
  void for_each_in_panels(double mean, const Side& side, const GaussLegendre& rule, const Add& add) const;

  [[nodiscard]] Dual<double> smoothed(double mean, const Side& side, const GaussLegendre& rule) const;
  [[nodiscard]] bool trapezium_resolves(double begin, double end, double deviation) const;
  [[nodiscard]] double panel_end(double g, const Side& side) const;

  const SmoothFunction& phi_;
  const SmoothMesh& mesh_;
  const EnergyWindow& window_;
};

}  // namespace widelimit::numerics

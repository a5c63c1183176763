#pragma once

#include <cstddef>

#include "numerics/gauss_legendre.hpp"
#include "numerics/smooth_mesh.hpp"
#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// Dual activations by nested one-dimensional rules; refers to a function and its mesh, which must outlive
/// it.
///
/// With rho = |c| / sqrt(pq) and independent standard normals g, x, y, u = sqrt(rho p) g + sqrt((1 - rho) p)
/// x and, up to the sign of c, v likewise: E[phi(u) phi(v)] = E_g[M_u(g) M_v(g)], M = phi smoothed over the
/// width sqrt((1 - rho) p). The split is symmetric, both inner means share the outer node, and perfect
/// correlation needs no inner mean.
class PairQuadrature {
 public:
  PairQuadrature(const SmoothFunction& phi, const SmoothMesh& mesh) : phi_{phi}, mesh_{mesh} {}

  /// NumericalError where sqrt(p) or sqrt(q) is beyond the mesh.
  [[nodiscard]] Dual<double> dual(double p, double q, double c, const GaussLegendre& rule) const;

 private:
  /// x = mean_slope * g with a smoothing of the given standard deviation around it.
  struct Side {
    double mean_slope;
    double deviation;
  };

  [[nodiscard]] Dual<double> smoothed(double mean, double deviation, const GaussLegendre& rule) const;
  [[nodiscard]] bool trapezium_resolves(double begin, double end, double deviation) const;
  [[nodiscard]] Dual<double> smoothed_by_panels(double mean, double deviation,
                                                const GaussLegendre& rule) const;
  [[nodiscard]] double panel_end(double g, const Side& side) const;
  void require_reach(double deviation) const;

  const SmoothFunction& phi_;
  const SmoothMesh& mesh_;
};

}  // namespace widelimit::numerics

#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "numerics/smooth_mesh.hpp"

namespace widelimit::numerics {

/// What the Hermite series needs of a position with variance p, from a fixed number of stored orders k_0 <
/// k_1 < ... (orders that vanish by parity are left out). h_k are the normalised Hermite polynomials, z
/// standard normal.
///
/// A flat array of stride() numbers: [0] E phi, [1] E phi'^2, [2] E phi^2, then d_k = E[phi'(sqrt(p) z)
/// h_k(z)] for each stored k, then, where phi jumps, e_k = d_k + the part of the jumps, so that E[phi(sqrt(p)
/// z) h_{k+1}(z)] = sqrt(p / (k+1)) e_k.
class MehlerTable {
 public:
  static constexpr std::size_t stored_orders = 64;
  static constexpr std::size_t first_coefficient = 3;

  /// Refers to the function and the mesh, which must outlive it.
  MehlerTable(const SmoothFunction& phi, const SmoothMesh& mesh);

  [[nodiscard]] std::size_t stride() const { return stride_; }
  [[nodiscard]] bool has_jumps() const { return !mesh_.jumps().empty(); }

  /// The stored order j, also one past the last.
  [[nodiscard]] std::size_t order(std::size_t j) const;

  /// Fills stride() numbers. Between 2^-42 and 2^21 from Chebyshev interpolation in log p, made when first
  /// needed; outside by quadrature. A variance of 0 gives phi(0) and phi'(0). NumericalError for a variance
  /// beyond the mesh.
  void coefficients(double variance, std::span<double> out) const;

 private:
  static constexpr int first_exponent = -42;
  static constexpr int exponents_per_piece = 3;
  static constexpr std::size_t pieces = 21;
  static constexpr std::size_t chebyshev_nodes = 24;

  /// [chebyshev order][stride] on log2 p in one interval of three exponents.
  struct Piece {
    std::once_flag made;
    std::vector<double> series;
  };

  [[nodiscard]] std::vector<double> make_series(double lowest_log) const;
  void integrate(double variance, std::span<double> out) const;
  void add_node(double z, double mass, double value, double derivative, std::span<double> out) const;
  void add_jumps(double deviation, std::span<double> out) const;

  const SmoothFunction& phi_;
  const SmoothMesh& mesh_;
  std::size_t stride_;
  std::vector<double> up_;  // h_{k+1} = up_[k] z h_k - down_[k] h_{k-1}
  std::vector<double> down_;
  mutable std::array<Piece, pieces> pieces_;
};

}  // namespace widelimit::numerics

#include "numerics/mehler_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "numerics/gauss_legendre.hpp"
#include "widelimit/error.hpp"

namespace widelimit::numerics {
namespace {

constexpr double window =
    13;  // standard deviations; the root of the density, all that h_k leaves, is 4e-19 there
constexpr double hermite_panel =
    1.0;  // standard deviations; h_127 has 1.8 periods in it, 15 Gauss points resolve 2.5

double density(double z) { return std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2; }

}  // namespace

MehlerTable::MehlerTable(const SmoothFunction& phi, const SmoothMesh& mesh)
    : phi_{phi}, mesh_{mesh}, stride_{first_coefficient + stored_orders * (mesh.jumps().empty() ? 1 : 2)} {
  for (std::size_t k = 0; k < order(stored_orders); ++k) {
    const auto above = static_cast<double>(k + 1);
    up_.push_back(1 / std::sqrt(above));
    down_.push_back(std::sqrt((above - 1) / above));
  }
}

std::size_t MehlerTable::order(std::size_t j) const {
  switch (mesh_.parity()) {
    case Parity::Even:
      return 2 * j;
    case Parity::OddPlusConstant:
      return j == 0 ? 0 : 2 * j - 1;
    case Parity::None:
      break;
  }
  return j;
}

void MehlerTable::coefficients(double variance, std::span<double> out) const {
  if (variance == 0) {
    const double value = phi_.value(0);
    const double derivative = phi_.derivative(0);
    std::fill(out.begin(), out.end(), 0.0);
    out[0] = value;
    out[1] = derivative * derivative;
    out[2] = value * value;
    out[first_coefficient] = derivative;
    return;
  }
  const double place = (std::log2(variance) - first_exponent) / exponents_per_piece;
  if (!(place >= 0 && place < static_cast<double>(pieces))) return integrate(variance, out);
  const auto index = static_cast<std::size_t>(place);
  Piece& piece = pieces_[index];
  std::call_once(piece.made, [&] {
    piece.series = make_series(first_exponent + exponents_per_piece * static_cast<double>(index));
  });
  const double x = 2 * (place - static_cast<double>(index)) - 1;
  std::copy_n(piece.series.begin(), stride_, out.begin());
  double before = 1;
  double chebyshev = x;
  for (std::size_t m = 1; m < chebyshev_nodes; ++m) {
    const double* const row = piece.series.data() + m * stride_;
    for (std::size_t k = 0; k < stride_; ++k) out[k] += chebyshev * row[k];
    const double next = 2 * x * chebyshev - before;
    before = chebyshev;
    chebyshev = next;
  }
}

std::vector<double> MehlerTable::make_series(double lowest_log) const {
  std::vector<double> series(chebyshev_nodes * stride_, 0.0);
  std::vector<double> sample(stride_);
  constexpr auto count = static_cast<double>(chebyshev_nodes);
  for (std::size_t i = 0; i < chebyshev_nodes; ++i) {
    const double angle = std::numbers::pi * (static_cast<double>(i) + 0.5) / count;
    const double variance = std::exp2(lowest_log + exponents_per_piece * (std::cos(angle) + 1) / 2);
    integrate(variance, sample);
    for (std::size_t m = 0; m < chebyshev_nodes; ++m) {
      const double weight = (m == 0 ? 1 : 2) / count * std::cos(static_cast<double>(m) * angle);
      for (std::size_t k = 0; k < stride_; ++k) series[m * stride_ + k] += weight * sample[k];
    }
  }
  return series;
}

void MehlerTable::integrate(double variance, std::span<double> out) const {
  const double deviation = std::sqrt(variance);
  if (!(window * deviation <= mesh_.reach()))
    throw NumericalError(
        fmt::format("quadrature_activation: phi could be resolved for |x| <= {:.6g} only, a variance of "
                    "{:.6g} needs {:.6g}: use "
                    "smaller weight variances, or normalise before this layer",
                    mesh_.reach(), variance, window * deviation));
  std::fill(out.begin(), out.end(), 0.0);
  const std::vector<double>& edges = mesh_.edges();
  for (std::size_t i = mesh_.find(-window * deviation); i + 1 < edges.size() && edges[i] < window * deviation;
       ++i) {
    const double from = std::max(edges[i] / deviation, -window);
    const double to = std::min(edges[i + 1] / deviation, window);
    const double parts = std::ceil((to - from) / hermite_panel);
    for (int part = 0; part < parts; ++part) {
      const double begin = from + (to - from) * part / parts;
      const double end = from + (to - from) * (part + 1) / parts;
      gauss_legendre_15().integrate(begin, end, [&](double z, double weight) {
        add_node(z, weight * density(z), phi_.value(deviation * z), phi_.derivative(deviation * z), out);
      });
    }
  }
  if (has_jumps()) add_jumps(deviation, out);
}

void MehlerTable::add_node(double z, double mass, double value, double derivative,
                           std::span<double> out) const {
  out[0] += mass * value;
  out[1] += mass * derivative * derivative;
  out[2] += mass * value * value;
  const double weighted = mass * derivative;
  double below = 0;
  double hermite = 1;
  std::size_t stored = 0;
  for (std::size_t k = 0; stored < stored_orders; ++k) {
    if (k == order(stored)) out[first_coefficient + stored++] += weighted * hermite;
    const double next = up_[k] * z * hermite - down_[k] * below;
    below = hermite;
    hermite = next;
  }
}

/// The derivative of a jump is height * delta(sqrt(p) z - at).
void MehlerTable::add_jumps(double deviation, std::span<double> out) const {
  const std::size_t offset = first_coefficient + stored_orders;
  std::copy_n(out.begin() + first_coefficient, stored_orders, out.begin() + offset);
  for (const Jump& jump : mesh_.jumps()) {
    const double z = jump.at / deviation;
    const double weighted = jump.height * density(z) / deviation;
    if (weighted == 0) continue;
    double below = 0;
    double hermite = 1;
    for (std::size_t k = 0; k < stored_orders; ++k) {
      out[offset + k] += weighted * hermite;
      const double next = up_[k] * z * hermite - down_[k] * below;
      below = hermite;
      hermite = next;
    }
  }
}

}  // namespace widelimit::numerics

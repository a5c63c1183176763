#include "numerics/mehler_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "numerics/gauss_legendre.hpp"
#include "numerics/normal_density.hpp"
#include "numerics/rows/series_rows.hpp"
#include "widelimit/error.hpp"

namespace widelimit::numerics {
namespace {

constexpr double mehler_window =
    13;  // standard deviations; the root of the density, all that h_k leaves, is 4e-19 there

/// h_k oscillates with frequency sqrt(k); 15 Gauss points resolve 11 radians to rounding.
constexpr double radians_per_panel = 11;

/// Of an interpolated coefficient, relative to the root mean square.
constexpr double interpolation_tolerance = 1e-12;

}  // namespace

MehlerTable::MehlerTable(const SmoothFunction& phi, const SmoothMesh& mesh, std::size_t stored_orders,
                         std::span<const std::size_t> truncations)
    : phi_{phi},
      mesh_{mesh},
      stored_orders_{stored_orders},
      truncations_{truncations},
      stride_{first_coefficient + stored_orders * (has_own_rises() ? 2 : 1)} {
  for (std::size_t k = 0; k < order(stored_orders_); ++k) {
    const auto above = static_cast<double>(k + 1);
    up_.push_back(1 / std::sqrt(above));
    down_.push_back(std::sqrt((above - 1) / above));
  }
  // Beyond this variance the window of 13 standard deviations reaches out of the mesh, and integrate() would throw.
  const double widest_log = 2 * std::log2(mesh.reach() / mehler_window);
  const double usable = std::floor((widest_log - first_exponent) * pieces_per_exponent);
  usable_pieces_ = static_cast<std::size_t>(std::clamp(usable, 0.0, static_cast<double>(pieces)));
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
  // At variance 0 phi' is the constant phi'(0), which has a coefficient of order 0 only.
  if (variance == 0) {
    const double value = phi_.value(0);
    const double derivative = phi_.has_derivative_dual() ? phi_.derivative(0) : 0;
    std::fill(out.begin(), out.end(), 0.0);
    out[0] = value;
    out[1] = derivative * derivative;
    out[2] = value * value;
    out[first_coefficient] = derivative;
    return;
  }
  if (!interpolate(variance, stored_orders_, out)) integrate(variance, out);
}

const MehlerTable::Piece* MehlerTable::find_piece(double variance, double& inside) const {
  const double place = (std::log2(variance) - first_exponent) * pieces_per_exponent;
  if (!(place >= 0 && place < static_cast<double>(usable_pieces_))) return nullptr;
  const auto index = static_cast<std::size_t>(place);
  inside = 2 * (place - static_cast<double>(index)) - 1;
  Piece& piece = pieces_[index];
  // A piece is made when a variance first falls into it; threads that need the same piece wait for it.
  std::call_once(piece.made, [&] {
    const double lowest_log = first_exponent + static_cast<double>(index) / pieces_per_exponent;
    make_series(lowest_log, piece);
    if (!reproduces(piece.series, lowest_log)) piece.series.clear();
  });
  return piece.series.empty() ? nullptr : &piece;
}

bool MehlerTable::interpolate(double variance, std::size_t orders, std::span<double> out) const {
  double place = 0;
  const Piece* piece = find_piece(variance, place);
  if (piece == nullptr) return false;
  evaluate(piece->series, place, orders, out);
  return true;
}

std::span<const double> MehlerTable::tail_bounds(double variance) const {
  double place = 0;
  const Piece* piece = find_piece(variance, place);
  return piece == nullptr ? std::span<const double>{} : piece->tail_bounds;
}

void MehlerTable::evaluate(const std::vector<double>& series, double x, std::size_t orders,
                           std::span<double> out) const {
  std::array<double, chebyshev_nodes> chebyshev{1, x};
  for (std::size_t m = 2; m < chebyshev_nodes; ++m)
    chebyshev[m] = 2 * x * chebyshev[m - 1] - chebyshev[m - 2];
  const auto add = [&](std::size_t begin, std::size_t count) {
    series_rows<double>().add_rows(chebyshev.data(), chebyshev_nodes, series.data() + begin, stride_, count,
                                   out.data() + begin);
  };
  add(0, first_coefficient + orders);
  if (has_own_rises()) add(first_coefficient + stored_orders_, orders);
}

void MehlerTable::make_series(double lowest_log, Piece& piece) const {
  piece.series.assign(chebyshev_nodes * stride_, 0.0);
  // Tails are known at the nodes alone. This margin of their logarithm covers what lies between two nodes, and the
  // thousandth of the interval between the outermost nodes and its ends.
  constexpr double between_nodes = 0.1;
  piece.tail_bounds.assign(truncations_.size(), -std::numeric_limits<double>::infinity());
  std::vector<double> sample(stride_), tails(truncations_.size());
  constexpr auto count = static_cast<double>(chebyshev_nodes);
  for (std::size_t i = 0; i < chebyshev_nodes; ++i) {
    const double angle = std::numbers::pi * (static_cast<double>(i) + 0.5) / count;
    const double variance = std::exp2(lowest_log + (std::cos(angle) + 1) / (2 * pieces_per_exponent));
    integrate(variance, sample);
    log_tails(variance, sample, truncations_, tails);
    for (std::size_t t = 0; t < tails.size(); ++t)
      piece.tail_bounds[t] = std::max(piece.tail_bounds[t], tails[t] + between_nodes);
    for (std::size_t m = 0; m < chebyshev_nodes; ++m) {
      const double weight = (m == 0 ? 1 : 2) / count * std::cos(static_cast<double>(m) * angle);
      for (std::size_t k = 0; k < stride_; ++k) piece.series[m * stride_ + k] += weight * sample[k];
    }
  }
}

/// At places between the nodes, where an interpolation error is largest.
bool MehlerTable::reproduces(const std::vector<double>& series, double lowest_log) const {
  std::vector<double> interpolated(stride_);
  std::vector<double> exact(stride_);
  for (const double node : {1.0, 7.0, 12.0}) {
    const double x = std::cos(std::numbers::pi * node / static_cast<double>(chebyshev_nodes));
    evaluate(series, x, stored_orders_, interpolated);
    const double variance = std::exp2(lowest_log + (x + 1) / (2 * pieces_per_exponent));
    integrate(variance, exact);
    const double value_size = std::sqrt(exact[2]);
    const double slope_size = std::sqrt(exact[1]);
    // e_k = sqrt((k + 1) / p) E[phi h_{k+1}], which is of the size of sqrt(E phi^2 / p).
    const double rise_size = slope_size + value_size / std::sqrt(variance);
    if (std::abs(interpolated[0] - exact[0]) > interpolation_tolerance * value_size) return false;
    for (std::size_t k = first_coefficient; k < stride_; ++k) {
      const double size = k < first_coefficient + stored_orders_ ? slope_size : rise_size;
      if (std::abs(interpolated[k] - exact[k]) > interpolation_tolerance * size) return false;
    }
  }
  return true;
}

void MehlerTable::log_tails(double variance, std::span<const double> coefficients,
                            std::span<const std::size_t> truncations, std::span<double> out) const {
  // Below this share a difference of nearly equal sums shows nothing but its rounding.
  constexpr double rounding = 1e-14;
  const std::span<const double> slopes = coefficients.subspan(first_coefficient, stored_orders_);
  const double slope_energy = coefficients[1];
  const double value_energy = coefficients[2];
  // By Parseval's identity the energy that is left past some orders is what their coefficients do not account for.
  double slope_rest = slope_energy;
  double value_rest = value_energy - coefficients[0] * coefficients[0];
  std::size_t k = 0;
  for (std::size_t t = 0; t < truncations.size(); ++t) {
    for (; k < truncations[t]; ++k) {
      slope_rest -= slopes[k] * slopes[k];
      if (!has_own_rises()) continue;
      const double rise = coefficients[first_coefficient + stored_orders_ + k];
      value_rest -= variance * rise * rise / static_cast<double>(k + 1);
    }
    double share = slope_energy > 0 ? std::max(slope_rest / slope_energy, rounding) : rounding;
    if (has_own_rises() && value_energy > 0) share = std::max(share, value_rest / value_energy);
    // The logarithms are those of shares of root mean squares, hence the half.
    out[t] = std::log(share) / 2;
  }
}

template <typename Visit>
void MehlerTable::for_each_panel(double deviation, double longest, const Visit& visit) const {
  if (!(mehler_window * deviation <= mesh_.reach()))
    throw NumericalError(
        fmt::format("{}: phi could be resolved for |x| <= {:.6g} only, a variance of {:.6g} needs {:.6g}: "
                    "use smaller weight variances, or normalise before this layer",
                    phi_.name, mesh_.reach(), deviation * deviation, mehler_window * deviation));
  const std::vector<double>& edges = mesh_.edges();
  for (std::size_t i = mesh_.find(-mehler_window * deviation);
       i + 1 < edges.size() && edges[i] < mehler_window * deviation; ++i) {
    const double from = std::max(edges[i] / deviation, -mehler_window);
    const double to = std::min(edges[i + 1] / deviation, mehler_window);
    const double parts = std::ceil((to - from) / longest);
    for (int part = 0; part < parts; ++part)
      visit(from + (to - from) * part / parts, from + (to - from) * (part + 1) / parts);
  }
}

SelfSlopes MehlerTable::energies(double variance) const {
  const Dual<double> at_zero{phi_.value(0), phi_.derivative(0)};
  SelfSlopes sums{{0, 0}, {0, 0}};
  if (variance == 0)
    return {{at_zero.value * at_zero.value, at_zero.derivative * at_zero.derivative}, {0, 0}};
  const double deviation = std::sqrt(variance);
  constexpr double resolved_panel = 3;  // standard deviations, of a Gaussian times z^2
  for_each_panel(deviation, resolved_panel, [&](double begin, double end) {
    gauss_legendre_15().integrate(begin, end, [&](double z, double weight) {
      const double mass = weight * normal_density(z), moment = mass * (z - 1) * (z + 1);
      const double value = phi_.value(deviation * z), derivative = phi_.derivative(deviation * z);
      sums.dual.value += mass * value * value;
      sums.dual.derivative += mass * derivative * derivative;
      // What is constant has no slope: without it small variances keep their digits.
      sums.slope.value += moment * (value - at_zero.value) * (value + at_zero.value);
      sums.slope.derivative += moment * (derivative - at_zero.derivative) * (derivative + at_zero.derivative);
    });
  });
  sums.slope.value /= 2 * variance;
  sums.slope.derivative /= 2 * variance;
  return sums;
}

void MehlerTable::integrate(double variance, std::span<double> out) const {
  const double deviation = std::sqrt(variance);
  std::fill(out.begin(), out.end(), 0.0);
  const double longest_panel = radians_per_panel / std::sqrt(static_cast<double>(order(stored_orders_)));
  for_each_panel(deviation, longest_panel, [&](double begin, double end) {
    if (phi_.has_derivative_dual())
      add_panel(begin, end, deviation, out);
    else
      add_panel_of_values(begin, end, deviation, out);
  });
  if (!mesh_.jumps().empty()) add_jumps(deviation, out);
}

/// All nodes of a panel at once: the recurrence is a chain in k, only the nodes run side by side.
void MehlerTable::add_panel(double begin, double end, double deviation, std::span<double> out) const {
  constexpr std::size_t lanes = 16;  // the 15 nodes, and one of weight 0 that makes the loops even
  std::array<double, lanes> z{};
  std::array<double, lanes> weighted{};
  std::array<double, lanes> below{};
  std::array<double, lanes> hermite{};
  std::size_t node = 0;
  gauss_legendre_15().integrate(begin, end, [&](double at, double weight) {
    const double mass = weight * normal_density(at);
    const double value = phi_.value(deviation * at);
    const double derivative = phi_.derivative(deviation * at);
    out[0] += mass * value;
    out[1] += mass * derivative * derivative;
    out[2] += mass * value * value;
    z[node] = at;
    weighted[node++] = mass * derivative;
  });
  hermite.fill(1);
  std::size_t stored = 0;
  for (std::size_t k = 0; stored < stored_orders_; ++k) {
    if (k == order(stored)) {
      double sum = 0;
      for (std::size_t i = 0; i < lanes; ++i) sum += weighted[i] * hermite[i];
      out[first_coefficient + stored++] += sum;
    }
    const double up = up_[k];
    const double down = down_[k];
    for (std::size_t i = 0; i < lanes; ++i) {
      const double next = up * z[i] * hermite[i] - down * below[i];
      below[i] = hermite[i];
      hermite[i] = next;
    }
  }
}

/// e_k = sqrt((k+1) / p) E[phi h_{k+1}], from values of phi alone. Functions without a derivative dual have no parity,
/// so that order k is stored at k.
void MehlerTable::add_panel_of_values(double begin, double end, double deviation,
                                      std::span<double> out) const {
  gauss_legendre_15().integrate(begin, end, [&](double z, double weight) {
    const double mass = weight * normal_density(z), value = phi_.value(deviation * z);
    out[0] += mass * value;
    out[2] += mass * value * value;
    const double weighted = mass * value / deviation;
    double below = 0, hermite = 1;
    for (std::size_t k = 0; k < stored_orders_; ++k) {
      const double next = up_[k] * z * hermite - down_[k] * below;
      out[first_coefficient + stored_orders_ + k] += weighted * next / up_[k];
      below = hermite;
      hermite = next;
    }
  });
}

/// The derivative of a jump is height * delta(sqrt(p) z - at), which adds height * density(z) h_k(z) / sqrt(p) at z =
/// at / sqrt(p). Functions that jump have no parity, so that order k is stored at k.
void MehlerTable::add_jumps(double deviation, std::span<double> out) const {
  const std::size_t offset = first_coefficient + stored_orders_;
  // e_k begin as copies of the d_k.
  std::ranges::copy(out.subspan(first_coefficient, stored_orders_), out.subspan(offset).begin());
  for (const Jump& jump : mesh_.jumps()) {
    const double z = jump.at / deviation;
    const double weighted = jump.height * normal_density(z) / deviation;
    if (weighted == 0) continue;
    double below = 0;
    double hermite = 1;
    for (std::size_t k = 0; k < stored_orders_; ++k) {
      out[offset + k] += weighted * hermite;
      const double next = up_[k] * z * hermite - down_[k] * below;
      below = hermite;
      hermite = next;
    }
  }
}

}  // namespace widelimit::numerics

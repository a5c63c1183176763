#include "numerics/mehler_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "numerics/chebyshev_series.hpp"
#include "numerics/gauss_legendre.hpp"
#include "numerics/normal_density.hpp"
#include "numerics/rows/series_rows.hpp"
#include "widelimit/error.hpp"

namespace widelimit::numerics {
namespace {

/// Standard deviations at least; the root of the density, all that h_k leaves, is 4e-19 there.
constexpr double mehler_window = 13;

/// h_k oscillates with frequency sqrt(k); 15 Gauss points resolve 11 radians to rounding.
constexpr double radians_per_panel = 11;

/// Of an interpolated coefficient, relative to the root mean square.
constexpr double interpolation_tolerance = 1e-12;

/// At -1 <= x <= 1 of a piece that begins at a variance.
double variance_in_piece(double lowest_log, double x) {
  return std::exp2(lowest_log + (x + 1) / (2 * VarianceGrid::pieces_per_exponent));
}

}  // namespace

MehlerTable::MehlerTable(const SmoothFunction& phi, const SmoothMesh& mesh, const EnergyWindow& window,
                         std::size_t stored_orders, std::span<const std::size_t> truncations)
    : phi_{phi},
      mesh_{mesh},
      window_{window},
      stored_orders_{stored_orders},
      truncations_{truncations},
      stride_{first_coefficient + stored_orders * (has_own_rises() ? 2 : 1)} {
  for (std::size_t k = 0; k < order(stored_orders_); ++k) {
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
  const double place = VarianceGrid::place(variance);
  if (!(place >= 0 && place < static_cast<double>(VarianceGrid::pieces))) return nullptr;
  const auto index = static_cast<std::size_t>(place);
  inside = 2 * (place - static_cast<double>(index)) - 1;
  return made_piece(index);
}

const MehlerTable::Piece* MehlerTable::made_piece(std::size_t index) const {
  Piece& piece = pieces_[index];
  // A piece is made when a variance first falls into it; threads that need the same piece wait for it.
  std::call_once(piece.made, [&] {
    if (!window_.covers(index)) return;
    const double lowest_log = VarianceGrid::log2_begin(index);
    make_series(lowest_log, piece);
    if (!reproduces(piece, lowest_log)) piece.series.clear();
  });
  return piece.series.empty() ? nullptr : &piece;
}

std::optional<MehlerTable::PieceView> MehlerTable::piece(std::size_t index) const {
  const Piece* piece = made_piece(index);
  if (piece == nullptr) return std::nullopt;
  // Without a derivative dual the rises come from values.
  const Growth& growth = piece->growth;
  return PieceView{piece->series, stride_,
                   growth.value,  growth.slope != 0 ? growth.slope : growth.value,
                   truncations_,  piece->tail_bounds};
}

bool MehlerTable::interpolate(double variance, std::size_t orders, std::span<double> out) const {
  double place = 0;
  const Piece* piece = find_piece(variance, place);
  if (piece == nullptr) return false;
  evaluate(*piece, place, orders, out);
  return true;
}

std::span<const double> MehlerTable::tail_bounds(double variance) const {
  double place = 0;
  const Piece* piece = find_piece(variance, place);
  return piece == nullptr ? std::span<const double>{} : piece->tail_bounds;
}

void MehlerTable::evaluate(const Piece& piece, double x, std::size_t orders, std::span<double> out) const {
  std::array<double, chebyshev_nodes> chebyshev{1, x};
  for (std::size_t m = 2; m < chebyshev_nodes; ++m)
    chebyshev[m] = 2 * x * chebyshev[m - 1] - chebyshev[m - 2];
  const auto add = [&](std::size_t begin, std::size_t count) {
    series_rows<double>().add_rows(chebyshev.data(), chebyshev_nodes, piece.series.data() + begin, stride_,
                                   count, out.data() + begin);
  };
  add(0, first_coefficient + orders);
  if (has_own_rises()) add(first_coefficient + stored_orders_, orders);
  piece.growth.scale(x, orders, stored_orders_, out);
}

MehlerTable::Growth MehlerTable::Growth::between(std::span<const double> low, std::span<const double> high) {
  // What grows by less than e either way is interpolated as it is.
  const auto rate = [](double from, double to) {
    const double whole = from > 0 && to > 0 ? std::log(to / from) / 4 : 0;
    return std::abs(whole) > 0.5 ? whole : 0;
  };
  return {rate(low[2], high[2]), rate(low[1], high[1])};
}

void MehlerTable::Growth::scale(double x, std::size_t orders, std::size_t stored_orders,
                                std::span<double> out) const {
  if (value != 0) {
    const double factor = std::exp(value * x);
    out[0] *= factor;
    out[2] *= factor * factor;
  }
  // Without a derivative dual the rises come from values.
  const double rate = slope != 0 ? slope : value;
  if (rate == 0) return;
  const double factor = std::exp(rate * x);
  out[1] *= factor * factor;
  for (std::size_t begin = first_coefficient; begin < out.size(); begin += stored_orders)
    for (std::size_t k = begin; k < begin + orders; ++k) out[k] *= factor;
}

void MehlerTable::make_series(double lowest_log, Piece& piece) const {
  piece.series.assign(chebyshev_nodes * stride_, 0.0);
  // Tails are known at the nodes alone. This margin of their logarithm covers what lies between two nodes, and the
  // thousandth of the interval between the outermost nodes and its ends.
  constexpr double between_nodes = 0.1;
  piece.tail_bounds.assign(truncations_.size(), -std::numeric_limits<double>::infinity());
  std::vector<double> samples(chebyshev_nodes * stride_), tails(truncations_.size());
  const auto sample = [&](std::size_t i) { return std::span(samples).subspan(i * stride_, stride_); };
  constexpr auto count = static_cast<double>(chebyshev_nodes);
  const auto angle = [](std::size_t i) { return chebyshev_angle<chebyshev_nodes>(i); };
  for (std::size_t i = 0; i < chebyshev_nodes; ++i) {
    const double variance = variance_in_piece(lowest_log, std::cos(angle(i)));
    integrate(variance, sample(i));
    log_tails(variance, sample(i), truncations_, tails);
    for (std::size_t t = 0; t < tails.size(); ++t)
      piece.tail_bounds[t] = std::max(piece.tail_bounds[t], tails[t] + between_nodes);
  }
  piece.growth = Growth::between(sample(chebyshev_nodes - 1), sample(0));
  for (std::size_t i = 0; i < chebyshev_nodes; ++i) {
    piece.growth.scale(-std::cos(angle(i)), stored_orders_, stored_orders_, sample(i));
    for (std::size_t m = 0; m < chebyshev_nodes; ++m) {
      const double weight = (m == 0 ? 1 : 2) / count * std::cos(static_cast<double>(m) * angle(i));
      for (std::size_t k = 0; k < stride_; ++k) piece.series[m * stride_ + k] += weight * sample(i)[k];
    }
  }
}

/// At places between the nodes, where an interpolation error is largest. What grows with the variance errs by the
/// largest share at the lowest one.
bool MehlerTable::reproduces(const Piece& piece, double lowest_log) const {
  std::vector<double> interpolated(stride_);
  std::vector<double> exact(stride_);
  const bool grows = piece.growth.value != 0 || piece.growth.slope != 0;
  for (const double node : {1.0, 7.0, 12.0, 23.0}) {
    if (node > 12 && !grows) continue;
    const double x = std::cos(std::numbers::pi * node / static_cast<double>(chebyshev_nodes));
    evaluate(piece, x, stored_orders_, interpolated);
    const double variance = variance_in_piece(lowest_log, x);
    integrate(variance, exact);
    const double value_size = std::sqrt(exact[2]);
    const double slope_size = std::sqrt(exact[1]);
    // e_k = sqrt((k + 1) / p) E[phi h_{k+1}], which is of the size of sqrt(E phi^2 / p).
    const double rise_size = slope_size + value_size / std::sqrt(variance);
    const auto size_of = [&](std::size_t k) {
      if (k < first_coefficient) return std::array{value_size, exact[1], exact[2]}[k];
      return k < first_coefficient + stored_orders_ ? slope_size : rise_size;
    };
    for (std::size_t k = 0; k < stride_; ++k) {
      // Energies only tell tails from rounding, which needs their digits where they grow by many orders.
      if (!grows && (k == 1 || k == 2)) continue;
      if (!(std::abs(interpolated[k] - exact[k]) <= interpolation_tolerance * size_of(k))) return false;
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
void MehlerTable::for_each_panel(double variance, double longest, const Visit& visit) const {
  const double deviation = std::sqrt(variance), window = window_.wider_at(variance, mehler_window);
  const std::vector<double>& edges = mesh_.edges();
  for (std::size_t i = mesh_.find(-window * deviation); i + 1 < edges.size() && edges[i] < window * deviation;
       ++i) {
    const double from = std::max(edges[i] / deviation, -window);
    const double to = std::min(edges[i + 1] / deviation, window);
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
  for_each_panel(variance, resolved_panel, [&](double begin, double end) {
    gauss_legendre_15().integrate(begin, end, [&](double z, double weight) {
      const double root = root_normal_density(z), moment = weight * (z - 1) * (z + 1);
      const double value = phi_.value(deviation * z), derivative = phi_.derivative(deviation * z);
      sums.dual.value += weight * (root * value) * (root * value);
      sums.dual.derivative += weight * (root * derivative) * (root * derivative);
      // What is constant has no slope: without it small variances keep their digits.
      const auto without_constant = [&](double here, double constant) {
        return moment * (root * (here - constant)) * (root * (here + constant));
      };
      sums.slope.value += without_constant(value, at_zero.value);
      sums.slope.derivative += without_constant(derivative, at_zero.derivative);
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
  for_each_panel(variance, longest_panel, [&](double begin, double end) {
    if (phi_.has_derivative_dual())
      add_panel(begin, end, deviation, out);
    else
      add_panel_of_values(begin, end, deviation, out);
  });
  if (!mesh_.jumps().empty()) add_jumps(deviation, out);
}

/// All nodes of a panel at once: the recurrence is a chain in k, only the nodes run side by side. Far out one root of
/// the density keeps phi' from overflowing and the other one the Hermite polynomials.
void MehlerTable::add_panel(double begin, double end, double deviation, std::span<double> out) const {
  constexpr std::size_t lanes = 16;  // the 15 nodes, and one of weight 0 that makes the loops even
  std::array<double, lanes> z{};
  std::array<double, lanes> weighted{};
  std::array<double, lanes> below{};
  std::array<double, lanes> hermite{};
  std::size_t node = 0;
  gauss_legendre_15().integrate(begin, end, [&](double at, double weight) {
    const double root = root_normal_density(at);
    const double value = root * phi_.value(deviation * at);
    const double derivative = root * phi_.derivative(deviation * at);
    out[0] += weight * root * value;
    out[1] += weight * derivative * derivative;
    out[2] += weight * value * value;
    z[node] = at;
    hermite[node] = root;
    weighted[node++] = weight * derivative;
  });
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
    const double root = root_normal_density(z), value = root * phi_.value(deviation * z);
    out[0] += weight * root * value;
    out[2] += weight * value * value;
    const double weighted = weight * value / deviation;
    double below = 0, hermite = root;
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
    const double root = root_normal_density(z);
    const double weighted = jump.height * root / deviation;
    if (weighted == 0) continue;
    double below = 0;
    double hermite = root;
    for (std::size_t k = 0; k < stored_orders_; ++k) {
      out[offset + k] += weighted * hermite;
      const double next = up_[k] * z * hermite - down_[k] * below;
      below = hermite;
      hermite = next;
    }
  }
}

}  // namespace widelimit::numerics

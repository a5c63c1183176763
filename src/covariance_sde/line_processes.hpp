#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string_view>

#include "covariance_sde/arguments.hpp"
#include "covariance_sde/line_diffusion.hpp"
#include "covariance_sde/narrow_law.hpp"
#include "covariance_sde/relu_drift.hpp"
#include "widelimit/covariance_sde/model.hpp"

/// The correlation of two tokens and their gap as processes on a line, in charts where laws are smooth.
namespace widelimit::covariance_sde {

/// The reach of grids in standard deviations: tails beyond it are below 1e-20.
inline constexpr double law_reach = 9.5;

/// log(cosh y), which cosh would overflow.
inline double log_cosh(double y) {
  return std::abs(y) + std::log1p(std::exp(-2 * std::abs(y))) - std::numbers::ln2;
}

/// Where the law begins: at a point, or within reach of it with this deviation.
struct Beginning {
  double place, deviation = 0;
};

/// How a process moves once it is far from where its drift changes: with a constant drift and variance.
struct LateMotion {
  double time;  ///< By then next to no mass is left where the drift changes.
  double drift, variance;
  bool both_ways;  ///< For y < 0 the drift is the opposite.
  /// At most 1: how far the motion at y is from that, in all the time to come.
  std::function<double(double)> left_out;
};

/// The correlation as y = artanh rho: dy = [r g cosh^2 y + (s / 2) tanh y] dt + sqrt(s) dB.
struct CorrelationProcess {
  struct Frame {
    static double place(double y) { return y; }
    static double back(double x) { return x; }
    static double stretch(double /*x*/) { return 1; }
  };
  double drift;  ///< r
  double noise;  ///< s

  [[nodiscard]] DriftedDiffusion drifted(double start) const;
  [[nodiscard]] double log_scale_density(double y) const;
  [[nodiscard]] LineDiffusion diffusion(Beginning beginning, double time) const;

  /// Far from 0 the drift is that of the sign of y; with a bend no path stays below 0.
  [[nodiscard]] LateMotion late() const {
    const double bend = 2.6 * drift / noise;
    return {.time = 160 / noise,
            .drift = noise / 2,
            .variance = noise,
            .both_ways = drift == 0,
            .left_out = [bend](double y) {
              return y < 0 && bend > 0 ? 1 : std::min(1.0, (1 + bend) * std::exp(-std::abs(y)));
            }};
  }
};

/// The angle of the correlation tanh y and sin theta - theta cos theta.
struct AngleOf {
  explicit AngleOf(double y)
      : angle{2 * std::atan(std::exp(-y))},
        excess{sine_minus_theta_cosine(angle, 1 / std::cosh(y), std::tanh(y))} {}
  double angle, excess;
};

inline DriftedDiffusion CorrelationProcess::drifted(double start) const {
  const double r = drift, s = noise;
  return {.drift =
              [=](double y) {
                const double cosh = std::cosh(y);
                // The ReLU drift falls as e^-y, so that beyond 100 nothing is left of it.
                return (y > 100 ? 0 : r * AngleOf(y).excess * cosh * cosh) + s / 2 * std::tanh(y);
              },
          .variance = s,
          .start = start,
          .scale = [](double y) { return y > 0 ? 1.0 : 0.5; }};  // it falls as e^-y, or as e^-2y
}

inline double CorrelationProcess::log_scale_density(double y) const {
  if (drift == 0 || y > 100) return -log_cosh(y);
  const AngleOf theta(y);
  const double cosh = std::cosh(y);
  return drift / noise * (theta.angle - std::tanh(y) * theta.excess * cosh * cosh) - log_cosh(y);
}

inline LineDiffusion CorrelationProcess::diffusion(Beginning beginning, double time) const {
  const double start = beginning.place, s = noise;
  const double deviation = std::sqrt(s * time), spread = law_reach * (deviation + beginning.deviation);
  // The ReLU drift is below 2.6 r e^-y for y > 0, and for y < 0 it is larger than that at 0.
  const double shift = s * time / 2 + std::log1p(2.6 * drift * time * std::exp(-std::max(start, 0.0)));
  LineDiffusion diffusion{.variance = [s](double) { return s; },
                          .log_scale_density = [*this](double y) { return log_scale_density(y); },
                          .start = start,
                          .low = start - s * time / 2 - spread,
                          .high = std::max(start, 0.0) + shift + 2 * spread,
                          .displacement = std::pow((shift + std::max(-start, 0.0)) / deviation, 2)};
  // Towards rho = -1 the ReLU drift grows without bounds: no path gets beyond a rise of the scale density by e^45.
  double above = start - law_reach * beginning.deviation;
  const double highest = log_scale_density(above) + 45;
  const auto too_low = [&](double y) { return log_scale_density(y) > highest; };
  if (too_low(diffusion.low))
    for (int k = 0; k < 50; ++k) {
      const double middle = (above + diffusion.low) / 2;
      (too_low(middle) ? diffusion.low : above) = middle;
    }
  return diffusion;
}

/// The distance of u from the wall of explosions in a coordinate of constant noise, sqrt(2 s): arsinh(e^-u).
inline double wall_distance(double u) {
  return u > 0 ? std::asinh(std::exp(-u)) : std::log1p(std::sqrt(1 + std::exp(2 * u))) - u;
}

inline double at_wall_distance(double distance) {
  // Beyond 20 sinh is e^distance / 2 in all digits.
  return distance > 20 ? std::numbers::ln2 - distance : -std::log(std::sinh(distance));
}

/// The gap as u = log(sqrt(kappa) Delta), whose scale density is e^u (1 + e^{2u})^-a.
struct GapProcess {
  struct Frame {
    static double place(double u) { return wall_distance(u); }
    static double back(double x) { return at_wall_distance(x); }
    static double stretch(double x) { return std::tanh(x); }  ///< -dx / du
  };
  double noise;     ///< s
  double kappa;     ///< 2 q / s
  double exponent;  ///< a = w / (4 q)

  [[nodiscard]] double to_u(double gap) const { return std::log(gap) + std::log(kappa) / 2; }
  /// Small gaps are log-normal.
  [[nodiscard]] LateMotion late() const {
    const double pull = 1 + 2 * exponent;  // of the wall, which attracts from e^{2 u} = 1 / pull on
    return {.time = (90 + 2 * std::log(pull)) / noise,
            .drift = -noise,
            .variance = 2 * noise,
            .both_ways = false,
            .left_out = [pull](double u) { return std::min(1.0, pull * std::exp(2 * std::min(u, 0.0))); }};
  }
  [[nodiscard]] LineDiffusion diffusion(Beginning beginning, double time) const;
  /// The process in terms of the distance from the wall of explosions.
  [[nodiscard]] DriftedDiffusion drifted(double start) const;
};

inline GapProcess gap_process(std::string_view where, const SdeModel& model, double gap0) {
  require_model(where, model);
  if (model.relu_drift != 0 || model.mask != AttentionMask::full || !(model.attention_drift > 0) ||
      !(model.attention_noise > 0) || !(model.linear_noise > 0))
    throw ArgumentError(fmt::format(
        "{}: the gap is autonomous only under full attention without a ReLU drift and with noise", where));
  require_positive(where, "gap0", gap0);
  return {.noise = model.linear_noise,
          .kappa = 2 * model.attention_noise / model.linear_noise,
          .exponent = model.attention_drift / (4 * model.attention_noise)};
}

inline DriftedDiffusion GapProcess::drifted(double start) const {
  const double s = noise, a = exponent;
  return {.drift = [=](double x) { return s * ((2 * a - 1) * std::tanh(x) - (2 * a - 2) / std::tanh(x)); },
          .variance = 2 * s,
          .start = wall_distance(start),
          .scale = [](double x) { return std::min(x, 1.0); }};
}

/// Where the drift towards the wall, -4 s a / sinh(2 x), brings x by the time t; move = 8 a s t. 0 where it arrives.
inline double drifted_wall_distance(double x, double move) {
  if (!(x > 0)) return 0;
  const double sinh = std::sinh(x), rest = sinh * sinh - move / 2;  // (cosh(2 x) - 1 - move) / 2
  return rest > 0 ? std::asinh(std::sqrt(rest)) : 0;
}

inline LineDiffusion GapProcess::diffusion(Beginning beginning, double time) const {
  constexpr double wall = 12;  // where paths are within e^-24 of exploding
  const double s = noise, a = exponent, start = beginning.place, from = wall_distance(start);
  const double spread = law_reach * (std::sqrt(2 * s * time) + beginning.deviation);
  // The drift towards the wall is below 2 s a / distance, that away from it below 2 s / distance + s.
  const double nearest = std::max(std::sqrt(std::max(0.0, from * from - 4 * a * s * time)) - spread,
                                  drifted_wall_distance(from - spread, 8 * a * s * time));
  const double furthest = std::sqrt(from * from + 4 * s * time) + s * time + spread;
  const double high = std::max(wall, start + 4);
  // The drift grows towards the wall.
  const double speed = nearest > 0 ? drifted(start).drift(nearest) : std::numeric_limits<double>::infinity();
  LineDiffusion diffusion{
      .variance = [s](double u) { return 2 * s * (1 + std::exp(2 * u)); },
      .log_scale_density = [a](double u) { return u - a * std::log1p(std::exp(2 * u)); },
      .start = start,
      .low = at_wall_distance(furthest),
      .high = high,
      .exit_rate = std::max(0.0, 2 * a - 1),
      .displacement =
          std::min({2 * a, from * from / (2 * s * time), speed * speed * time / (2 * s)}) + s * time / 2};
  if (nearest > 0 && at_wall_distance(nearest) < high) {
    diffusion.high = at_wall_distance(nearest);
    diffusion.exit_rate = 0;
  }
  return diffusion;
}

}  // namespace widelimit::covariance_sde

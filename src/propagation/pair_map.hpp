#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "widelimit/numerics/activation.hpp"

namespace widelimit::propagation {

/// Chebyshev interpolants on t in [0, 1] of the dual derivative at correlation 1 - largest_gap t^2 and of its
/// mean between that correlation and 1.
class GapTable {
 public:
  static constexpr double largest_gap = 0.05;

  GapTable(const numerics::Activation& activation, double variance);

  [[nodiscard]] double slope(double gap) const;
  [[nodiscard]] double mean_slope(double gap) const;

 private:
  [[nodiscard]] double interpolate(const std::vector<double>& values, double t) const;

  std::vector<double> slopes_, mean_slopes_;  // at t_j = (1 + cos(pi j / N)) / 2
};

/// One nonlinearity between jointly Gaussian preactivations of equal variance and correlation 1 - gap.
/// Threads may share it.
class PairMap {
 public:
  PairMap(numerics::ActivationPtr activation, double variance);

  [[nodiscard]] double variance() const { return variance_; }
  [[nodiscard]] double second_moment() const { return second_moment_; }  ///< E phi(u)^2
  [[nodiscard]] double slope() const { return slope_; }                  ///< E phi'(u)^2
  [[nodiscard]] double output_gap(double gap) const;                     ///< E phi(u)^2 - E phi(u) phi(v)
  [[nodiscard]] double slope(double gap) const;                          ///< E phi'(u) phi'(v)
  [[nodiscard]] double curvature() const;                                ///< E phi''(u)^2

 private:
  [[nodiscard]] const GapTable& table() const;

  numerics::ActivationPtr activation_;
  double variance_, second_moment_, slope_;
  mutable std::once_flag made_;
  mutable std::unique_ptr<const GapTable> table_;
};

/// ArgumentError if phi jumps: E phi phi then has an infinite slope at correlation 1, which duals leave out.
void require_continuous(const char* where, const numerics::Activation& activation);

}  // namespace widelimit::propagation

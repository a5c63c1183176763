#pragma once

#include <Eigen/Core>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace widelimit::layers {

/// A few functions of one variable, tabulated together.
using FunctionValues = Eigen::Array4d;

/// The intervals 1 - 2^-k <= x <= 1 - 2^-(k+1), k = 0, 1, ..., of [0, 1), and x = 1 by itself.
struct GradedIntervals {
  /// The number of x = 1. For any other double, 1 - x is at least 2^-53.
  static constexpr std::size_t end = 54;

  static std::size_t interval_of(double x) {
    const double distance = 1 - x;
    if (distance <= 0) return end;
    int exponent = 0;
    const double mantissa = std::frexp(distance, &exponent);  // in [1/2, 1)
    return static_cast<std::size_t>(mantissa == 0.5 ? 1 - exponent : -exponent);
  }
  /// The centre and the radius of an interval in 1 - x.
  static double centre(std::size_t interval) { return 0.75 * std::exp2(-static_cast<double>(interval)); }
  static double radius(std::size_t interval) { return 0.25 * std::exp2(-static_cast<double>(interval)); }
};

/// Interpolates functions on [0, 1] that are smooth inside but singular at 1, as the dual activations of homogeneous
/// functions are. On the intervals 1 - 2^-k <= x <= 1 - 2^-(k+1) the distance to the singularity is at least the
/// interval's length, so that Chebyshev interpolation gains a factor of 3 + sqrt(8) with each node. x = 1 has a table
/// of its own.
///
/// It is used in three steps: want() says where the functions will be needed, tabulate() computes those intervals,
/// and operator() interpolates.
class GradedInterpolation : private GradedIntervals {
 public:
  /// Takes `nodes` nodes in each interval, at least 1.
  explicit GradedInterpolation(int nodes) : nodes_{nodes} {
    table_of_.fill(-1);
    for (int i = 0; i < nodes; ++i) node_.push_back(std::cos(std::numbers::pi * (2 * i + 1) / (2 * nodes)));
  }

  /// Says that the functions will be needed at x, 0 <= x <= 1.
  void want(double x) {
    int& table = table_of_[interval_of(x)];
    if (table >= 0) return;
    table = static_cast<int>(tables_.size());
    tables_.push_back({interval_of(x), {}});
  }

  /// `evaluate(points, values)` fills values[i] with the functions at points[i], for all points at once.
  template <typename Evaluate>
  void tabulate(const Evaluate& evaluate) {
    std::vector<double> points;
    for (const Table& table : tables_) append_points(table.interval, points);
    std::vector<FunctionValues> values(points.size(), FunctionValues::Zero());
    evaluate(points, values);
    auto next = values.begin();
    for (Table& table : tables_) {
      if (table.interval == end) {
        table.coefficients = {*next++};
      } else {
        table.coefficients = coefficients(&*next);
        next += nodes_;
      }
    }
  }

  /// The functions at an x that was wanted.
  [[nodiscard]] FunctionValues operator()(double x) const {
    const std::size_t interval = interval_of(x);
    const auto& c = tables_[static_cast<std::size_t>(table_of_[interval])].coefficients;
    if (interval == end) return c[0];
    // Clenshaw's recursion. 1 - x is exact for the x close to 1, where it matters.
    const double t = (1 - x - centre(interval)) / radius(interval);
    FunctionValues next = FunctionValues::Zero(), after = next;
    for (std::size_t k = c.size(); k-- > 1;) {
      const FunctionValues current = c[k] + 2 * t * next - after;
      after = next;
      next = current;
    }
    return c[0] + t * next - after;
  }

 private:
  struct Table {
    std::size_t interval;
    std::vector<FunctionValues> coefficients;  ///< Chebyshev, in (1 - x - centre) / radius.
  };

  void append_points(std::size_t interval, std::vector<double>& points) const {
    if (interval == end) return points.push_back(1);
    for (const double node : node_) points.push_back(1 - (centre(interval) + radius(interval) * node));
  }

  /// The coefficients of Chebyshev polynomials from values at the nodes, by a discrete cosine transform.
  std::vector<FunctionValues> coefficients(const FunctionValues* values) const {
    std::vector<FunctionValues> result;
    for (int k = 0; k < nodes_; ++k) {
      FunctionValues sum = FunctionValues::Zero();
      for (int i = 0; i < nodes_; ++i)
        sum += std::cos(std::numbers::pi * k * (2 * i + 1) / (2 * nodes_)) * values[i];
      result.push_back((k == 0 ? 1.0 : 2.0) / nodes_ * sum);
    }
    return result;
  }

  int nodes_;
  std::vector<double> node_;
  std::vector<Table> tables_;
  std::array<int, end + 1> table_of_{};  ///< [interval]: number of its table, or -1.
};

}  // namespace widelimit::layers

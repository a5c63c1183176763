#include <algorithm>
#include <cmath>

#include "numerics/tasks.hpp"
#include "propagation/arguments.hpp"
#include "propagation/collapsed.hpp"
#include "widelimit/propagation/exponent_at.hpp"

namespace widelimit::propagation {

namespace {

bool is_integer(Coordinate coordinate) {
  return coordinate == Coordinate::tokens || coordinate == Coordinate::depth ||
         coordinate == Coordinate::mlp_depth;
}

/// Whether setting one of the coordinates sets the other one, too.
bool overlap(Coordinate a, Coordinate b) {
  const auto holds = [](Coordinate whole, Coordinate part) {
    return whole == Coordinate::alpha && (part == Coordinate::alpha_A || part == Coordinate::alpha_M);
  };
  return a == b || holds(a, b) || holds(b, a);
}

void require_axis(const char* name, const Axis& axis) {
  if (axis.values.empty())
    throw ArgumentError(fmt::format("phase_diagram: the {} axis must have values, got none", name));
  for (const double value : axis.values)
    if (is_integer(axis.coordinate) && value != std::round(value))
      throw ArgumentError(fmt::format("phase_diagram: {} must be an integer, got {}",
                                      coordinate_name(axis.coordinate), value));
}

/// Statistics of the MLP for every point of the rectangle, computed once for points that share them.
class MlpTable {
 public:
  MlpTable(const ParameterPoint& base, const Axis& x, const Axis& y)
      : base_{base},
        x_{x},
        y_{y},
        // An axis that leaves the MLP alone has one entry.
        columns_{changes_mlp(x.coordinate) ? x.values.size() : 1},
        rows_{changes_mlp(y.coordinate) ? y.values.size() : 1},
        entries_(columns_ * rows_) {}

  void fill(const std::stop_token& stop) {
    numerics::for_each_task(static_cast<Index>(entries_.size()), {.stop = stop}, [&](Index place) {
      const auto i = static_cast<std::size_t>(place);
      ParameterPoint point = base_;
      set_coordinate(point, x_.coordinate, x_.values[i % columns_]);
      set_coordinate(point, y_.coordinate, y_.values[i / columns_]);
      require_ranges("phase_diagram", point.parameters);
      entries_[i] = unchecked_mlp_statistics(point.parameters);
    });
  }

  [[nodiscard]] const MlpStatistics& at(std::size_t row, std::size_t column) const {
    return entries_[(rows_ > 1 ? row : 0) * columns_ + (columns_ > 1 ? column : 0)];
  }

 private:
  const ParameterPoint& base_;
  const Axis &x_, &y_;
  std::size_t columns_, rows_;
  std::vector<MlpStatistics> entries_;
};

}  // namespace

Axis evenly_spaced(Coordinate coordinate, double from, double to, Index count) {
  require_at_least("evenly_spaced", "count", count, 2);
  if (!std::isfinite(from) || !std::isfinite(to) || !(from < to))
    throw ArgumentError(fmt::format("evenly_spaced: {} must rise between finite ends, got {} to {}",
                                    coordinate_name(coordinate), from, to));
  Axis axis{coordinate, {}};
  for (Index i = 0; i < count; ++i) {
    const double value = from + (to - from) * static_cast<double>(i) / static_cast<double>(count - 1);
    axis.values.push_back(is_integer(coordinate) ? std::round(value) : value);
  }
  // Rounding may have made neighbours equal.
  axis.values.erase(std::unique(axis.values.begin(), axis.values.end()), axis.values.end());
  return axis;
}

PhaseDiagram phase_diagram(const Parameters& base, const Axis& x, const Axis& y,
                           const ExponentOptions& options, const PhaseOptions& run) {
  require_axis("x", x);
  require_axis("y", y);
  if (overlap(x.coordinate, y.coordinate))
    throw ArgumentError(fmt::format("phase_diagram: the axes must set different parameters, got {} and {}",
                                    coordinate_name(x.coordinate), coordinate_name(y.coordinate)));
  require_at_least("phase_diagram", "threads", run.threads, 0);
  // One point is checked in full; all others are checked for ranges when their exponents are computed.
  ParameterPoint point = parameter_point(base, options);
  set_coordinate(point, x.coordinate, x.values.back());
  set_coordinate(point, y.coordinate, y.values.back());
  require_parameters("phase_diagram", point.parameters);
  const auto rows = static_cast<Index>(y.values.size()), columns = static_cast<Index>(x.values.size());
  PhaseDiagram diagram{x, y, Matrix<double>::Constant(rows, columns, std::nan("")),
                       Matrix<double>::Constant(rows, columns, std::nan(""))};
  MlpTable mlp(point, x, y);
  const auto fill_row = [&](Index row) {
    ParameterPoint here = point;
    set_coordinate(here, y.coordinate, y.values[static_cast<std::size_t>(row)]);
    for (Index column = 0; column < columns; ++column) {
      set_coordinate(here, x.coordinate, x.values[static_cast<std::size_t>(column)]);
      const MlpStatistics& statistics =
          mlp.at(static_cast<std::size_t>(row), static_cast<std::size_t>(column));
      // Nothing follows from an MLP whose numbers are no numbers.
      if (!std::isfinite(statistics.k_out) || !std::isfinite(statistics.f)) continue;
      diagram.lambda_a(row, column) = exponent_at(Exponent::angle, here, statistics);
      diagram.lambda_g(row, column) = exponent_at(Exponent::gradient, here, statistics);
    }
  };
  numerics::on_threads(run.threads, [&] {
    mlp.fill(run.stop);
    numerics::for_each_task(rows, {.stop = run.stop, .progress = run.progress}, fill_row);
  });
  return diagram;
}

}  // namespace widelimit::propagation

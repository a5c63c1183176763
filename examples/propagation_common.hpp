#pragma once

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>
#include <widelimit/propagation/critical.hpp>
#include <widelimit/propagation/estimators.hpp>

#include "figure.hpp"

/// What the propagation_* examples share: arguments, CSV files and pictures.
namespace propagation_examples {

using namespace widelimit::propagation;
using widelimit::Matrix;
using widelimit::numerics::Estimate;

using examples::ArgumentList;
using examples::Csv;
using examples::plot;

/// The common arguments, and --networks N: another number of networks.
struct Settings : examples::CommonSettings {
  Settings() {
    digits = 9;
    picture_size = "1150,520";
    picture_settings.clear();
  }

  Index networks = 0;
  [[nodiscard]] Index network_count(Index full) const {
    return networks > 0 ? networks : size<Index>(full, 2);
  }
};

/// The two slices of the paper's figures.
struct Slice {
  std::string name;
  ParameterRectangle rectangle;
  Parameters base;
};

inline std::vector<Slice> slices(Index tokens) {
  Parameters parameters;
  parameters.tokens = tokens;
  Parameters second = parameters;
  second.sigma_w = 2;
  return {{"alpha_sigma_w", {Coordinate::alpha, 0.02, 0.95, Coordinate::sigma_w, 0.2, 4}, parameters},
          {"alpha_M_alpha_A", {Coordinate::alpha_M, 0.02, 0.95, Coordinate::alpha_A, 0.02, 0.95}, second}};
}

inline Parameters at(const Slice& slice, double x, double y) {
  Parameters parameters = slice.base;
  if (slice.rectangle.x == Coordinate::alpha) {
    parameters.alpha_A = parameters.alpha_M = x;
    parameters.sigma_w = y;
  } else {
    parameters.alpha_M = x;
    parameters.alpha_A = y;
  }
  return parameters;
}

/// Calls body(x, y, parameters), which writes a line, at `points` places a side of the slice; a gap follows each row.
template <typename Body>
void for_each_point(const Slice& slice, Index points, Csv& table, const Body& body) {
  const ParameterRectangle& sides = slice.rectangle;
  for (const double y : evenly_spaced(sides.y, sides.y_from, sides.y_to, points).values) {
    for (const double x : evenly_spaced(sides.x, sides.x_from, sides.x_to, points).values)
      body(x, y, at(slice, x, y));
    table.gap();
  }
}

/// x,y lines of the curves, apart by blank lines.
inline void write_boundary(const Settings& settings, const std::string& name,
                           const std::vector<BoundaryCurve>& curves) {
  Csv table(settings, name, "x,y");
  for (const BoundaryCurve& curve : curves) {
    for (const BoundaryPoint& point : curve.points) table.row(point.x, point.y);
    table.gap();
  }
}

/// gnuplot settings for a map with white at 0.
inline std::string map_settings(const Slice& slice, double range) {
  return "set palette defined (-1 '#2166ac', 0 '#ffffff', 1 '#b2182b')\nset cbrange [" +
         std::to_string(-range) + ":" + std::to_string(range) + "]\nset xrange [" +
         std::to_string(slice.rectangle.x_from) + ":" + std::to_string(slice.rectangle.x_to) +
         "]\nset yrange [" + std::to_string(slice.rectangle.y_from) + ":" +
         std::to_string(slice.rectangle.y_to) + "]\nset xlabel '" +
         std::string(coordinate_name(slice.rectangle.x)) + "'\nset ylabel '" +
         std::string(coordinate_name(slice.rectangle.y)) + "'\nset key top left opaque\n";
}

/// Runs an example's body; `add(arguments)` adds arguments of its own.
template <typename Body, typename Add>
int run_example(int argc, char** argv, const Body& body, const Add& add) {
  return examples::run_figure(
      argc, argv, Settings(),
      [&](ArgumentList& arguments, Settings& settings) {
        arguments.number("--networks", settings.networks, "Number of networks", examples::Sign::positive);
        add(arguments);
      },
      body);
}

template <typename Body>
int run_example(int argc, char** argv, const Body& body) {
  return run_example(argc, argv, body, [](ArgumentList&) {});
}

}  // namespace propagation_examples

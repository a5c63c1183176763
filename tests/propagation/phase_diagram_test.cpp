#include "widelimit/propagation/phase_diagram.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/propagation/critical.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;

namespace {

const ParameterRectangle first_slice{Coordinate::alpha, 0.02, 0.95, Coordinate::sigma_w, 0.2, 4};
const ParameterRectangle second_slice{Coordinate::alpha_M, 0.02, 0.98, Coordinate::alpha_A, 0.02, 0.98};

Parameters at_gain(double sigma_w) {
  Parameters parameters;
  parameters.sigma_w = sigma_w;
  return parameters;
}

/// Interpolated y of a curve that is a graph over x.
double height_at(const BoundaryCurve& curve, double x) {
  for (std::size_t i = 0; i + 1 < curve.points.size(); ++i) {
    const BoundaryPoint &a = curve.points[i], &b = curve.points[i + 1];
    if ((a.x - x) * (b.x - x) <= 0) return a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x);
  }
  return std::nan("");
}

}  // namespace

TEST_CASE("phase diagram: every entry is the exponent at its point, whatever the threads") {
  const Axis x = evenly_spaced(Coordinate::alpha, 0.1, 0.9, 5);
  const Axis y = evenly_spaced(Coordinate::sigma_w, 0.5, 4, 4);
  Index reports = 0;
  PhaseOptions run;
  run.threads = 1;
  run.progress = [&](Index done, Index total) {
    CHECK(done == ++reports);
    CHECK(total == 4);
  };
  const PhaseDiagram diagram = phase_diagram({}, x, y, {}, run);
  CHECK(reports == 4);
  run = {};
  CHECK(phase_diagram({}, x, y, {}, run).lambda_g == diagram.lambda_g);
  for (Index row = 0; row < 4; ++row)
    for (Index column = 0; column < 5; ++column) {
      Parameters parameters = at_gain(y.values[static_cast<std::size_t>(row)]);
      parameters.alpha_A = parameters.alpha_M = x.values[static_cast<std::size_t>(column)];
      CHECK(diagram.lambda_a(row, column) == exponent(Exponent::angle, parameters, {}));
      CHECK(diagram.lambda_g(row, column) == exponent(Exponent::gradient, parameters, {}));
    }
}

TEST_CASE("phase diagram: any two parameters") {
  using enum Coordinate;
  const Coordinate all[] = {alpha_A, alpha_M, sigma_w, sigma_out, sigma_A, tokens, depth, mlp_depth};
  const auto axis = [](Coordinate coordinate) {
    if (coordinate == tokens) return Axis{coordinate, {2, 64}};
    if (coordinate == depth) return Axis{coordinate, {4, 16}};
    if (coordinate == mlp_depth) return Axis{coordinate, {1, 3}};
    return Axis{coordinate, {0.4, 0.7}};
  };
  for (const Coordinate x : all)
    for (const Coordinate y : all) {
      if (x == y) continue;
      const PhaseDiagram diagram = phase_diagram(at_gain(1.5), axis(x), axis(y));
      CHECK(diagram.lambda_a.allFinite());
      CHECK(diagram.lambda_g.allFinite());
      Parameters parameters = at_gain(1.5);
      ExponentOptions options;
      for (const auto& [coordinate, value] : {std::pair{x, axis(x).values[1]}, {y, axis(y).values[0]}}) {
        if (coordinate == alpha_A) parameters.alpha_A = value;
        if (coordinate == alpha_M) parameters.alpha_M = value;
        if (coordinate == sigma_w) parameters.sigma_w = value;
        if (coordinate == sigma_out) parameters.sigma_out = OutputGain::fixed(value);
        if (coordinate == sigma_A) parameters.sigma_A = value;
        if (coordinate == tokens) parameters.tokens = static_cast<Index>(value);
        if (coordinate == depth) options.depth = value;
        if (coordinate == mlp_depth) parameters.mlp_depth = static_cast<int>(value);
      }
      CHECK(diagram.lambda_g(0, 1) ==
            Approx(exponent(Exponent::gradient, parameters, options)).scale(0).epsilon(1e-13));
    }
}

TEST_CASE("phase diagram: the plateau of small gain and large strength sits at -ln(n) / L") {
  const PhaseDiagram diagram =
      phase_diagram({}, {Coordinate::alpha, {0.8, 0.9}}, {Coordinate::sigma_w, {0.2}});
  CHECK(diagram.lambda_g(0, 0) == Approx(-std::log(256) / 16).scale(0).epsilon(1e-3));
  CHECK(diagram.lambda_g(0, 1) == Approx(-std::log(256) / 16).scale(0).epsilon(1e-3));
}

TEST_CASE("boundary: traced points lie on it, from one side of the rectangle to another") {
  for (const Exponent which : {Exponent::angle, Exponent::gradient})
    for (const ParameterRectangle& rectangle : {first_slice, second_slice}) {
      const auto curves = trace_boundary(which, at_gain(2), rectangle);
      REQUIRE(curves.size() == 1);
      CHECK_FALSE(curves[0].closed);
      CHECK(curves[0].points.size() > 40);
      for (const BoundaryPoint& point : curves[0].points) {
        Parameters parameters = at_gain(2);
        if (rectangle.x == Coordinate::alpha) {
          parameters.alpha_A = parameters.alpha_M = point.x;
          parameters.sigma_w = point.y;
        } else {
          parameters.alpha_M = point.x;
          parameters.alpha_A = point.y;
        }
        CHECK(std::abs(exponent(which, parameters, {})) < 1e-11);
      }
    }
}

TEST_CASE("boundary: heights of the note's table, by another root finder") {
  const auto angle = trace_boundary(Exponent::angle, {}, first_slice);
  const auto gradient = trace_boundary(Exponent::gradient, {}, first_slice);
  for (const double alpha : {0.1, 0.3, 0.45, 0.5, 0.7}) {
    Parameters parameters;
    parameters.alpha_A = parameters.alpha_M = alpha;
    // Chords of a curve sampled at a fiftieth of the rectangle.
    CHECK(height_at(angle[0], alpha) ==
          Approx(*critical_value(Exponent::angle, Coordinate::sigma_w, parameters)).scale(0).epsilon(1e-3));
    CHECK(
        height_at(gradient[0], alpha) ==
        Approx(*critical_value(Exponent::gradient, Coordinate::sigma_w, parameters)).scale(0).epsilon(3e-3));
  }
}

TEST_CASE("boundary: the slope at the origin of the second slice") {
  const ParameterRectangle corner{Coordinate::alpha_M, 0.001, 0.05, Coordinate::alpha_A, 0.001, 0.05};
  const MlpStatistics mlp = mlp_statistics(at_gain(2));
  for (const Exponent which : {Exponent::angle, Exponent::gradient}) {
    const auto curves = trace_boundary(which, at_gain(2), corner);
    REQUIRE(curves.size() == 1);
    const BoundaryPoint& first = curves[0].points.front().x < curves[0].points.back().x
                                     ? curves[0].points.front()
                                     : curves[0].points.back();
    const double share = which == Exponent::angle ? 1 : 1 - 1.0 / 256;
    CHECK(first.y / first.x == Approx(std::sqrt((mlp.f - mlp.k_out) / share)).scale(0).epsilon(1e-5));
  }
}

TEST_CASE("boundary: the exponents' zeros cross where the one-block measure is used, not otherwise") {
  CHECK(boundary_intersections({}, first_slice).empty());
  ExponentOptions options;
  options.angle = AngleMeasure::one_block;
  const auto points = boundary_intersections({}, first_slice, options);
  REQUIRE(points.size() == 2);
  for (const BoundaryPoint& point : points) {
    Parameters parameters = at_gain(point.y);
    parameters.alpha_A = parameters.alpha_M = point.x;
    CHECK(std::abs(exponent(Exponent::angle, parameters, options)) < 1e-12);
    CHECK(std::abs(exponent(Exponent::gradient, parameters, options)) < 1e-12);
  }
  // The note's table: the one-block line lies above at 0.1, below at 0.2 to 0.4, above at 0.5.
  const auto [low, high] = std::minmax(points[0].x, points[1].x);
  CHECK(low > 0.1);
  CHECK(low < 0.2);
  CHECK(high > 0.4);
  CHECK(high < 0.5);
}

TEST_CASE("boundary: causal contours of the note") {
  Parameters parameters;
  parameters.tokens = 64;
  ExponentOptions options;
  options.mask = AttentionMask::causal;
  options.angle = AngleMeasure::one_block;
  const double alphas[] = {0.1, 0.3, 0.5, 0.7};
  const double gradient[] = {2.175, 1.999, 1.069, 0.503}, angle[] = {2.207, 2.246, 2.348, 2.610};
  for (int i = 0; i < 4; ++i) {
    parameters.alpha_A = parameters.alpha_M = alphas[i];
    CHECK(std::abs(*critical_value(Exponent::gradient, Coordinate::sigma_w, parameters, options) -
                   gradient[i]) < 1e-3);
    CHECK(std::abs(*critical_value(Exponent::angle, Coordinate::sigma_w, parameters, options) - angle[i]) <
          1e-3);
  }
}

TEST_CASE("boundary: numbers of tokens and blocks change continuously") {
  Parameters parameters = at_gain(2.3);
  parameters.alpha_A = parameters.alpha_M = 0.5;
  const ParameterRectangle rectangle{Coordinate::depth, 4, 40, Coordinate::tokens, 16, 1024};
  const auto curves = trace_boundary(Exponent::gradient, parameters, rectangle);
  REQUIRE(curves.size() == 1);
  const CollapsedPoint point = collapsed_point(parameters);
  for (const BoundaryPoint& at : curves[0].points)
    CHECK(std::abs(gradient_exponent(point, at.y, at.x)) < 1e-11);
}

TEST_CASE("phase rectangle: wrong arguments are named") {
  const Axis x = evenly_spaced(Coordinate::alpha, 0.1, 0.9, 3);
  CHECK_THROWS_WITH_AS((void)phase_diagram({}, x, evenly_spaced(Coordinate::alpha_A, 0.1, 0.9, 3)),
                       "phase_diagram: the axes must set different parameters, got alpha and alpha_A",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)phase_diagram({}, {Coordinate::tokens, {2.5}}, x),
                       "phase_diagram: tokens must be an integer, got 2.5", ArgumentError);
  CHECK_THROWS_WITH_AS((void)phase_diagram({}, x, {Coordinate::sigma_w, {-1, 2}}),
                       "phase_diagram: sigma_w must be at least 0 and finite, got -1", ArgumentError);
  CHECK_THROWS_WITH_AS((void)phase_diagram({}, {Coordinate::alpha, {0.5, 1.5}}, {Coordinate::sigma_w, {1}}),
                       "phase_diagram: alpha_A must lie in [0, 1], got 1.5", ArgumentError);
  for (const Coordinate coordinate : {Coordinate::tokens, Coordinate::mlp_depth})
    CHECK_THROWS_WITH_AS((void)phase_diagram({}, x, {coordinate, {2, 1e30}}),
                         doctest::Contains("expected 0 to 1e+07, got 1e+30"), ArgumentError);
  ExponentOptions causal;
  causal.mask = AttentionMask::causal;
  causal.depth = 1e30;
  CHECK_THROWS_WITH_AS((void)exponent(Exponent::gradient, {}, causal),
                       "depth: expected 0 to 1e+07, got 1e+30", ArgumentError);
  CHECK_THROWS_WITH_AS((void)evenly_spaced(Coordinate::alpha, 0.9, 0.1, 3),
                       "evenly_spaced: alpha must rise between finite ends, got 0.9 to 0.1", ArgumentError);
  CHECK_THROWS_WITH_AS((void)coordinate_of("beta"),
                       doctest::Contains("coordinate: expected one of alpha, alpha_A"), ArgumentError);
  for (const Coordinate coordinate : {Coordinate::alpha, Coordinate::sigma_out, Coordinate::mlp_depth})
    CHECK(coordinate_of(coordinate_name(coordinate)) == coordinate);
  ParameterRectangle rectangle = first_slice;
  rectangle.y = Coordinate::mlp_depth;
  CHECK_THROWS_WITH_AS((void)trace_boundary(Exponent::angle, {}, rectangle),
                       doctest::Contains("mlp_depth changes in steps"), ArgumentError);
  rectangle = first_slice;
  rectangle.x_to = rectangle.x_from;
  CHECK_THROWS_WITH_AS((void)trace_boundary(Exponent::angle, {}, rectangle),
                       doctest::Contains("the rectangle must not be empty"), ArgumentError);
  ExponentOptions options;
  options.mask = AttentionMask::causal;
  options.formula = Formula::published;
  CHECK_THROWS_WITH_AS((void)exponent(Exponent::angle, {}, options),
                       "exponent: the published formula is for full attention, got a causal mask",
                       ArgumentError);
  std::stop_source stop;
  stop.request_stop();
  PhaseOptions run;
  run.stop = stop.get_token();
  CHECK_THROWS_AS((void)phase_diagram({}, x, {Coordinate::sigma_w, {1}}, {}, run), Cancelled);
}

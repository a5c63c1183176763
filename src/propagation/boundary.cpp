#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "propagation/arguments.hpp"
#include "propagation/collapsed.hpp"
#include "propagation/roots.hpp"
#include "propagation/skips.hpp"
#include "widelimit/propagation/exponent_at.hpp"

namespace widelimit::propagation {

namespace {

using Vector2 = Eigen::Vector2d;  // position in the rectangle, sides 1

constexpr double smallest_step = 1e-7;
constexpr double difference_step = 1e-6;
constexpr double sharpest_turn = 0.9;  // cosine of the angle between successive tangents
constexpr Index most_points = 100'000;

/// An exponent over a rectangle in scaled coordinates.
class ExponentFunction {
 public:
  ExponentFunction(Exponent which, const Parameters& base, const ParameterRectangle& rectangle,
                   const ExponentOptions& options)
      : which_{which}, rectangle_{rectangle}, point_{parameter_point(base, options)} {
    set(Vector2(0.5, 0.5));
    // An axis that leaves the MLP alone needs its statistics once for the whole rectangle.
    same_mlp_ = !changes_mlp(rectangle.x) && !changes_mlp(rectangle.y);
    if (same_mlp_) mlp_ = unchecked_mlp_statistics(point_.parameters);
  }

  double operator()(const Vector2& position) {
    set(position);
    return same_mlp_ ? exponent_at(which_, point_, mlp_) : exponent_at(which_, point_);
  }

  /// One-sided at the rectangle's sides.
  Vector2 gradient(const Vector2& position) {
    Vector2 result;
    for (int axis = 0; axis < 2; ++axis) {
      Vector2 low = position, high = position;
      low(axis) = std::max(position(axis) - difference_step, 0.0);
      high(axis) = std::min(position(axis) + difference_step, 1.0);
      result(axis) = ((*this)(high) - (*this)(low)) / (high(axis) - low(axis));
    }
    return result;
  }

  [[nodiscard]] BoundaryPoint unscaled(const Vector2& position) const {
    return {rectangle_.x_from + (rectangle_.x_to - rectangle_.x_from) * position(0),
            rectangle_.y_from + (rectangle_.y_to - rectangle_.y_from) * position(1)};
  }
  [[nodiscard]] Vector2 scaled(const BoundaryPoint& point) const {
    return {(point.x - rectangle_.x_from) / (rectangle_.x_to - rectangle_.x_from),
            (point.y - rectangle_.y_from) / (rectangle_.y_to - rectangle_.y_from)};
  }

 private:
  void set(const Vector2& position) {
    const BoundaryPoint point = unscaled(position);
    set_coordinate(point_, rectangle_.x, point.x);
    set_coordinate(point_, rectangle_.y, point.y);
  }

  Exponent which_;
  ParameterRectangle rectangle_;
  ParameterPoint point_;
  bool same_mlp_ = false;
  MlpStatistics mlp_;
};

bool inside(const Vector2& position) { return position.minCoeff() >= 0 && position.maxCoeff() <= 1; }

/// Largest s up to `length` with origin + s direction inside.
double reach(const Vector2& origin, const Vector2& direction, double length) {
  for (int axis = 0; axis < 2; ++axis) {
    if (direction(axis) > 0) length = std::min(length, (1 - origin(axis)) / direction(axis));
    if (direction(axis) < 0) length = std::min(length, -origin(axis) / direction(axis));
  }
  return std::max(length, 0.0);
}

/// The root nearest to `centre` along `direction`, within `width` to each side and the rectangle.
std::optional<Vector2> root_along(ExponentFunction& function, const Vector2& centre, const Vector2& direction,
                                  double width) {
  const double above = reach(centre, direction, width), below = reach(centre, -direction, width);
  const auto at = [&](double s) { return Vector2((centre + s * direction).cwiseMax(0).cwiseMin(1)); };
  // Narrow brackets come first, so that of several roots the nearest is found.
  for (const double share : {0.1, 0.3, 1.0}) {
    const auto root =
        bracketed_root([&](double s) { return function(at(s)); }, -share * below, share * above);
    if (root) return at(*root);
  }
  return std::nullopt;
}

struct Curve {
  std::vector<Vector2> points;
  bool closed = false;
};

/// Continuation of one curve from a point on it.
class Tracer {
 public:
  Tracer(ExponentFunction& function, double largest_step)
      : function_{function}, largest_step_{largest_step} {}

  Curve follow(const Vector2& start, double sign) {
    Curve curve{{start}};
    std::vector<Vector2>& points = curve.points;
    Vector2 direction = sign * tangent(start);
    double step = largest_step_ / 4;
    // Each round predicts along the tangent and corrects by a root across it; steps are halved where that fails.
    while (static_cast<Index>(points.size()) < most_points && step > smallest_step) {
      const Vector2& here = points.back();
      const Vector2 predicted = here + step * direction;
      // Beside a side the step is halved until the curve ends close to it.
      if (!inside(predicted)) {
        if (step > largest_step_ / 100) {
          step /= 2;
          continue;
        }
        if (const auto end = end_on_side(here, direction, step)) points.push_back(*end);
        break;
      }
      const Vector2 normal(-direction(1), direction(0));
      const auto next = root_along(function_, predicted, normal, step);
      if (!next || !turn(*next, direction)) {
        step /= 2;
        continue;
      }
      points.push_back(*next);
      // Back at the start, which the first steps are still near to.
      curve.closed = points.size() > 4 && (*next - start).norm() < 0.7 * step;
      if (curve.closed) break;
      step = std::min(1.5 * step, largest_step_);
    }
    return curve;
  }

 private:
  [[nodiscard]] Vector2 tangent(const Vector2& position) {
    const Vector2 gradient = function_.gradient(position);
    return Vector2(-gradient(1), gradient(0)).normalized();
  }

  /// Turns `direction` to the tangent at a new point; false if that is too sharp a turn.
  bool turn(const Vector2& position, Vector2& direction) {
    Vector2 next = tangent(position);
    // The gradient turns its sign where curves cross; the curve goes on as it came.
    if (next.dot(direction) < 0) next = -next;
    if (!(next.dot(direction) > sharpest_turn)) return false;
    direction = next;
    return true;
  }

  std::optional<Vector2> end_on_side(const Vector2& here, const Vector2& direction, double step) {
    const double length = reach(here, direction, step);
    const Vector2 end = (here + length * direction).cwiseMax(0).cwiseMin(1);
    const int side = std::min(end(0), 1 - end(0)) < std::min(end(1), 1 - end(1)) ? 0 : 1;
    const Vector2 along = side == 0 ? Vector2(0, 1) : Vector2(1, 0);
    return root_along(function_, end, along, 4 * step);
  }

  ExponentFunction& function_;
  double largest_step_;
};

double distance_to(const std::vector<Vector2>& curve, const Vector2& point) {
  double best = HUGE_VAL;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const Vector2& from = curve[i];
    const Vector2 along = i + 1 < curve.size() ? Vector2(curve[i + 1] - from) : Vector2(0, 0);
    const double length = along.squaredNorm();
    const double s = length > 0 ? std::clamp((point - from).dot(along) / length, 0.0, 1.0) : 0;
    best = std::min(best, (point - from - s * along).norm());
  }
  return best;
}

/// Roots on a grid of lines, each line cut into as many pieces.
std::vector<Vector2> roots_on_lines(ExponentFunction& function, Index lines) {
  std::vector<Vector2> roots;
  const auto count = static_cast<double>(lines);
  for (int axis = 0; axis < 2; ++axis)
    for (Index line = 0; line <= lines; ++line)
      for (Index piece = 0; piece < lines; ++piece) {
        const auto at = [&](double s) {
          Vector2 position;
          position(axis) = s;
          position(1 - axis) = static_cast<double>(line) / count;
          return position;
        };
        const auto root =
            bracketed_root([&](double s) { return function(at(s)); }, static_cast<double>(piece) / count,
                           static_cast<double>(piece + 1) / count);
        if (root) roots.push_back(at(*root));
      }
  return roots;
}

void require_rectangle(const Parameters& base, const ParameterRectangle& rectangle,
                       const ExponentOptions& options, const TraceOptions& trace) {
  constexpr const char* where = "trace_boundary";
  if (!(rectangle.x_from < rectangle.x_to) || !(rectangle.y_from < rectangle.y_to))
    throw ArgumentError(fmt::format("{}: the rectangle must not be empty, got {} .. {} by {} .. {}", where,
                                    rectangle.x_from, rectangle.x_to, rectangle.y_from, rectangle.y_to));
  for (const Coordinate axis : {rectangle.x, rectangle.y}) {
    const bool counts = axis == Coordinate::tokens || axis == Coordinate::depth;
    const bool over_depth = options.mask == AttentionMask::causal || !has_fixed_norm(base);
    if (axis == Coordinate::mlp_depth || (counts && over_depth))
      throw ArgumentError(fmt::format(
          "{}: {} changes in steps, so exponents have no curve of zeros over it; take a phase diagram", where,
          coordinate_name(axis)));
  }
  require_positive(where, "largest_step", trace.largest_step);
  require_at_least(where, "scan_lines", trace.scan_lines, 1);
  // Both corners must be legal; the rectangle between them then is.
  for (const double share : {0.0, 1.0}) {
    ParameterPoint corner = parameter_point(base, options);
    set_coordinate(corner, rectangle.x, rectangle.x_from + share * (rectangle.x_to - rectangle.x_from));
    set_coordinate(corner, rectangle.y, rectangle.y_from + share * (rectangle.y_to - rectangle.y_from));
    require_parameters(where, corner.parameters);
  }
}

std::vector<Curve> traced(ExponentFunction& function, const TraceOptions& trace) {
  std::vector<Curve> curves;
  Tracer tracer(function, trace.largest_step);
  // Every curve meets the lines many times; only the first root on it starts a trace.
  for (const Vector2& root : roots_on_lines(function, trace.scan_lines)) {
    const bool known = std::any_of(curves.begin(), curves.end(), [&](const Curve& curve) {
      return distance_to(curve.points, root) < 0.1 * trace.largest_step;
    });
    if (known) continue;
    Curve curve = tracer.follow(root, 1);
    if (!curve.closed) {
      // The start is the first point of both directions and must stand once.
      const std::vector<Vector2> backward = tracer.follow(root, -1).points;
      curve.points.insert(curve.points.begin(), backward.rbegin(), backward.rend() - 1);
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

/// The crossing of two segments, if any.
std::optional<Vector2> crossing(const Vector2& a, const Vector2& b, const Vector2& c, const Vector2& d) {
  Eigen::Matrix2d system;
  system << b - a, c - d;
  // Parallel segments have no crossing.
  if (std::abs(system.determinant()) < 1e-300) return std::nullopt;
  const Vector2 shares = system.inverse() * (c - a);
  if (shares.minCoeff() < 0 || shares.maxCoeff() > 1) return std::nullopt;
  return a + shares(0) * (b - a);
}

std::vector<Vector2> crossings(const std::vector<Vector2>& a, const std::vector<Vector2>& b) {
  std::vector<Vector2> points;
  for (std::size_t i = 0; i + 1 < a.size(); ++i)
    for (std::size_t j = 0; j + 1 < b.size(); ++j)
      if (const auto point = crossing(a[i], a[i + 1], b[j], b[j + 1])) points.push_back(*point);
  return points;
}

/// Newton's method for both exponents zero; nothing if it leaves the neighbourhood.
std::optional<Vector2> refined(ExponentFunction& first, ExponentFunction& second, const Vector2& start) {
  Vector2 position = start;
  for (int step = 0; step < 50; ++step) {
    Eigen::Matrix2d jacobian;
    jacobian << first.gradient(position).transpose(), second.gradient(position).transpose();
    const Vector2 change = jacobian.fullPivLu().solve(Vector2(first(position), second(position)));
    position -= change;
    // Far from the crossing, Newton's method would find a crossing of other curves.
    if (!position.allFinite() || !inside(position) || (position - start).norm() > 0.1) return std::nullopt;
    if (change.norm() < 1e-13) return position;
  }
  return std::nullopt;
}

}  // namespace

std::vector<BoundaryCurve> trace_boundary(Exponent which, const Parameters& base,
                                          const ParameterRectangle& rectangle, const ExponentOptions& options,
                                          const TraceOptions& trace) {
  require_rectangle(base, rectangle, options, trace);
  ExponentFunction function(which, base, rectangle, options);
  std::vector<BoundaryCurve> result;
  for (const Curve& curve : traced(function, trace)) {
    BoundaryCurve boundary{{}, curve.closed};
    for (const Vector2& position : curve.points) boundary.points.push_back(function.unscaled(position));
    result.push_back(std::move(boundary));
  }
  return result;
}

std::vector<BoundaryPoint> boundary_intersections(const Parameters& base, const ParameterRectangle& rectangle,
                                                  const ExponentOptions& options, const TraceOptions& trace) {
  require_rectangle(base, rectangle, options, trace);
  ExponentFunction angle(Exponent::angle, base, rectangle, options);
  ExponentFunction gradient(Exponent::gradient, base, rectangle, options);
  const std::vector<Curve> angle_curves = traced(angle, trace), gradient_curves = traced(gradient, trace);
  std::vector<BoundaryPoint> points;
  for (const Curve& a : angle_curves)
    for (const Curve& g : gradient_curves)
      for (const Vector2& start : crossings(a.points, g.points)) {
        const auto point = refined(angle, gradient, start);
        if (!point) continue;
        const bool known = std::any_of(points.begin(), points.end(), [&](const BoundaryPoint& other) {
          return (angle.scaled(other) - *point).norm() < 1e-9;
        });
        if (!known) points.push_back(angle.unscaled(*point));
      }
  return points;
}

}  // namespace widelimit::propagation

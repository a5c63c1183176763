#include "covariance_sde/narrow_law.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace widelimit::covariance_sde {

namespace {

using Eigen::Index;

constexpr Index modes = 64;
constexpr double narrow = 0.06;      // deviation over the scale of the drift
constexpr double log_step = 0.01;    // in the logarithm of time
constexpr double first_move = 1e-7;  // how far the law moves by its first time, over the scale of the drift
constexpr double node_reach = 9.5, node_spacing = 0.15;
constexpr double largest_last_coefficient = 1e-11;
constexpr Index last_coefficients = modes / 8;

/// He_k(xi) / sqrt(k!), k = 0 .. modes - 1.
Vector<double> hermite(double xi) {
  Vector<double> h(modes);
  h(0) = 1;
  h(1) = xi;
  for (Index k = 1; k + 1 < modes; ++k) {
    const auto n = static_cast<double>(k);
    h(k + 1) = (xi * h(k) - std::sqrt(n) * h(k - 1)) / std::sqrt(n + 1);
  }
  return h;
}

double standard_normal_density(double xi) { return std::exp(-xi * xi / 2) / std::sqrt(2 * std::numbers::pi); }

/// Equally spaced nodes: of integrands that vanish at both ends with all derivatives.
struct HermiteNodes {
  Vector<double> xi;
  Matrix<double> weighted_values;  ///< [node][mode], phi(xi) times the spacing in them
  Matrix<double> values;           ///< [node][mode]

  HermiteNodes() {
    const auto half = static_cast<Index>(node_reach / node_spacing), count = 2 * half + 1;
    xi.resize(count);
    values.resize(count, modes);
    weighted_values.resize(count, modes);
    for (Index q = 0; q < count; ++q) {
      xi(q) = node_spacing * static_cast<double>(q - half);
      values.row(q) = hermite(xi(q)).transpose();
      weighted_values.row(q) = values.row(q) * (standard_normal_density(xi(q)) * node_spacing);
    }
  }
};

/// Centre, logarithm of the deviation, coefficients 1, 2, ...
using State = Vector<double>;

/// Derivatives by the logarithm of time.
class FrameEquation {
 public:
  explicit FrameEquation(const DriftedDiffusion& diffusion) : diffusion_{diffusion} {
    roots_.resize(modes);
    for (Index k = 0; k < modes; ++k) roots_(k) = std::sqrt(static_cast<double>(k));
  }

  [[nodiscard]] State operator()(const State& state, double time) const {
    const double centre = state(0), deviation = std::exp(state(1)), s = diffusion_.variance;
    const double above = diffusion_.drift(centre + deviation), below = diffusion_.drift(centre - deviation);
    // What a linear drift of the same mean and slope over the law would do.
    const double mean = (above + below) / 2, slope = (above - below) / (2 * deviation);
    const double rate = s / (2 * deviation * deviation);
    Vector<double> flux(nodes_.xi.size());
    for (Index q = 0; q < flux.size(); ++q) {
      const double distance = deviation * nodes_.xi(q);
      flux(q) = (diffusion_.drift(centre + distance) - mean - slope * distance) / deviation;
    }
    // The density is phi times 1 + sum_k c_k h_k, whose first coefficient is always 1.
    flux.array() *= (nodes_.values.rightCols(modes - 1) * state.tail(modes - 1)).array() + 1;
    const Vector<double> projected = nodes_.weighted_values.leftCols(modes - 1).transpose() * flux;
    State derivative(modes + 1);
    // The frame takes up the mean and the slope of the drift, so that only what is not linear reaches the coefficients.
    derivative(0) = mean;
    derivative(1) = slope + rate;
    derivative.tail(modes - 1) =
        roots_.tail(modes - 1).cwiseProduct(projected) -
        rate * roots_.tail(modes - 1).cwiseAbs2().cwiseProduct(state.tail(modes - 1));
    return derivative * time;
  }

 private:
  const DriftedDiffusion& diffusion_;
  HermiteNodes nodes_;
  Vector<double> roots_;
};

/// The rule of Runge and Kutta of fourth order from time to time e^step.
State advanced(const FrameEquation& equation, const State& state, double time, double step) {
  const double middle = time * std::exp(step / 2), end = time * std::exp(step);
  const State k1 = equation(state, time), k2 = equation(state + step / 2 * k1, middle),
              k3 = equation(state + step / 2 * k2, middle), k4 = equation(state + step * k3, end);
  return state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
}

/// By this time the law has moved by 1e-7 of what is left and of the drift's scale: it is normal still.
double first_time(const DriftedDiffusion& diffusion, double time) {
  const double scale = diffusion.scale(diffusion.start), speed = std::abs(diffusion.drift(diffusion.start));
  return std::min(first_move * time, first_move * scale / speed);
}

/// Whether the law is narrow enough, and its expansion ends.
bool is_known(const DriftedDiffusion& diffusion, const State& state) {
  return std::exp(state(1)) < narrow * diffusion.scale(state(0)) &&
         state.tail(last_coefficients).cwiseAbs().maxCoeff() < largest_last_coefficient;
}

}  // namespace

NarrowLaw narrow_law(const DriftedDiffusion& diffusion, double time) {
  const FrameEquation equation(diffusion);
  double now = first_time(diffusion, time);
  State state = State::Zero(modes + 1);
  state(0) = diffusion.start + now * diffusion.drift(diffusion.start);
  state(1) = std::log(diffusion.variance * now) / 2;
  while (now < time) {
    const double step = std::min(log_step, std::log(time / now));
    State next = advanced(equation, state, now, step);
    if (!is_known(diffusion, next)) break;
    now = step < log_step ? time : now * std::exp(step);
    state = std::move(next);
  }
  NarrowLaw law{now, state(0), std::exp(state(1)), state.tail(modes)};
  law.coefficients(0) = 1;
  return law;
}

double NarrowLaw::cumulative(double x) const {
  const double xi = (x - centre) / deviation;
  const Vector<double> h = hermite(xi);
  double sum = 0;
  // The integral of phi h_k from -infinity to xi is -phi(xi) h_{k-1}(xi) / sqrt(k).
  for (Index k = 1; k < modes; ++k) sum += coefficients(k) * h(k - 1) / std::sqrt(static_cast<double>(k));
  return std::erfc(-xi / std::numbers::sqrt2) / 2 - standard_normal_density(xi) * sum;
}

double NarrowLaw::density(double x) const {
  const double xi = (x - centre) / deviation;
  return standard_normal_density(xi) * hermite(xi).dot(coefficients) / deviation;
}

}  // namespace widelimit::covariance_sde

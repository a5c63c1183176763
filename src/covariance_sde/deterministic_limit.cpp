#include "widelimit/covariance_sde/deterministic_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/numeric/odeint.hpp>
#include <cmath>
#include <numbers>
#include <vector>

#include "covariance_sde/arguments.hpp"
#include "covariance_sde/step_kernel.hpp"
#include "covariance_sde/unchecked_drift.hpp"

namespace widelimit::covariance_sde {

namespace {

using Coordinates = std::vector<double>;

/// Of an entry, over those of the start and 1.
constexpr double largest_growth = 1e12;

/// Dormand-Prince from time 0. A trial step that `within` does not hold of, at its ends or between them, is a step too
/// long, not the solution's; fails(now) is called where steps have become so short that time stands still.
template <typename System, typename Within, typename Fails>
void integrate(const System& rate_of, Coordinates& state, double time, double tolerance, const Within& within,
               const Fails& fails) {
  namespace odeint = boost::numeric::odeint;
  constexpr double shortening = 0.125;
  auto stepper =
      odeint::make_controlled(1e-3 * tolerance, tolerance, odeint::runge_kutta_dopri5<Coordinates>());
  // The first step is a guess; the control shortens it where it is too long.
  double now = 0, step = time / 100 > 0 ? time / 100 : time;
  while (now < time) {
    if (!(now + step > now)) fails(now);
    const double tried = std::min(step, time - now);
    bool inside = true;
    const auto watched = [&](const Coordinates& at, Coordinates& rate, double moment) {
      inside = inside && within(at);
      if (inside)
        rate_of(at, rate, moment);
      else
        std::fill(rate.begin(), rate.end(), 0.0);
    };
    Coordinates next = state;
    double moment = now, suggested = tried;
    const auto result = stepper.try_step(watched, next, moment, suggested);
    if (!inside || !within(next)) {
      step = shortening * tried;
      // The stepper keeps the rate at the end of its last step, which is not that of this state.
      stepper.reset();
      continue;
    }
    step = suggested;
    if (result == odeint::fail) continue;
    state = next;
    now = tried < time - now ? moment : time;
  }
}

}  // namespace

Matrix<double> drift_flow(const SdeModel& model, const Matrix<double>& v0, double time,
                          double relative_tolerance) {
  require_model("drift_flow", model);
  require_covariance("drift_flow", v0);
  require_not_negative("drift_flow", "time", time);
  require_positive("drift_flow", "relative_tolerance", relative_tolerance);
  const Index m = v0.rows();
  const auto matrix_of = [m](const Coordinates& state) {
    return Eigen::Map<const Matrix<double>>(state.data(), m, m);
  };
  const auto system = [&](const Coordinates& state, Coordinates& rate, double) {
    Eigen::Map<Matrix<double>>(rate.data(), m, m) = unchecked_drift(model, matrix_of(state));
  };
  const double largest = largest_growth * std::max(1.0, v0.cwiseAbs().maxCoeff());
  const auto within = [&](const Coordinates& state) {
    return matrix_of(state).allFinite() && matrix_of(state).cwiseAbs().maxCoeff() < largest;
  };
  Coordinates state(v0.data(), v0.data() + v0.size());
  // Adaptive steps would follow an explosion with ever shorter steps and never end.
  const auto fails = [&](double now) {
    throw NumericalError(
        fmt::format("drift_flow: the drift explodes at time {:.6g} of {:g}, where an entry is {:.3g}", now,
                    time, matrix_of(state).cwiseAbs().maxCoeff()));
  };
  integrate(system, state, time, relative_tolerance, within, fails);
  return matrix_of(state);
}

Matrix<double> commuting_limit(const Matrix<double>& v0, double time, Shortcut shortcut) {
  require_covariance("commuting_limit", v0);
  require_not_negative("commuting_limit", "time", time);
  const Index m = v0.rows();
  // On the angle, d theta / dt = -(sin theta - theta cos theta) / (pi sin theta) is smooth at both ends.
  const auto system = [](const Coordinates& theta, Coordinates& rate, double) {
    for (std::size_t i = 0; i < theta.size(); ++i) {
      const double sine = std::sin(theta[i]);
      rate[i] = sine > 0
                    ? -sine_minus_theta_cosine(theta[i], sine, std::cos(theta[i])) / (std::numbers::pi * sine)
                    : 0;
    }
  };
  const double growth = shortcut == Shortcut::unit ? std::exp(time) : 1;
  Matrix<double> v = v0;
  for (Index a = 0; a < m; ++a)
    for (Index b = 0; b < a; ++b) {
      const double norm = std::sqrt(v0(a, a) * v0(b, b));
      if (!(norm > 0)) continue;
      Coordinates theta{std::acos(std::clamp(v0(a, b) / norm, -1.0, 1.0))};
      integrate(
          system, theta, time, 1e-13, [](const Coordinates& at) { return std::isfinite(at[0]); },
          [](double) { throw NumericalError("commuting_limit: the angle cannot be followed"); });
      v(a, b) = v(b, a) = norm * std::cos(theta[0]);
    }
  return growth * v;
}

}  // namespace widelimit::covariance_sde

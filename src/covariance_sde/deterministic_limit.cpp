#include "widelimit/covariance_sde/deterministic_limit.hpp"

#include <fmt/format.h>

#include <boost/numeric/odeint.hpp>
#include <cmath>
#include <numbers>
#include <vector>

#include "covariance_sde/arguments.hpp"
#include "covariance_sde/step_kernel.hpp"
#include "widelimit/covariance_sde/coefficients.hpp"

namespace widelimit::covariance_sde {

namespace {

using Coordinates = std::vector<double>;

constexpr double largest_entry = 1e12;

template <typename System>
void integrate(const System& system, Coordinates& state, double time, double tolerance) {
  namespace odeint = boost::numeric::odeint;
  if (time == 0) return;
  const auto stepper =
      odeint::make_controlled(1e-3 * tolerance, tolerance, odeint::runge_kutta_dopri5<Coordinates>());
  // The first step is a guess; the control shortens it where it is too long.
  odeint::integrate_adaptive(stepper, system, state, 0.0, time, time / 100);
}

}  // namespace

Matrix<double> drift_flow(const SdeModel& model, const Matrix<double>& v0, double time,
                          double relative_tolerance) {
  require_covariance("drift_flow", v0);
  require_not_negative("drift_flow", "time", time);
  require_positive("drift_flow", "relative_tolerance", relative_tolerance);
  const Index m = v0.rows();
  const auto system = [&](const Coordinates& state, Coordinates& rate, double now) {
    const Eigen::Map<const Matrix<double>> v(state.data(), m, m);
    const double size = v.cwiseAbs().maxCoeff();
    // Adaptive steps would follow an explosion with ever shorter steps and never end.
    if (!(size < largest_entry))
      throw NumericalError(fmt::format("drift_flow: the drift explodes, an entry passed {} at time {} of {}",
                                       largest_entry, now, time));
    Eigen::Map<Matrix<double>>(rate.data(), m, m) = drift(model, v);
  };
  Coordinates state(v0.data(), v0.data() + v0.size());
  integrate(system, state, time, relative_tolerance);
  return Eigen::Map<const Matrix<double>>(state.data(), m, m);
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
      integrate(system, theta, time, 1e-13);
      v(a, b) = v(b, a) = norm * std::cos(theta[0]);
    }
  return growth * v;
}

}  // namespace widelimit::covariance_sde

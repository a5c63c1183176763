#include "widelimit/covariance_sde/time_step.hpp"

#include <fmt/format.h>

#include "covariance_sde/arguments.hpp"
#include "covariance_sde/step_kernel.hpp"
#include "covariance_sde/step_limits.hpp"

namespace widelimit::covariance_sde {

namespace {

using Kernel = StepKernel<Eigen::Dynamic>;

void require_step(std::string_view where, const Matrix<double>& v, const StepNoise& noise) {
  require_covariance(where, v);
  require_shape(where, "g1", noise.g1, v.rows(), v.rows());
  require_shape(where, "g2", noise.g2, v.rows(), v.rows());
}

[[noreturn]] void fail_outside_cone(std::string_view where) {
  throw NumericalError(fmt::format(
      "{}: the covariance is not positive semidefinite to rounding; clip its spectrum first", where));
}

}  // namespace

void require_full_attention(std::string_view where, const SdeModel& model) {
  if (model.attention_drift > 0 && model.mask != AttentionMask::full)
    throw ArgumentError(
        fmt::format("{}: needs full attention, got a causal mask; take the Euler-Maruyama scheme "
                    "for it",
                    where));
}

void require_step_size(std::string_view where, const SdeModel& model, double step) {
  require_positive(where, "step", step);
  const double gap = model.slopes.plus - model.slopes.minus;
  const double rate = model.relu_drift * gap * gap;
  // Up to here the ReLU step stays in the cone: (h / 2) w_1 (c_+ - c_-)^2 / 4 <= 1 (section 5.3).
  if (step * rate > 8)
    throw ArgumentError(
        fmt::format("{}: the geometric scheme needs step * relu_drift * (c_plus - c_minus)^2 <= 8, got "
                    "{}; take a step of at most {}",
                    where, step * rate, 8 / rate));
}

Matrix<double> noise_increment(const SdeModel& model, const Matrix<double>& v, const StepNoise& noise) {
  require_step("noise_increment", v, noise);
  Kernel kernel(model, v.rows());
  Kernel::Square n(v.rows(), v.rows());
  if (!kernel.noise(v, noise.g1 + noise.g1.transpose(), noise.g2, n)) fail_outside_cone("noise_increment");
  return n;
}

Matrix<double> euler_maruyama_step(const SdeModel& model, const Matrix<double>& v, double step,
                                   const StepNoise& noise) {
  require_step("euler_maruyama_step", v, noise);
  require_positive("euler_maruyama_step", "step", step);
  Kernel kernel(model, v.rows());
  Kernel::Square next = v, n(v.rows(), v.rows());
  if (!kernel.euler_maruyama(next, step, noise.g1 + noise.g1.transpose(), noise.g2, n))
    fail_outside_cone("euler_maruyama_step");
  return next;
}

Matrix<double> geometric_step(const SdeModel& model, const Matrix<double>& v, double step,
                              const StepNoise& noise) {
  require_step("geometric_step", v, noise);
  require_full_attention("geometric_step", model);
  require_step_size("geometric_step", model, step);
  Kernel kernel(model, v.rows());
  Kernel::Square next = v;
  if (!kernel.geometric(next, step, noise.g1 + noise.g1.transpose(), noise.g2))
    fail_outside_cone("geometric_step");
  return next;
}

}  // namespace widelimit::covariance_sde

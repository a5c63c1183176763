#include "widelimit/covariance_sde/simulate.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "covariance_sde/path_bounds.hpp"
#include "covariance_sde/step_kernel.hpp"
#include "covariance_sde/step_limits.hpp"
#include "numerics/count.hpp"
#include "numerics/tasks.hpp"
#include "widelimit/covariance_sde/coefficients.hpp"
#include "widelimit/numerics/random_stream.hpp"
#include "widelimit/numerics/symmetric_root.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::covariance_sde {

namespace {

using numerics::RandomStream;

/// Steps in proportion to less would not end.
constexpr double smallest_step_control = 1e-6;

constexpr double clipped_eigenvalue = 1e-12;  // relative to the largest

/// Number of equal steps that cover the times between two. (to - from) / h is often an integer only up to
/// rounding, which must not add a step.
Index step_count(double from, double to, double max_step) {
  // The factor takes rounding of the quotient for what it is.
  const double steps = std::max(1.0, std::ceil((to - from) / max_step * (1 - 1e-12)));
  return numerics::checked_count(
      steps, numerics::most_steps,
      fmt::format("simulate: steps of max_step {:g} from time {:g} to {:g}", max_step, from, to));
}

void require_options(const SdeModel& model, const Matrix<double>& v0, const SimulationOptions& options) {
  constexpr std::string_view where = "simulate";
  require_model(where, model);
  require_covariance(where, v0);
  require_bounds(where, options.bounds);
  require_start(where, v0, options.bounds);
  require_at_least(where, "paths", options.paths, 1);
  require_at_least(where, "threads", options.threads, 0);
  require_positive(where, "max_step", options.max_step);
  if (options.step_control && *options.step_control != 0) {
    require_positive(where, "step_control", *options.step_control);
    if (*options.step_control < smallest_step_control)
      throw ArgumentError(fmt::format("simulate: step_control must be 0 or at least {:g}, got {:g}",
                                      smallest_step_control, *options.step_control));
  }
  if (options.times.empty()) throw ArgumentError("simulate: times must hold at least the horizon, got none");
  double last = 0;
  for (const double time : options.times) {
    if (!(time > last) || !std::isfinite(time))
      throw ArgumentError(fmt::format(
          "simulate: times must be positive, finite and increasing, got {} after {}", time, last));
    static_cast<void>(step_count(last, time, options.max_step));
    last = time;
  }
  if (options.scheme == StepScheme::geometric) {
    require_full_attention(where, model);
    require_step_size(where, model, options.max_step);
  }
}

bool attends(const SdeModel& model) { return model.attention_drift > 0 || model.attention_noise > 0; }

/// One path after another, with the workspace for them.
template <int M>
class PathRunner {
 public:
  using Kernel = StepKernel<M>;
  using Square = typename Kernel::Square;

  PathRunner(const SdeModel& model, const Matrix<double>& v0, const SimulationOptions& options)
      : model_{model},
        options_{options},
        stop_{options.stop},
        start_{v0},
        kernel_(model, v0.rows()),
        step_control_{options.step_control.value_or(attends(model) ? default_step_control : 0)},
        s_(v0),
        g2_(v0),
        scratch_(v0) {}

  void run(Index path, CovarianceEnsemble& ensemble) {
    RandomStream stream(options_.seed, static_cast<std::uint64_t>(path));
    PathOutcome outcome;
    v_ = start_;
    double time = 0;
    for (std::size_t k = 0; k < options_.times.size(); ++k) {
      if (outcome.end == PathEnd::horizon) advance(stream, time, options_.times[k], outcome);
      time = options_.times[k];
      ensemble.set_covariance(static_cast<Index>(k), path, v_);
    }
    ensemble.outcome(path) = outcome;
  }

 private:
  void advance(RandomStream& stream, double from, double to, PathOutcome& outcome) {
    const Index steps = step_count(from, to, options_.max_step);
    const double h = (to - from) / static_cast<double>(steps);
    for (Index k = 0; k < steps; ++k) {
      double done = 0;
      while (done < h) {
        const double step = local_step(h, h - done);
        // The last part ends at h bit for bit, which ends the loop.
        done = step == h - done ? h : done + step;
        const double now = done == h && k + 1 == steps ? to : from + static_cast<double>(k) * h + done;
        stop_.check();
        take_step(stream, step, now, outcome);
        if (outcome.end != PathEnd::horizon) return;
      }
    }
  }

  double local_step(double h, double remaining) {
    if (step_control_ == 0) return remaining;
    const double rate = kernel_.attention_rate(v_);
    const double step = rate * h > step_control_ ? step_control_ / rate : h;
    // Far up steps fall below the resolution of time, which then stands still until the path has returned or left:
    // longer steps there would decide by chance of the scheme which of the two.
    return std::min(std::max(step, std::numeric_limits<double>::min()), remaining);
  }

  void take_step(RandomStream& stream, double step, double now, PathOutcome& outcome) {
    const double before = outcome.stop_time;
    last_ = v_;
    const bool valid = attempt(stream, step, outcome);
    std::optional<PathEnd> end = PathEnd::not_finite;
    if (valid) end = end_of_path(v_, options_.bounds);
    if (end) v_ = last_;
    outcome.stop_time = now;
    outcome.last_inside_time = end ? before : now;
    if (end) outcome.end = *end;
  }

  /// False if the new state is not a finite covariance.
  bool attempt(RandomStream& stream, double step, PathOutcome& outcome) {
    switch (options_.scheme) {
      case StepScheme::geometric:
        draw(stream);
        return kernel_.geometric(v_, step, s_, g2_);
      case StepScheme::euler_maruyama:
        draw(stream);
        return kernel_.euler_maruyama(v_, step, s_, g2_, scratch_) && return_to_cone(outcome);
      case StepScheme::euler_maruyama_dense:
        return dense_step(stream, step) && return_to_cone(outcome);
    }
    return false;
  }

  void draw(RandomStream& stream) {
    const Index m = v_.rows();
    // This draws G_1 + G_1^T itself: the diagonal has the variance 4, the other entries have 2.
    for (Index a = 0; a < m; ++a) {
      s_(a, a) = 2 * stream.normal();
      for (Index b = a + 1; b < m; ++b) s_(a, b) = s_(b, a) = std::numbers::sqrt2 * stream.normal();
    }
    if (!(model_.attention_noise > 0)) return;
    for (Index a = 0; a < m; ++a)
      for (Index b = 0; b < m; ++b) g2_(a, b) = stream.normal();
  }

  /// The scheme as printed, with a root of the whole D x D matrix: a check of the fast noise.
  bool dense_step(RandomStream& stream, double step) {
    const Index m = v_.rows();
    const Matrix<double> v = v_;
    const Matrix<double> root = numerics::symmetric_root(diffusion(model_, v));
    Vector<double> normals(root.rows());
    for (double& z : normals) z = stream.normal();
    const Vector<double> noise = std::sqrt(step) * (root * normals);
    v_ += step * drift(model_, v);
    Index i = 0;
    for (Index a = 0; a < m; ++a)
      for (Index b = a; b < m; ++b, ++i) {
        v_(a, b) += noise(i);
        if (b > a) v_(b, a) = v_(a, b);
      }
    return true;
  }

  /// Clips the spectrum of a state outside the cone and counts it; false if the state is not finite.
  bool return_to_cone(PathOutcome& outcome) {
    if (!v_.allFinite()) return false;
    if (guarded_cholesky(v_, scratch_)) return true;
    ++outcome.cone_exits;
    const Eigen::SelfAdjointEigenSolver<Square> solver(v_);
    const double floor = clipped_eigenvalue * solver.eigenvalues().cwiseAbs().maxCoeff();
    const typename Kernel::Column clipped = solver.eigenvalues().cwiseMax(floor);
    scratch_.noalias() = solver.eigenvectors() * clipped.asDiagonal();
    v_.noalias() = scratch_ * solver.eigenvectors().transpose();
    return true;
  }

  const SdeModel& model_;
  const SimulationOptions& options_;
  StopRequest stop_;
  Square start_;
  Kernel kernel_;
  double step_control_;
  Square v_, last_, s_, g2_, scratch_;
};

template <int M>
void run_paths(const SdeModel& model, const Matrix<double>& v0, const SimulationOptions& options,
               CovarianceEnsemble& ensemble) {
  const auto run_path = [&](Index path) { PathRunner<M>(model, v0, options).run(path, ensemble); };
  numerics::on_threads(options.threads, [&] {
    numerics::for_each_task(options.paths, {.stop = options.stop, .progress = options.progress}, run_path,
                            paths_a_task);
  });
}

}  // namespace

CovarianceEnsemble simulate(const SdeModel& model, const Matrix<double>& v0,
                            const SimulationOptions& options) {
  require_options(model, v0, options);
  CovarianceEnsemble ensemble(v0.rows(), options.paths, options.times);
  if (v0.rows() == 2)
    run_paths<2>(model, v0, options, ensemble);
  else
    run_paths<Eigen::Dynamic>(model, v0, options, ensemble);
  return ensemble;
}

}  // namespace widelimit::covariance_sde

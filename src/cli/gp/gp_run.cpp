#include "cli/gp/gp_run.hpp"

#include <chrono>
#include <memory>
#include <utility>

#include "cli/gp/gp_grams.hpp"
#include "cli/gp/solver_progress.hpp"
#include "cli/ranks/rank_kernel_solver.hpp"

namespace widelimit::cli {

std::vector<std::string> prediction_names(const GpOptions& options) {
  std::vector<std::string> names;
  if (options.kernels != Kernels::ntk) names.emplace_back("nngp");
  if (options.kernels != Kernels::nngp)
    for (std::size_t i = 0; i <= options.times.size(); ++i) names.push_back(gp::flow_name(i));
  return names;
}

namespace {

gp::InferenceOptions inference_options(const GpOptions& options) {
  return {.kernels = options.kernels,
          .regulariser = options.regulariser,
          .criterion = criterion_of(options),
          .candidates = options.candidates,
          .amplitude = options.amplitude,
          .times = options.times,
          .targets_as_they_are = options.targets_as_they_are,
          .threads = options.threads,
          .residual = options.residual};
}

gp::MakeSolver solvers_of(const GpOptions& options) {
  return [&options](const std::string& kernel, gp::GramSources& grams, const gp::SolverTargets& targets,
                    const gp::SolverOptions& solver, bool kernels_follow) {
    if (options.solver == gp::Solver::conjugate_gradients)
      return gp::iterative_solver(kernel, grams, targets, solver);
    if (options.solver == gp::Solver::distributed)
      return rank_kernel_solver(*options.dealer->solver(), kernel, grams, targets, solver);
    return gp::direct_solver(kernel, grams, targets, solver, kernels_follow);
  };
}

}  // namespace

gp::Criterion criterion_of(const GpOptions& options) {
  return options.criterion.value_or(options.solver == gp::Solver::cholesky
                                        ? gp::Criterion::leave_one_out
                                        : gp::Criterion::mean_squared_error);
}

template <typename Scalar>
GpResult run_gp(const Network& network, const GpTask<Scalar>& task, const GpOptions& options,
                const Interrupt& interrupt) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<gp::GramSources> grams = compute_grams(network, task, options, interrupt);
  const double gram_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  interrupt.check();
  if (!grams) return {gram_seconds, {}};
  const bool together = options.solver == gp::Solver::distributed;
  if (!together && options.dealer != nullptr && !options.dealer->is_first()) return {gram_seconds, {}};
  const gp::InferenceTargets targets{task.kind, *task.train.targets,
                                     task.validation ? &*task.validation->targets : nullptr,
                                     task.test.targets};
  std::unique_ptr<SolverProgress> progress;
  const auto show = [&](const std::string& kernel, int passes, double residual) {
    if (!progress || !progress->is_of(kernel))
      progress = std::make_unique<SolverProgress>(kernel, options.residual);
    progress->show(passes, residual);
  };
  return {.gram_seconds = gram_seconds,
          .predictions = gp::infer(targets, inference_options(options), std::move(*grams),
                                   solvers_of(options), interrupt.token(), show)};
}

template GpResult run_gp(const Network&, const GpTask<float>&, const GpOptions&, const Interrupt&);
template GpResult run_gp(const Network&, const GpTask<double>&, const GpOptions&, const Interrupt&);

}  // namespace widelimit::cli

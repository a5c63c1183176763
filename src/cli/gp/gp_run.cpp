#include "cli/gp/gp_run.hpp"

#include <chrono>
#include <utility>

#include "cli/gp/gp_grams.hpp"
#include "cli/output/progress_bar.hpp"
#include "distributed/rank_kernel_solver.hpp"

namespace widelimit::cli {

std::vector<std::string> prediction_names(const gp::InferenceOptions& options) {
  std::vector<std::string> names;
  if (options.kernels != Kernels::ntk) names.emplace_back("nngp");
  if (options.kernels != Kernels::nngp)
    for (std::size_t i = 0; i <= options.times.size(); ++i) names.push_back(gp::flow_name(i));
  return names;
}

namespace {

gp::MakeSolver solvers_of(const GpOptions& options, const RunContext& context) {
  return [&options, &context](const std::string& kernel, gp::GramSources& grams,
                              const gp::SolverTargets& targets, const gp::SolverOptions& solver,
                              bool kernels_follow) {
    if (options.solver == gp::Solver::conjugate_gradients)
      return gp::iterative_solver(kernel, grams, targets, solver);
    if (options.solver == gp::Solver::distributed)
      return distributed::rank_kernel_solver(*context.dealer->solver(), kernel, grams, targets, solver);
    return gp::direct_solver(kernel, grams, targets, solver, kernels_follow);
  };
}

}  // namespace

template <typename Scalar>
GpResult run_gp(const Network& network, const GpTask<Scalar>& task, const GpOptions& options,
                const RunContext& context) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<gp::GramSources> grams = compute_grams(network, task, options, context);
  const double gram_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  context.interrupt.check();
  if (!grams) return {gram_seconds, {}};
  const bool together = options.solver == gp::Solver::distributed;
  if (!together && context.dealer != nullptr && !context.dealer->is_first()) return {gram_seconds, {}};
  const gp::InferenceTargets targets{task.kind, *task.train.targets,
                                     task.validation ? &*task.validation->targets : nullptr,
                                     task.test.targets};
  return {
      .gram_seconds = gram_seconds,
      .predictions = gp::infer(targets, options.inference, std::move(*grams), solvers_of(options, context),
                               context.interrupt.token(), iteration_line(options.inference.residual))};
}

template GpResult run_gp(const Network&, const GpTask<float>&, const GpOptions&, const RunContext&);
template GpResult run_gp(const Network&, const GpTask<double>&, const GpOptions&, const RunContext&);

}  // namespace widelimit::cli

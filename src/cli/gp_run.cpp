#include "cli/gp_run.hpp"

#include <chrono>
#include <utility>

#include "cli/gp_grams.hpp"
#include "cli/gp_predictor.hpp"
#include "cli/rank_predictor.hpp"

namespace widelimit::cli {

std::vector<std::string> prediction_names(const GpOptions& options) {
  std::vector<std::string> names;
  if (options.kernels != Kernels::ntk) names.emplace_back("nngp");
  if (options.kernels != Kernels::nngp)
    for (std::size_t i = 0; i <= options.times.size(); ++i) names.push_back(flow_name(i));
  return names;
}

template <typename Scalar>
GpResult run_gp(const Network& network, const GpTask<Scalar>& task, const GpOptions& options,
                const Interrupt& interrupt) {
  const auto start = std::chrono::steady_clock::now();
  GpGrams grams = compute_grams(network, task, options, interrupt);
  const double gram_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  interrupt.check();
  const bool together = options.solver == Solver::distributed;
  if (!together && options.dealer != nullptr && !options.dealer->is_first()) return {gram_seconds, {}};
  const GpTargets targets{task.kind, *task.train.targets,
                          task.validation ? &*task.validation->targets : nullptr, task.test.targets};
  return {.gram_seconds = gram_seconds,
          .predictions = together ? predict_together(targets, options, interrupt, std::move(grams))
                                  : predict(targets, options, interrupt, std::move(grams))};
}

template GpResult run_gp(const Network&, const GpTask<float>&, const GpOptions&, const Interrupt&);
template GpResult run_gp(const Network&, const GpTask<double>&, const GpOptions&, const Interrupt&);

}  // namespace widelimit::cli

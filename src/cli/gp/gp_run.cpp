#include "cli/gp/gp_run.hpp"

#include <chrono>
#include <utility>

#include "cli/gp/gp_kernel.hpp"
#include "cli/grams/store_options.hpp"
#include "cli/output/progress_bar.hpp"
#include "distributed/rank_gram.hpp"
#include "distributed/rank_kernel_solver.hpp"
#include "widelimit/files/writing_places.hpp"
#include "widelimit/gp/device_gram.hpp"
#include "widelimit/gp/distinct_inputs.hpp"
#include "widelimit/gp/gram_source.hpp"
#include "widelimit/kernel/devices.hpp"
#include "widelimit/kernel/kernel_products.hpp"
#include "widelimit/store/stored_gram.hpp"

namespace widelimit::cli {

GramOptions gram_options(const GpOptions& options, const RunContext& context) {
  GramOptions gram;
  // The covariance of gradient flow is made of both kernels.
  gram.kernels = options.inference.kernels == Kernels::nngp ? Kernels::nngp : Kernels::both;
  gram.threads = threads_of(options.inference.fit.threads, context);
  gram.device = options.device;
  gram.exact_attention = options.exact_attention;
  gram.stop = context.interrupt.token();
  return gram;
}

std::vector<std::string> prediction_names(const gp::InferenceOptions& options) {
  std::vector<std::string> names;
  if (options.kernels != Kernels::ntk) names.emplace_back("nngp");
  if (options.kernels != Kernels::nngp)
    for (std::size_t i = 0; i <= options.times.size(); ++i) names.push_back(gp::flow_name(i));
  return names;
}

namespace {

/// Which inputs meet the training inputs, and what their store is called.
template <typename Scalar>
struct GramJob {
  const GpSet<Scalar>* others;  ///< Null: the training inputs themselves.
  const char* name;
  Index pairs;
};

/// Of a store that is there and has more kernels than are wanted, all of its own: they are computed together.
Kernels kernels_for(const std::filesystem::path& folder, Kernels wanted) {
  if (!std::filesystem::exists(folder / "zarr.json")) return wanted;
  const Kernels stored = store::StoredGram(folder).kernels();
  return stored == Kernels::both ? stored : wanted;
}

bool is_complete(const std::filesystem::path& folder) {
  const store::StoreProgress progress = store::StoredGram(folder).progress();
  return progress.tiles_done == progress.tiles;
}

/// Whether a device makes the kernels anew in every product: none is held or kept.
template <typename Scalar>
bool multiplies_on_device(const Network& network, const GpTask<Scalar>& task, const GpOptions& options) {
  return options.solver == gp::Solver::conjugate_gradients && !device_in_full(options.device).empty() &&
         options.store.folder.empty() && options.gram_folder.empty() && !options.flip &&
         KernelProducts<Scalar>::are_for(network, task.train.inputs());
}

template <typename Scalar>
gp::GramSources sources_on_device(const Network& network, const GpTask<Scalar>& task, bool validate,
                                  GramOptions options) {
  const KernelProducts<Scalar> products(network, task.train.inputs(), options);
  gp::GramSources grams;
  grams.train = gp::gram_on_device(products);
  grams.test = gp::gram_on_device(products, task.test.inputs());
  if (validate) grams.validation = gp::gram_on_device(products, task.validation->inputs());
  const auto variances = [&](const GpSet<Scalar>& set) {
    return KernelProducts<Scalar>(network, set.inputs(), options).diagonal(Kernels::nngp);
  };
  if (validate) grams.validation_variances = variances(*task.validation);
  grams.test_variances = variances(task.test);
  return grams;
}

/// Null where a store lacks parts that others compute.
template <typename Scalar>
std::unique_ptr<gp::GramSource> compute_gram(const GramJob<Scalar>& job, GpKernel<Scalar>& kernel,
                                             const Network& network, const GpTask<Scalar>& task,
                                             const GpOptions& options, const GramOptions& gram,
                                             const RunContext& context, const ShowStore& show) {
  const Inputs<Scalar> train = task.train.inputs(), x1 = job.others == nullptr ? train : job.others->inputs();
  const Inputs<Scalar>* const x2 = job.others == nullptr ? nullptr : &train;
  const bool together = options.solver == gp::Solver::distributed;
  if (options.store.folder.empty() && together)
    return std::make_unique<distributed::RankGram>(
        *context.dealer->solver(),
        distributed::rank_tiles_in_memory<Scalar>(*context.dealer, network, x1, x2, gram));
  if (options.store.folder.empty()) return gp::gram_in_memory(kernel.gram(x1, x2, gram));
  StoreArguments arguments = options.store;
  // Within the folder that the user names.
  files::require_no_links(arguments.folder, job.name);
  arguments.folder /= job.name;
  const StoreTask<Scalar> store_task{network,
                                     x1,
                                     x2,
                                     kernels_for(arguments.folder, gram.kernels),
                                     gram.threads,
                                     gram.device,
                                     gram.exact_attention};
  static_cast<void>(run_store(arguments, store_task, context, show));
  if (arguments.part.parts > 1 && !is_complete(arguments.folder)) return nullptr;
  if (!together) return gp::gram_in_store(arguments.folder, gram.threads, arguments.unrecorded);
  const distributed::RankSolver& ranks = *context.dealer->solver();
  return std::make_unique<distributed::RankGram>(
      ranks, rank_tiles_in_store(ranks, arguments.folder, arguments.unrecorded));
}

/// The kernels of a task, computed, or what is missing of them in stores; nothing where stores are not complete since
/// this process has computed its part (--part) only.
template <typename Scalar>
std::optional<gp::GramSources> compute_grams(const Network& network, const GpTask<Scalar>& task,
                                             const GpOptions& options, const RunContext& context,
                                             bool validate) {
  const Index n = task.train.inputs().size(), n_test = task.test.inputs().size();
  const Index n_validation = validate ? task.validation->inputs().size() : 0;
  const Index pairs = n * (n + 1) / 2 + (n_validation + n_test) * n;
  ProgressBar bar(network.name(), Counted::pairs, options.inference.fit.threads);
  Index before = 0, now = 0;  // Pairs of the Gram matrices before this one, and of this one.
  GramOptions gram = gram_options(options, context);
  gram.progress = [&](const GramProgress& progress) {
    const double share = static_cast<double>(progress.done) / static_cast<double>(progress.total);
    bar.show(before + static_cast<Index>(share * static_cast<double>(now)), pairs);
  };
  // Of what is in the stores only a part was computed now.
  const auto show_store = [&](const store::StoreProgress& progress) {
    ProgressBar::State state = state_of(progress);
    state.done += before;
    state.total = pairs;
    if (progress.pairs_per_second > 0)
      state.seconds_left = static_cast<double>(state.total - state.done) / progress.pairs_per_second;
    bar.show(state);
  };
  if (multiplies_on_device(network, task, options)) return sources_on_device(network, task, validate, gram);
  GpKernel<Scalar> kernel(network, task, options.flip, gram, options.gram_folder);
  const auto compute = [&](const GramJob<Scalar>& job) {
    before += std::exchange(now, job.pairs);
    return compute_gram(job, kernel, network, task, options, gram, context, show_store);
  };
  gp::GramSources grams;
  grams.train = compute({nullptr, "train", n * (n + 1) / 2});
  if (validate) grams.validation = compute({&*task.validation, "validation-train", n_validation * n});
  grams.test = compute({&task.test, "test-train", n_test * n});
  if (!grams.train || !grams.test || (validate && !grams.validation)) return {};
  gram.kernels = Kernels::nngp;
  gram.progress = nullptr;
  if (validate) grams.validation_variances = kernel.variances(*task.validation, gram);
  grams.test_variances = kernel.variances(task.test, gram);
  return grams;
}

template <typename Scalar>
gp::Problem problem_of(const GpTask<Scalar>& task) {
  gp::Problem problem{.kind = task.kind, .targets = *task.train.targets};
  if (task.validation) problem.validation = *task.validation->targets;
  problem.noise_variances = task.noise_variances;
  problem.weights = task.weights;
  return problem;
}

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
  gp::Problem problem = problem_of(task);
  const bool validate =
      options.inference.fit.chooses(problem) && gp::needs_validation(options.inference.fit.criterion);
  std::optional<gp::GramSources> grams = compute_grams(network, task, options, context, validate);
  const double gram_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  context.interrupt.check();
  if (!grams) return {gram_seconds, {}};
  const bool together = options.solver == gp::Solver::distributed;
  if (!together && context.dealer != nullptr && !context.dealer->is_first()) return {gram_seconds, {}};
  // Ranks share the matrix of all rows, tile by tile.
  if (!together) problem.inputs = gp::distinct_inputs(task.train.inputs(), task.groups);
  gp::InferenceOptions inference = options.inference;
  inference.fit.stop = context.interrupt.token();
  inference.fit.progress = iteration_line(inference.fit.residual);
  return {.gram_seconds = gram_seconds,
          .predictions = gp::infer(std::move(problem), task.test.targets, inference, std::move(*grams),
                                   solvers_of(options, context))};
}

template GpResult run_gp(const Network&, const GpTask<float>&, const GpOptions&, const RunContext&);
template GpResult run_gp(const Network&, const GpTask<double>&, const GpOptions&, const RunContext&);

}  // namespace widelimit::cli

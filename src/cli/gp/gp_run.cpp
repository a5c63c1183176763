#include "cli/gp/gp_run.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

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

gp::ModelOptions model_options(gp::ModelOptions given, const GpOptions& options, const GpTaskFacts& task,
                               const RunContext& context) {
  given.solver = options.solver;
  given.noise_variances = task.noise_variances;
  given.weights = task.weights;
  given.groups = task.groups;
  given.class_names = task.class_names;
  given.preprocessing = task.preprocessing;
  given.gram = gram_options(options, context);
  return given;
}

std::vector<std::string> prediction_names(const gp::InferenceOptions& options) {
  std::vector<std::string> names;
  if (options.kernels != Kernels::ntk) names.emplace_back("nngp");
  if (options.kernels != Kernels::nngp)
    for (std::size_t i = 0; i <= options.times.size(); ++i) names.push_back(gp::flow_name(i));
  return names;
}

namespace {

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

template <typename Scalar>
gp::Problem problem_of(const GpTask<Scalar>& task) {
  gp::Problem problem{.kind = task.kind, .targets = *task.train.targets};
  if (task.validation) problem.validation = *task.validation->targets;
  problem.noise_variances = task.noise_variances;
  problem.weights = task.weights;
  return problem;
}

/// The Gram matrices of a task, one after the other: computed, or what is missing of them in stores.
template <typename Scalar>
class GpGrams {
 public:
  using Matrices = std::shared_ptr<GramResult<Scalar>>;

  GpGrams(const Network& network, const GpTask<Scalar>& task, const GpOptions& options,
          const RunContext& context)
      : network_{network},
        task_{task},
        options_{options},
        context_{context},
        validates_{options.inference.fit.chooses(problem_of(task)) &&
                   gp::needs_validation(options.inference.fit.criterion)},
        gram_{gram_options(options, context)},
        bar_(network.name(), Counted::pairs, options.inference.fit.threads) {
    const Index n = size_of(task.train), n_test = size_of(task.test),
                n_validation = task.validation ? size_of(*task.validation) : 0;
    pairs_ = n * (n + 1) / 2 + n_test * n;
    if (validates_ || options.inference.refit) pairs_ += n_validation * n;
    if (options.inference.refit) pairs_ += n_validation * (n_validation + 1) / 2 + n_test * n_validation;
    gram_.progress = [this](const GramProgress& progress) {
      const double share = static_cast<double>(progress.done) / static_cast<double>(progress.total);
      bar_.show(before_ + static_cast<Index>(share * static_cast<double>(now_)), pairs_);
    };
  }
  GpGrams(const GpGrams&) = delete;
  GpGrams& operator=(const GpGrams&) = delete;

  /// Nothing where stores are not complete since this process has computed its part (--part) only.
  [[nodiscard]] std::optional<gp::GramSources> sources() {
    if (multiplies_on_device(network_, task_, options_))
      return sources_on_device(network_, task_, validates_, gram_);
    kernel_.emplace(network_, task_, options_.flip, gram_, options_.gram_folder);
    std::optional<gp::GramSources> grams = options_.inference.refit ? joined_later() : as_they_are();
    if (!grams) return grams;
    if (validates_) grams->validation_variances = variances(*task_.validation);
    if (!options_.inference.refit) grams->test_variances = variances(task_.test);
    return grams;
  }

 private:
  /// Inputs, those that they meet, or null for themselves, and what their store is called.
  struct Block {
    const GpSet<Scalar>& rows;
    const GpSet<Scalar>* columns;
    const char* name;
  };

  static Index size_of(const GpSet<Scalar>& set) { return set.inputs().size(); }

  [[nodiscard]] std::optional<gp::GramSources> as_they_are() {
    gp::GramSources grams;
    grams.train = source({task_.train, nullptr, "train"});
    if (validates_) grams.validation = source({*task_.validation, &task_.train, "validation-train"});
    grams.test = source({task_.test, &task_.train, "test-train"});
    if (!grams.train || !grams.test || (validates_ && !grams.validation)) return {};
    return grams;
  }

  /// For a choice with validation data held back; the fit to both has the kernels of both.
  [[nodiscard]] std::optional<gp::GramSources> joined_later() {
    const GpSet<Scalar>&train = task_.train, &held = *task_.validation;
    std::vector<Matrices> all{
        matrices({train, nullptr, "train"}), matrices({held, &train, "validation-train"}),
        matrices({held, nullptr, "validation"}), matrices({task_.test, &train, "test-train"}),
        matrices({task_.test, &held, "test-validation"})};
    if (std::ranges::any_of(all, [](const Matrices& each) { return each == nullptr; })) return {};
    gp::GramSources grams;
    grams.train = gp::gram_in_memory<Scalar>(all[0]);
    if (validates_) grams.validation = gp::gram_in_memory<Scalar>(all[1]);
    grams.joined = [all = std::move(all), variances = variances(task_.test)]() mutable {
      gp::GramSources both;
      both.train = gp::gram_in_memory<Scalar>(gp::joined_gram(*all[0], *all[1], *all[2]));
      both.test = gp::gram_in_memory<Scalar>(gp::joined_cross(*all[3], *all[4]));
      both.test_variances = variances;
      all.clear();
      return both;
    };
    return grams;
  }

  /// Null where a store lacks parts that others compute.
  [[nodiscard]] std::unique_ptr<gp::GramSource> source(const Block& block) {
    const bool together = options_.solver == gp::Solver::distributed;
    if (options_.store.folder.empty() && !together) return gp::gram_in_memory<Scalar>(matrices(block));
    if (options_.store.folder.empty())
      return with(block, [&](const Inputs<Scalar>& x1, const Inputs<Scalar>* x2) {
        return std::make_unique<distributed::RankGram>(
            *context_.dealer->solver(),
            distributed::rank_tiles_in_memory<Scalar>(*context_.dealer, network_, x1, x2, gram_));
      });
    const std::filesystem::path folder = filled_store(block);
    if (folder.empty()) return nullptr;
    if (!together) return gp::gram_in_store(folder, gram_.threads, options_.store.unrecorded);
    const distributed::RankSolver& ranks = *context_.dealer->solver();
    return std::make_unique<distributed::RankGram>(
        ranks, rank_tiles_in_store(ranks, folder, options_.store.unrecorded));
  }

  /// The same in memory.
  [[nodiscard]] Matrices matrices(const Block& block) {
    if (options_.store.folder.empty())
      return with(block, [&](const Inputs<Scalar>& x1, const Inputs<Scalar>* x2) {
        return std::make_shared<GramResult<Scalar>>(kernel_->gram(x1, x2, gram_));
      });
    const std::filesystem::path folder = filled_store(block);
    if (folder.empty()) return nullptr;
    return std::make_shared<GramResult<Scalar>>(
        store::StoredGram(folder, options_.store.unrecorded).matrix<Scalar>());
  }

  /// Its folder, or nothing where it is not complete.
  [[nodiscard]] std::filesystem::path filled_store(const Block& block) {
    StoreArguments arguments = options_.store;
    // Within the folder that the user names.
    files::require_no_links(arguments.folder, block.name);
    arguments.folder /= block.name;
    // Of what is in the stores only a part was computed now.
    const auto show = [this](const store::StoreProgress& progress) {
      ProgressBar::State state = state_of(progress);
      state.done += before_;
      state.total = pairs_;
      if (progress.pairs_per_second > 0)
        state.seconds_left = static_cast<double>(state.total - state.done) / progress.pairs_per_second;
      bar_.show(state);
    };
    with(block, [&](const Inputs<Scalar>& x1, const Inputs<Scalar>* x2) {
      const StoreTask<Scalar> store_task{network_,
                                         x1,
                                         x2,
                                         store::kernels_for(arguments.folder, gram_.kernels),
                                         gram_.threads,
                                         gram_.device,
                                         gram_.exact_attention};
      static_cast<void>(run_store(arguments, store_task, context_, show));
    });
    if (arguments.part.parts > 1 && !is_complete(arguments.folder)) return {};
    return arguments.folder;
  }

  /// body(rows, columns or null), whose pairs are the next ones of the bar.
  template <typename Body>
  auto with(const Block& block, const Body& body) {
    const Inputs<Scalar> x1 = block.rows.inputs();
    std::optional<Inputs<Scalar>> x2;
    if (block.columns != nullptr) x2 = block.columns->inputs();
    before_ += std::exchange(now_, x2 ? x1.size() * x2->size() : x1.size() * (x1.size() + 1) / 2);
    return body(x1, x2 ? &*x2 : nullptr);
  }

  [[nodiscard]] Vector<double> variances(const GpSet<Scalar>& set) {
    GramOptions options = gram_;
    options.kernels = Kernels::nngp;
    options.progress = nullptr;
    return kernel_->variances(set, options);
  }

  const Network& network_;
  const GpTask<Scalar>& task_;
  const GpOptions& options_;
  const RunContext& context_;
  bool validates_;
  GramOptions gram_;
  ProgressBar bar_;
  Index pairs_ = 0, before_ = 0, now_ = 0;  ///< All, those of the matrices before this one, and its own.
  std::optional<GpKernel<Scalar>> kernel_;
};

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
  std::optional<gp::GramSources> grams = GpGrams<Scalar>(network, task, options, context).sources();
  const double gram_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  context.interrupt.check();
  if (!grams) return {gram_seconds, {}};
  const bool together = options.solver == gp::Solver::distributed;
  if (!together && context.dealer != nullptr && !context.dealer->is_first()) return {gram_seconds, {}};
  gp::Problem problem = problem_of(task);
  // Ranks share the matrix of all rows, tile by tile.
  if (!together) problem.inputs = gp::distinct_inputs(task.train.inputs(), task.groups);
  if (options.inference.refit)
    problem.joined_inputs = gp::joined_inputs(task.train.inputs(), task.validation->inputs(), task.groups);
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

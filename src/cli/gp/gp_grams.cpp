#include "cli/gp/gp_grams.hpp"

#include <functional>
#include <utility>

#include "cli/gp/gp_kernel.hpp"
#include "cli/grams/compute_store.hpp"
#include "cli/grams/store_options.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/ranks/rank_gram.hpp"

namespace widelimit::cli {
namespace {

/// Which inputs meet the training inputs, and what their store is called.
template <typename Scalar>
struct GramJob {
  const GpSet<Scalar>* others;  ///< Null: the training inputs themselves.
  const char* name;
  Index pairs;
};

/// Kept by the ranks that computed it.
template <typename Scalar>
std::unique_ptr<gp::GramSource> dealt_gram(const GramJob<Scalar>& job, const Network& network,
                                           const GpTask<Scalar>& task, const GpOptions& options,
                                           const GramOptions& gram_options) {
  const Inputs<Scalar> train = task.train.inputs();
  TileDealer& dealer = *options.dealer;
  return std::make_unique<RankGram>(
      *dealer.solver(),
      job.others == nullptr
          ? rank_tiles_in_memory<Scalar>(dealer, network, train, nullptr, gram_options)
          : rank_tiles_in_memory<Scalar>(dealer, network, job.others->inputs(), &train, gram_options));
}

/// Null where a store lacks parts that others compute.
template <typename Scalar>
std::unique_ptr<gp::GramSource> compute_gram(const GramJob<Scalar>& job, GpKernel<Scalar>& kernel,
                                             const Network& network, const GpTask<Scalar>& task,
                                             const GpOptions& options, const GramOptions& gram_options,
                                             const std::function<void(const store::StoreProgress&)>& show) {
  const bool together = options.solver == gp::Solver::distributed;
  if (options.store.empty() && together) return dealt_gram(job, network, task, options, gram_options);
  if (options.store.empty())
    return gp::gram_in_memory(job.others == nullptr ? kernel.gram(task.train, gram_options)
                                                    : kernel.gram(*job.others, task.train, gram_options));
  const Inputs<Scalar> train = task.train.inputs();
  const auto folder = options.store / job.name;
  const bool is_complete =
      job.others == nullptr
          ? compute_store<Scalar>(folder, network, train, nullptr, gram_options, options, show)
          : compute_store<Scalar>(folder, network, job.others->inputs(), &train, gram_options, options, show);
  if (!is_complete) return nullptr;
  if (!together) return gp::gram_in_store(folder, options.threads);
  const RankSolver& ranks = *options.dealer->solver();
  return std::make_unique<RankGram>(ranks, rank_tiles_in_store(ranks, folder));
}

}  // namespace

template <typename Scalar>
std::optional<gp::GramSources> compute_grams(const Network& network, const GpTask<Scalar>& task,
                                             const GpOptions& options, const Interrupt& interrupt) {
  const bool validate = !options.regulariser && gp::needs_validation(criterion_of(options));
  const Index n = task.train.inputs().size(), n_test = task.test.inputs().size();
  const Index n_validation = validate ? task.validation->inputs().size() : 0;
  const Index pairs = n * (n + 1) / 2 + (n_validation + n_test) * n;
  ProgressBar bar(network.name(), Counted::pairs, options.threads);
  Index before = 0, now = 0;  // Pairs of the Gram matrices before this one, and of this one.
  GramOptions gram_options;
  // The covariance of gradient flow is made of both kernels.
  gram_options.kernels = options.kernels == Kernels::nngp ? Kernels::nngp : Kernels::both;
  gram_options.threads = options.threads;
  gram_options.stop = interrupt.token();
  gram_options.progress = [&](const GramProgress& progress) {
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
  GpKernel<Scalar> kernel(network, task, options.flip, gram_options, options.gram_folder);
  const auto compute = [&](const GramJob<Scalar>& job) {
    before += std::exchange(now, job.pairs);
    return compute_gram(job, kernel, network, task, options, gram_options, show_store);
  };
  gp::GramSources grams;
  grams.train = compute({nullptr, "train", n * (n + 1) / 2});
  if (validate) grams.validation = compute({&*task.validation, "validation-train", n_validation * n});
  grams.test = compute({&task.test, "test-train", n_test * n});
  if (!grams.train || !grams.test || (validate && !grams.validation)) return {};
  gram_options.kernels = Kernels::nngp;
  gram_options.progress = nullptr;
  if (validate) grams.validation_variances = kernel.variances(*task.validation, gram_options);
  grams.test_variances = kernel.variances(task.test, gram_options);
  return grams;
}

template std::optional<gp::GramSources> compute_grams(const Network&, const GpTask<float>&, const GpOptions&,
                                                      const Interrupt&);
template std::optional<gp::GramSources> compute_grams(const Network&, const GpTask<double>&, const GpOptions&,
                                                      const Interrupt&);

}  // namespace widelimit::cli

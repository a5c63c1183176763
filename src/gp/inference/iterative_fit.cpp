#include <fmt/format.h>

#include <functional>
#include <optional>
#include <utility>

#include "gp/inference/known_noise.hpp"
#include "gp/inference/model_fit.hpp"
#include "gp/inference/output_groups.hpp"
#include "kernel/inputs/copied_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/gram_cache.hpp"
#include "widelimit/gp/kernel_solver.hpp"

namespace widelimit::gp {
namespace {

/// Takes inputs and options to weights by conjugate gradients.
template <typename Scalar>
class IterativeFit {
 public:
  explicit IterativeFit(const FitTask<Scalar>& task)
      : task_{task}, run_{task.options.gram}, inputs_(task.network, task.train.x, options().flip, run_) {
    run_.kernels = options().kind == ModelKind::bayesian ? Kernels::nngp : Kernels::both;
    run_.seconds_per_line = nullptr;
    if (options().gram_folder) cache_.emplace(*options().gram_folder, treatment_of(options().flip, run_));
    kernels_ = std::make_shared<IterativeKernels<Scalar>>(inputs_, factors_);
    // A matrix that is kept in a folder is read rather than made anew in every product.
    holds_matrices_ = cache_ || !kernels_->multiplies_on_device(run_);
    if (!holds_matrices_) return;
    train_ = stored(task_.train.x, nullptr, [this] { return inputs_.gram(run_); });
    kernels_->keep(train_);
  }

  [[nodiscard]] std::vector<Selection> select() {
    const TargetScale scale = fit_scale(task_.train.y, options());
    grams_.train = kernels_->train(run_);
    grams_.validation =
        holds_matrices_ ? kernels_->with_train(cross()) : kernels_->with_train(seen().x, run_);
    set_targets(scale, task_.train.y, scale.standardised(seen().y));
    return in_units_of(scale, solver_->select(), task_.train.y.rows());
  }

  [[nodiscard]] ModelState run() {
    const bool known = options().noise_variances.size() > 0;
    std::vector<Selection> selections;
    if (!options().noise && !known) selections = select();
    Matrix<double> targets = task_.train.y;
    if (options().refit) targets = joined();
    TargetScale scale = fit_scale(targets, options());
    if (selections.empty() || options().refit) {
      grams_.train = kernels_->train(run_);
      set_targets(scale, targets, {});
    }
    std::vector<OutputPosterior> posteriors = known ? known_noise_posteriors(scale) : fitted(selections);
    ModelState state{std::move(inputs_),    std::move(posteriors), std::move(targets),
                     std::move(scale),      options().class_names, options().preprocessing,
                     options().preparation, std::move(selections)};
    state.row_factors = std::move(factors_);
    state.iterative = std::move(kernels_);
    state.law = fitted_law(options(), state.targets.rows());
    return state;
  }

 private:
  using Matrices = typename IterativeKernels<Scalar>::Matrices;

  [[nodiscard]] const ModelOptions& options() const { return task_.options; }
  [[nodiscard]] const LabelledInputs<Scalar>& seen() const { return *task_.validation; }
  [[nodiscard]] std::string kernel() const { return options().kind == ModelKind::bayesian ? "nngp" : "ntk"; }

  [[nodiscard]] Matrices stored(const Inputs<Scalar>& x1, const Inputs<Scalar>* x2,
                                const std::function<GramResult<Scalar>()>& compute) {
    return std::make_shared<const GramResult<Scalar>>(
        cache_ ? cache_->get(task_.network, x1, x2, run_.kernels, compute) : compute());
  }
  /// Of the validation inputs with the training inputs.
  [[nodiscard]] Matrices cross() {
    if (!cross_)
      cross_ = stored(seen().x, &task_.train.x, [this] { return inputs_.gram_with_train(seen().x, run_); });
    return cross_;
  }

  /// A solver of its own for these targets.
  void set_targets(const TargetScale& scale, const Matrix<double>& train, Matrix<double> validation) {
    targets_ = {scale.standardised(train), std::move(validation), task_.apart()};
    if (factors_.size() > 0) targets_.train = factors_.asDiagonal() * targets_.train;
    settings_ = {.criterion = options().criterion,
                 .candidates = options().grid,
                 .times = {infinite_time},
                 .needs_amplitudes = !options().amplitude,
                 .threads = run_.threads,
                 .residual = options().residual,
                 .stop = run_.stop,
                 .progress = options().iterations};
    solver_ = iterative_solver(kernel(), grams_, targets_, settings_);
  }

  /// Adds the validation data to the training data, whose targets are returned.
  [[nodiscard]] Matrix<double> joined() {
    solver_.reset();
    grams_ = {};
    Matrices together;
    if (holds_matrices_) {
      const Matrices own = stored(seen().x, nullptr, [this] { return inputs_.gram(seen().x, run_); });
      auto both = std::make_shared<GramResult<Scalar>>();
      both->nngp = joined_gram(train_->nngp, cross()->nngp, own->nngp);
      if (own->ntk.size() > 0) both->ntk = joined_gram(train_->ntk, cross()->ntk, own->ntk);
      together = std::move(both);
    }
    inputs_ = ModelKernel<Scalar>(task_.network, copied_inputs<Scalar, Scalar>({&task_.train.x, &seen().x}),
                                  options().flip, options().gram);
    kernels_ = std::make_shared<IterativeKernels<Scalar>>(inputs_, factors_);
    if (together) kernels_->keep(std::move(together));
    train_.reset();
    cross_.reset();
    Matrix<double> y(task_.train.y.rows() + seen().y.rows(), task_.train.y.cols());
    y << task_.train.y, seen().y;
    return y;
  }

  [[nodiscard]] double mean_diagonal() const {
    return grams_.train->as_operator(kernel())->diagonal().mean();
  }

  /// Of every output, or all together, with the regulariser that was chosen or given.
  [[nodiscard]] std::vector<OutputPosterior> fitted(const std::vector<Selection>& selections) {
    double given = 0;
    if (options().noise) given = noise_variance(*options().noise, 1);
    if (is_in_units_of_targets(options())) given /= mean_diagonal();
    const auto groups = output_groups(selections, given, task_.train.y.cols());
    std::vector<OutputPosterior> posteriors;
    for (const OutputGroup& group : groups) {
      const auto [weights, posterior] = solved(group);
      const auto count = static_cast<Index>(group.outputs.size());
      Vector<double> amplitudes = Vector<double>::Ones(count);
      if (options().amplitude)
        amplitudes.setConstant(*options().amplitude);
      else if (!is_in_units_of_targets(options()))
        amplitudes = posterior->amplitudes(task_.apart());
      // Calibrations of classes take predictions of targets left out, a solution for each.
      posteriors.push_back({group.outputs, weights, std::move(amplitudes)});
    }
    return posteriors;
  }

  /// With known variances the noise of an output is given, their mean in its units, and its amplitude is, too.
  [[nodiscard]] std::vector<OutputPosterior> known_noise_posteriors(const TargetScale& scale) {
    const double mean = options().noise_variances.mean(), diagonal = mean_diagonal();
    std::vector<OutputPosterior> posteriors;
    for (Index c = 0; c < scale.outputs(); ++c) {
      const double factor = scale.factors()(c), noise = mean / (factor * factor);
      posteriors.push_back({{c},
                            solved({{c}, noise / (*options().amplitude * diagonal)}).first,
                            Vector<double>::Constant(1, *options().amplitude)});
    }
    return posteriors;
  }

  [[nodiscard]] std::pair<IterativeWeights, std::unique_ptr<UnitPosterior>> solved(const OutputGroup& group) {
    auto posterior = std::move(solver_->fit(group.outputs, group.regulariser, false).front());
    IterativeWeights weights{kernel(), *posterior->weights(), posterior->lambda(), options().residual};
    return {std::move(weights), std::move(posterior)};
  }

  const FitTask<Scalar>& task_;
  GramOptions run_;
  std::optional<GramCache> cache_;
  ModelKernel<Scalar> inputs_;
  Vector<double> factors_ = row_factors({options().noise_variances, options().weights});
  std::shared_ptr<IterativeKernels<Scalar>> kernels_;
  bool holds_matrices_ = true;
  Matrices train_;  ///< While they are held.
  Matrices cross_;
  GramSources grams_;
  SolverTargets targets_ = {};
  SolverOptions settings_;
  std::unique_ptr<KernelSolver> solver_;
};

[[noreturn]] void refuse(const std::string& problem) {
  throw ArgumentError(fmt::format("{}: conjugate gradients (solver cg) {}", fit_place, problem));
}

}  // namespace

void require_iterative(const ModelOptions& options, Index inputs, Index outputs) {
  if (outputs > inputs)
    refuse(
        fmt::format("solve for no more outputs than there are inputs, got {} outputs and {} inputs; take the "
                    "solver cholesky",
                    outputs, inputs));
  if (options.time != infinite_time)
    refuse(
        fmt::format("know networks after training only, got the time {}; leave the time out, or take the "
                    "solver cholesky",
                    options.time));
  if (options.noise_variances.size() > 0 && !options.amplitude)
    refuse(
        "take an amplitude with known noise variances, as finding it takes factorizations; give one, or take "
        "the solver cholesky");
  const bool chooses = !options.noise && options.noise_variances.size() == 0;
  const bool by_errors =
      options.criterion == Criterion::accuracy || options.criterion == Criterion::mean_squared_error;
  if (chooses && !by_errors)
    refuse(
        "choose regularisers by accuracy or mean squared error on validation data alone; choose by one of "
        "these, give a regulariser, or take the solver cholesky");
}

template <typename Scalar>
ModelState fit_iteratively(const FitTask<Scalar>& task) {
  return IterativeFit<Scalar>(task).run();
}

template <typename Scalar>
std::vector<Selection> select_iteratively(const FitTask<Scalar>& task) {
  return IterativeFit<Scalar>(task).select();
}

template ModelState fit_iteratively(const FitTask<float>&);
template ModelState fit_iteratively(const FitTask<double>&);
template std::vector<Selection> select_iteratively(const FitTask<float>&);
template std::vector<Selection> select_iteratively(const FitTask<double>&);

}  // namespace widelimit::gp

#include "gp/inference/model_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "gp/checks.hpp"
#include "gp/inference/known_noise.hpp"
#include "gp/inference/model_state.hpp"
#include "gp/inference/output_groups.hpp"
#include "kernel/inputs/copied_inputs.hpp"
#include "kernel/inputs/require_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/class_labels.hpp"
#include "widelimit/gp/gram_cache.hpp"
#include "widelimit/gp/inference.hpp"
#include "widelimit/gp/known_noise.hpp"

namespace widelimit::gp {

bool is_in_units_of_targets(const ModelOptions& options) {
  return options.noise && std::holds_alternative<AbsoluteNoise>(*options.noise);
}

ObservationLaw fitted_law(const ModelOptions& options, Index rows) {
  if (!options.class_names.empty() || is_in_units_of_targets(options)) return {};
  return law_of_numbers(options, rows);
}

TargetScale fit_scale(const Matrix<double>& targets, const ModelOptions& options) {
  if (!options.class_names.empty() || options.targets_as_they_are)
    return TargetScale::identity(targets.cols());
  // A noise in units of the targets leaves their scale as it is.
  return is_in_units_of_targets(options) ? TargetScale::centre(targets) : TargetScale::fit(targets);
}

namespace {

template <typename Scalar>
void require_labelled(const LabelledInputs<Scalar>& data, const char* name) {
  if (data.y.rows() != data.x.size() || data.y.cols() < 1)
    throw ArgumentError(fmt::format("{}: expected {} [{}, outputs], a row for each input, got [{}, {}]",
                                    fit_place, name, data.x.size(), data.y.rows(), data.y.cols()));
  require_finite(data.y, fit_place, name);
}

void require_options(const ModelOptions& options, Index outputs) {
  if (options.flip && !options.preprocessing.keeps_mirror_images())
    throw ArgumentError(fmt::format(
        "{}: flip averages over mirror images, of which the preprocessing ({}) makes something else; fit it "
        "with mirror_images",
        fit_place, to_string(options.preprocessing.kind())));
  if (options.kind == ModelKind::bayesian && options.time != infinite_time)
    throw ArgumentError(fmt::format("{}: a time is for trained networks, got {} for a bayesian model",
                                    fit_place, options.time));
  if (!(options.time >= 0))
    throw ArgumentError(
        fmt::format("{}: time must be 0 or more, or infinite_time, got {}", fit_place, options.time));
  if (options.amplitude) require_amplitude(*options.amplitude, fit_place);
  if (!nlohmann::json::parse(options.preparation, nullptr, false).is_object())
    throw ArgumentError(fmt::format("{}: preparation: expected the text of a JSON object, got '{}'",
                                    fit_place, options.preparation));
  const auto names = static_cast<Index>(options.class_names.size());
  if (names > 0 && names != std::max<Index>(outputs, 2))
    throw ArgumentError(fmt::format("{}: expected {} class names for {} outputs, got {}", fit_place,
                                    std::max<Index>(outputs, 2), outputs, names));
}

GramOptions with_kernels(GramOptions options, Kernels kernels) {
  options.kernels = kernels;
  return options;
}

void require_rows(const ModelOptions& options, Index rows, bool classes) {
  require_row_numbers({options.noise_variances, options.weights}, rows, classes, fit_place);
  const bool known = options.noise_variances.size() > 0;
  if (!known && options.weights.size() == 0) return;
  if (options.kind != ModelKind::bayesian || options.refit)
    throw ArgumentError(fmt::format("{}: {} are for bayesian models without refit", fit_place,
                                    known ? "noise variances" : "weights"));
  if (known && options.noise)
    throw ArgumentError(
        fmt::format("{}: expected noise variances, or a regulariser or a noise; got both", fit_place));
}

/// Takes inputs and options to posteriors, step by step. Model::fit() makes one and runs it.
template <typename Scalar>
class ModelFit {
 public:
  explicit ModelFit(const FitTask<Scalar>& task)
      : task_{task},
        network_{task.network},
        train_{task.train},
        validation_{task.validation},
        options_{task.options},
        kernels_{with_kernels(options_.gram,
                              options_.kind == ModelKind::bayesian ? Kernels::nngp : Kernels::both)},
        kernel_(network_, train_.x, options_.flip, options_.gram) {
    kernels_.seconds_per_line = nullptr;
    if (options_.gram_folder)
      cache_.emplace(*options_.gram_folder, treatment_of(options_.flip, options_.gram));
    gram_ = stored(train_.x, nullptr, [this] { return kernel_.gram(kernels_); });
    if (validation_ != nullptr) compare_validation();
    if (row_factors_.size() == 0) return;
    const Vector<Scalar> factors = row_factors_.template cast<Scalar>();
    gram_.nngp = factors.asDiagonal() * gram_.nngp * factors.asDiagonal();
    if (validation_ != nullptr) cross_.nngp = cross_.nngp * factors.asDiagonal();
  }

  [[nodiscard]] std::vector<Selection> select() const {
    const TargetScale scale = scale_of(train_.y);
    return in_units_of(scale, select_with(scale), train_.y.rows());
  }

  ModelState run() {
    std::vector<Selection> selections;
    if (!options_.noise && options_.noise_variances.size() == 0) selections = select();
    if (options_.refit) join();
    TargetScale scale = scale_of(targets_);
    // With refit the regulariser is chosen with validation data held back, and the model is fitted to all data.
    std::vector<OutputPosterior> posteriors = options_.noise_variances.size() > 0
                                                  ? known_noise_posteriors(scale)
                                                  : fitted_posteriors(selections, scale);
    ModelState state{std::move(kernel_),   std::move(posteriors), std::move(targets_),
                     std::move(scale),     options_.class_names,  options_.preprocessing,
                     options_.preparation, std::move(selections)};
    state.row_factors = std::move(row_factors_);
    state.law = fitted_law(options_, state.targets.rows());
    return state;
  }

 private:
  void compare_validation() {
    cross_ = stored(validation_->x, &train_.x,
                    [this] { return kernel_.gram_with_train(validation_->x, kernels_); });
    validation_variances_ = kernel_.variances(validation_->x, kernels_);
  }

  GramResult<Scalar> stored(const Inputs<Scalar>& x1, const Inputs<Scalar>* x2,
                            const std::function<GramResult<Scalar>()>& compute) {
    return cache_ ? cache_->get(network_, x1, x2, kernels_.kernels, compute) : compute();
  }

  [[nodiscard]] bool apart() const { return task_.apart(); }
  [[nodiscard]] bool in_units_of_targets() const { return is_in_units_of_targets(options_); }

  [[nodiscard]] TargetScale scale_of(const Matrix<double>& targets) const {
    return fit_scale(targets, options_);
  }

  [[nodiscard]] std::vector<Selection> select_with(const TargetScale& scale) const {
    const Matrix<double> targets = weighted(scale.standardised(train_.y));
    const Matrix<double> held =
        validation_ == nullptr ? Matrix<double>() : scale.standardised(validation_->y);
    return options_.kind == ModelKind::bayesian ? select_bayesian(targets, held)
                                                : select_trained(targets, held);
  }

  [[nodiscard]] std::vector<Selection> select_bayesian(const Matrix<double>& targets,
                                                       const Matrix<double>& held) const {
    std::optional<ValidationKernel> seen;
    // Densities cost nearly as much as all the rest, so they are computed only where the choice is by them.
    const bool densities = options_.criterion == Criterion::negative_log_predictive_density;
    if (validation_ != nullptr)
      seen.emplace(ValidationKernel{cross_.nngp, densities ? validation_variances_ : Vector<double>(), held});
    if (apart())
      return select_regularisers(gram_.nngp, targets, std::move(seen), options_.criterion, options_.grid,
                                 options_.gram.threads);
    return {select_regulariser(gram_.nngp, targets, std::move(seen), options_.criterion, options_.grid,
                               options_.gram.threads)};
  }

  [[nodiscard]] std::vector<Selection> select_trained(const Matrix<double>& targets,
                                                      const Matrix<double>& held) const {
    std::optional<ValidationKernels> seen;
    if (validation_ != nullptr)
      seen.emplace(ValidationKernels{cross_.nngp, cross_.ntk, validation_variances_, held});
    if (apart())
      return select_flow_regularisers(gram_.nngp, gram_.ntk, targets, std::move(seen), options_.criterion,
                                      options_.grid, options_.gram.threads);
    return {select_flow_regulariser(gram_.nngp, gram_.ntk, targets, std::move(seen), options_.criterion,
                                    options_.grid, options_.gram.threads)};
  }

  /// Adds the validation data to the training data. The kernel between both is at hand; only that of the validation
  /// data with themselves is new.
  void join() {
    const GramResult<Scalar> own =
        stored(validation_->x, nullptr, [this] { return kernel_.gram(validation_->x, kernels_); });
    gram_.nngp = joined_gram(gram_.nngp, cross_.nngp, own.nngp);
    if (gram_.ntk.size() > 0) gram_.ntk = joined_gram(gram_.ntk, cross_.ntk, own.ntk);
    Matrix<double> y(train_.y.rows() + validation_->y.rows(), train_.y.cols());
    y << train_.y, validation_->y;
    targets_ = std::move(y);
    kernel_ = ModelKernel<Scalar>(network_, copied_inputs<Scalar, Scalar>({&train_.x, &validation_->x}),
                                  options_.flip, options_.gram);
  }

  [[nodiscard]] std::vector<OutputPosterior> fitted_posteriors(const std::vector<Selection>& selections,
                                                               const TargetScale& scale) {
    const SolverTargets standardised{weighted(scale.standardised(targets_)), {}, apart()};
    const auto groups = output_groups(selections, 0, targets_.cols());
    std::vector<OutputPosterior> posteriors;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const Noise noise = options_.noise ? *options_.noise : RelativeRegulariser(groups[g].regulariser);
      posteriors.push_back(posterior(groups[g].outputs, standardised.train_of(groups[g].outputs), noise,
                                     g + 1 == groups.size()));
    }
    return posteriors;
  }

  [[nodiscard]] Matrix<double> weighted(Matrix<double> targets) const {
    if (row_factors_.size() > 0) targets = row_factors_.asDiagonal() * targets;
    return targets;
  }

  /// With known variances the noise of an output is given, their mean m in its units, and its amplitude is not: for the
  /// kernel a K and rows of equal noise, K + (m / a) I is factorised.
  [[nodiscard]] std::vector<OutputPosterior> known_noise_posteriors(const TargetScale& scale) const {
    const Matrix<double> targets = weighted(scale.standardised(targets_)),
                         gram = gram_.nngp.template cast<double>();
    std::vector<OutputPosterior> posteriors;
    for (Index c = 0; c < targets.cols(); ++c) {
      const double noise = options_.noise_variances.mean() / (scale.factors()(c) * scale.factors()(c));
      const double amplitude =
          options_.amplitude
              ? *options_.amplitude
              : known_noise_amplitude(gram, targets.col(c), noise, options_.grid, options_.gram.threads);
      const Regression fitted =
          Regression::fit(gram, targets.col(c), AbsoluteNoise(noise / amplitude), options_.gram.threads);
      posteriors.push_back({{c}, fitted.with_amplitude(1), Vector<double>::Constant(1, amplitude)});
    }
    return posteriors;
  }

  /// The posterior of some outputs. `last`: no other posterior takes the Gram matrices after this one.
  [[nodiscard]] OutputPosterior posterior(const std::vector<Index>& outputs, const Matrix<double>& targets,
                                          const Noise& noise, bool last) {
    const int threads = options_.gram.threads;
    // The last posterior takes the memory of the Gram matrices.
    const auto matrix = [last](Matrix<Scalar>& held) {
      return last ? DoubleMatrix(std::move(held)) : DoubleMatrix(held);
    };
    const std::vector<Index> representatives = representative_inputs(targets.rows());
    if (options_.kind == ModelKind::bayesian) {
      const Regression regression = Regression::fit(matrix(gram_.nngp), targets, noise, threads);
      Vector<double> amplitudes = amplitudes_of(targets.cols(), [&](bool each) {
        Vector<double> found = Vector<double>::Constant(targets.cols(), regression.amplitude());
        if (each)
          for (Index c = 0; c < found.size(); ++c) found(c) = regression.output(c, targets).amplitude();
        return found;
      });
      // The posterior is kept with the amplitude 1; those of the outputs stand beside it.
      return with_class_calibration(
          {outputs, regression.with_amplitude(1), std::move(amplitudes)}, targets,
          [&] { return regression.with_amplitude(1).leave_one_out(representatives); });
    }
    GradientFlow flow = GradientFlow::fit(matrix(gram_.nngp), matrix(gram_.ntk), targets, noise, 1, threads);
    Vector<double> amplitudes = amplitudes_of(targets.cols(), [&](bool each) -> Vector<double> {
      // Trained networks have no evidence, so that the leave-one-out predictions must be most likely.
      const LeaveOneOut others = flow.leave_one_out(representatives);
      if (each) return others.most_likely_scales(fit_place);
      return Vector<double>::Constant(targets.cols(), others.most_likely_scale(fit_place));
    });
    return with_class_calibration({outputs, TrainedNetworks(flow, options_.time), std::move(amplitudes)},
                                  targets, [&] { return flow.leave_one_out(representatives); });
  }

  /// Fits the calibration of classes, if their amplitude is fitted. That of converged
  /// networks is taken for all times.
  template <typename Others>
  [[nodiscard]] OutputPosterior with_class_calibration(OutputPosterior part, const Matrix<double>& targets,
                                                       const Others& others) const {
    if (task_.is_classes() && !options_.amplitude && !in_units_of_targets()) {
      LeaveOneOut left_out = others();
      if (row_factors_.size() > 0)
        left_out =
            single_observations(std::move(left_out), row_factors_(representative_inputs(targets.rows())),
                                std::get<Regression>(part.posterior).noise_variance());
      part.class_calibration =
          fit_class_calibration({left_out.residuals, part.amplitudes(0) * left_out.variances}, targets_)
              .calibration;
    }
    return part;
  }

  template <typename Fitted>
  [[nodiscard]] Vector<double> amplitudes_of(Index outputs, const Fitted& fitted) const {
    if (options_.amplitude) return Vector<double>::Constant(outputs, *options_.amplitude);
    if (in_units_of_targets()) return Vector<double>::Ones(outputs);
    return fitted(apart());
  }

  const FitTask<Scalar>& task_;
  const Network& network_;
  const LabelledInputs<Scalar>& train_;
  const LabelledInputs<Scalar>* validation_;
  const ModelOptions& options_;
  GramOptions kernels_;
  std::optional<GramCache> cache_;
  ModelKernel<Scalar> kernel_;
  GramResult<Scalar> gram_;
  GramResult<Scalar> cross_;
  Vector<double> validation_variances_;
  Matrix<double> targets_ = train_.y;
  Vector<double> row_factors_ = row_factors({options_.noise_variances, options_.weights});
};

template <typename Scalar>
void require_data(const LabelledInputs<Scalar>& train, const LabelledInputs<Scalar>* validation,
                  const ModelOptions& options) {
  require_inputs(train.x, fit_place, "x");
  require_labelled(train, "the targets");
  if (validation != nullptr) {
    require_inputs(validation->x, fit_place, "the validation batch");
    require_labelled(*validation, "the validation targets");
    require_shape(validation->y, -1, train.y.cols(), fit_place, "the validation targets");
  } else if (options.refit) {
    throw ArgumentError(fmt::format("{}: refit takes validation data", fit_place));
  }
  require_options(options, train.y.cols());
  require_rows(options, train.x.size(), !options.class_names.empty());
  const TargetKind kind = options.class_names.empty() ? TargetKind::numbers : TargetKind::classes;
  if (options.solver == Solver::distributed)
    throw ArgumentError(fmt::format(
        "{}: expected the solver cholesky or conjugate_gradients; only gp shares its matrix among ranks",
        fit_place));
  if (options.solver == Solver::conjugate_gradients)
    require_iterative(options, train.x.size(), train.y.cols());
  if (!options.amplitude && !is_in_units_of_targets(options))
    require_varying_targets(train.y, kind, options.targets_as_they_are, "give one");
  if (!options.noise) require_criterion(options.criterion, kind);
  const bool chooses = !options.noise && options.noise_variances.size() == 0;
  if (chooses && needs_validation(options.criterion) && validation == nullptr)
    throw ArgumentError(
        fmt::format("{}: the criterion takes validation data; give them, or choose evidence or leave_one_out",
                    fit_place));
}

/// The data and options of a fit, once it is known which inputs matter.
template <typename Scalar>
struct LearnedTask {
  LearnedInputs learned;
  LabelledInputs<Scalar> train;
  std::optional<LabelledInputs<Scalar>> validation;
  ModelOptions options;

  [[nodiscard]] FitTask<Scalar> for_fit() const {
    return {learned.network, train, validation ? &*validation : nullptr, options};
  }
};

template <typename Scalar>
LearnedTask<Scalar> learned_task(const Network& network, const LabelledInputs<Scalar>& train,
                                 const LabelledInputs<Scalar>* validation, const ModelOptions& options) {
  LearningOptions learning = options.learning;
  learning.kernel = options.kind == ModelKind::bayesian ? Kernels::nngp : Kernels::ntk;
  learning.kind = options.class_names.empty() ? TargetKind::numbers : TargetKind::classes;
  learning.noise = options.noise;
  LearnedInputs learned =
      learn_inputs(network, train.x, fit_scale(train.y, options).standardised(train.y), learning,
                   {.threads = options.gram.threads, .stop = options.gram.stop});
  LearnedTask<Scalar> task{std::move(learned), {train.x, train.y}, {}, options};
  task.train.x = task.learned.map.apply(train.x);
  if (validation != nullptr) task.validation = {task.learned.map.apply(validation->x), validation->y};
  // What was learned with the scales is a candidate too.
  if (task.learned.regulariser && !options.noise) task.options.grid.push_back(*task.learned.regulariser);
  return task;
}

template <typename Scalar>
ModelState fitted_by_solver(const FitTask<Scalar>& task) {
  return task.options.solver == Solver::conjugate_gradients ? fit_iteratively(task)
                                                            : ModelFit<Scalar>(task).run();
}

template <typename Scalar>
std::vector<Selection> selected_by_solver(const FitTask<Scalar>& task) {
  return task.options.solver == Solver::conjugate_gradients ? select_iteratively(task)
                                                            : ModelFit<Scalar>(task).select();
}

template <typename Scalar>
std::shared_ptr<const ModelState> fitted(const Network& network, const LabelledInputs<Scalar>& train,
                                         const LabelledInputs<Scalar>* validation,
                                         const ModelOptions& options) {
  require_data(train, validation, options);
  if (options.learning.how == InputLearning::none)
    return std::make_shared<const ModelState>(
        fitted_by_solver(FitTask<Scalar>{network, train, validation, options}));
  LearnedTask<Scalar> task = learned_task(network, train, validation, options);
  auto state = std::make_shared<ModelState>(fitted_by_solver(task.for_fit()));
  state->map = task.learned.map;
  state->learned = std::move(task.learned);
  return state;
}

}  // namespace

template <typename Scalar>
Model Model::fit(const Network& network, const Inputs<Scalar>& x, const Matrix<double>& y,
                 const ModelOptions& options) {
  return Model(fitted<Scalar>(network, {x, y}, nullptr, options));
}

template <typename Scalar>
Model Model::fit(const Network& network, const LabelledInputs<Scalar>& train,
                 const LabelledInputs<Scalar>& validation, const ModelOptions& options) {
  return Model(fitted<Scalar>(network, train, &validation, options));
}

template <typename Scalar>
Model Model::fit(const Network& network, const Inputs<Scalar>& x, std::span<const int> labels,
                 ModelOptions options) {
  const std::vector<std::int64_t> wide(labels.begin(), labels.end());
  const ClassLabels classes = options.class_names.empty()
                                  ? ClassLabels::of(wide, fit_place)
                                  : ClassLabels::named(wide, options.class_names, fit_place);
  options.class_names = classes.names();
  return fit(network, x, classes.targets(wide, fit_place), options);
}

template <typename Scalar>
std::vector<Selection> Model::select(const Network& network, const LabelledInputs<Scalar>& train,
                                     const std::optional<LabelledInputs<Scalar>>& validation,
                                     const ModelOptions& options) {
  if (options.noise) throw ArgumentError("Model::select: there is nothing to choose, the noise is given");
  const LabelledInputs<Scalar>* seen = validation ? &*validation : nullptr;
  require_data(train, seen, options);
  if (options.learning.how == InputLearning::none)
    return selected_by_solver(FitTask<Scalar>{network, train, seen, options});
  const LearnedTask<Scalar> task = learned_task(network, train, seen, options);
  return selected_by_solver(task.for_fit());
}

template std::vector<Selection> Model::select(const Network&, const LabelledInputs<float>&,
                                              const std::optional<LabelledInputs<float>>&,
                                              const ModelOptions&);
template std::vector<Selection> Model::select(const Network&, const LabelledInputs<double>&,
                                              const std::optional<LabelledInputs<double>>&,
                                              const ModelOptions&);
template Model Model::fit(const Network&, const Inputs<float>&, const Matrix<double>&, const ModelOptions&);
template Model Model::fit(const Network&, const Inputs<double>&, const Matrix<double>&, const ModelOptions&);
template Model Model::fit(const Network&, const LabelledInputs<float>&, const LabelledInputs<float>&,
                          const ModelOptions&);
template Model Model::fit(const Network&, const LabelledInputs<double>&, const LabelledInputs<double>&,
                          const ModelOptions&);
template Model Model::fit(const Network&, const Inputs<float>&, std::span<const int>, ModelOptions);
template Model Model::fit(const Network&, const Inputs<double>&, std::span<const int>, ModelOptions);

}  // namespace widelimit::gp

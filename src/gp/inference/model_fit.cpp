#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "gp/checks.hpp"
#include "gp/inference/known_noise.hpp"
#include "gp/inference/model_state.hpp"
#include "kernel/inputs/copied_inputs.hpp"
#include "kernel/inputs/require_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/writing_places.hpp"
#include "widelimit/gp/class_labels.hpp"
#include "widelimit/gp/fit.hpp"
#include "widelimit/gp/gram_cache.hpp"
#include "widelimit/store/stored_gram.hpp"

/// Model::fit() and Model::select(): the kernels of a model's inputs, handed to a Fitter, and what is kept of its fit.
namespace widelimit::gp {
namespace {

constexpr const char* fit_place = "Model::fit";

/// What is fitted, checked before; it refers to the caller's data.
template <typename Scalar>
struct FitTask {
  const Network& network;
  const LabelledInputs<Scalar>& train;
  const LabelledInputs<Scalar>* validation;  ///< Null if there are none.
  const ModelOptions& options;
};

TargetKind kind_of(const ModelOptions& options) {
  return options.class_names.empty() ? TargetKind::numbers : TargetKind::classes;
}

bool iterates(const ModelOptions& options) { return options.solver == Solver::conjugate_gradients; }

template <typename Scalar>
Problem problem_of(const LabelledInputs<Scalar>& train, const LabelledInputs<Scalar>* validation,
                   const ModelOptions& options) {
  Problem problem{.kind = kind_of(options), .targets = train.y};
  if (validation != nullptr) problem.validation = validation->y;
  problem.noise_variances = options.noise_variances;
  problem.weights = options.weights;
  return problem;
}

/// The kernels of a model's training inputs, and of validation inputs with them: in memory, kept in a folder, or made
/// anew by a device in every product of conjugate gradients.
template <typename Scalar>
class ModelGrams {
 public:
  using Matrices = std::shared_ptr<GramResult<Scalar>>;

  explicit ModelGrams(const FitTask<Scalar>& task)
      : task_{task}, run_{task.options.gram}, kernel_(task.network, task.train.x, task.options.flip, run_) {
    run_.kernels = task.options.kind == ModelKind::bayesian ? Kernels::nngp : Kernels::both;
    run_.seconds_per_line = nullptr;
    if (task.options.gram_folder)
      cache_.emplace(*task.options.gram_folder, treatment_of(task.options.flip, run_));
    if (iterates(task.options)) iterative_ = std::make_shared<IterativeKernels<Scalar>>(kernel_);
    // A matrix that is kept in a folder is read rather than made anew in every product.
    if (!iterative_ || cache_ || task.options.store_folder || !iterative_->multiplies_on_device(run_))
      hold(stored("train", task.train.x, nullptr, [this] { return kernel_.gram(run_); }));
  }

  /// `validate`: whether something is chosen on validation data; `last`: nothing is asked for after this.
  [[nodiscard]] GramSources sources(bool validate, bool last) {
    GramSources grams;
    if (validate) {
      grams.validation = train_ ? gram_in_memory<Scalar>(cross()) : iterative_->with_train(seen().x, run_);
      if (!iterative_) grams.validation_variances = kernel_.variances(seen().x, run_);
    }
    if (last) cross_.reset();
    if (iterative_)
      grams.train = iterative_->train(run_);
    else
      grams.train = gram_in_memory<Scalar>(last ? std::exchange(train_, nullptr) : train_);
    return grams;
  }

  /// Adds the validation inputs to the training inputs. The kernel between both is at hand; only that of the validation
  /// inputs with themselves is new.
  void join() {
    Matrices together;
    if (train_) {
      const Matrices own =
          stored("validation", seen().x, nullptr, [this] { return kernel_.gram(seen().x, run_); });
      together = std::make_shared<GramResult<Scalar>>(joined_gram(*train_, *cross(), *own));
    }
    cross_.reset();
    kernel_ = ModelKernel<Scalar>(task_.network, copied_inputs<Scalar, Scalar>({&task_.train.x, &seen().x}),
                                  task_.options.flip, task_.options.gram);
    if (iterative_) iterative_ = std::make_shared<IterativeKernels<Scalar>>(kernel_);
    if (together) hold(std::move(together));
  }

  [[nodiscard]] const Inputs<Scalar>& train() const { return kernel_.train(); }
  /// Keeps these of the training inputs, for a model.
  void keep(const std::vector<Index>& rows) {
    train_.reset();
    kernel_ = ModelKernel<Scalar>(task_.network, inputs_of_rows<Scalar>(kernel_.train(), rows),
                                  task_.options.flip, task_.options.gram);
    if (iterative_) iterative_ = std::make_shared<IterativeKernels<Scalar>>(kernel_);
  }
  [[nodiscard]] ModelKernel<Scalar> take_kernel() { return std::move(kernel_); }
  [[nodiscard]] const std::shared_ptr<IterativeKernels<Scalar>>& iterative() const { return iterative_; }

 private:
  [[nodiscard]] const LabelledInputs<Scalar>& seen() const { return *task_.validation; }

  void hold(Matrices matrices) {
    train_ = std::move(matrices);
    if (iterative_) iterative_->keep(train_);
  }
  /// `name`: of their store, in the folder of all.
  [[nodiscard]] Matrices stored(const char* name, const Inputs<Scalar>& x1, const Inputs<Scalar>* x2,
                                const std::function<GramResult<Scalar>()>& compute) {
    if (const auto& folder = task_.options.store_folder) {
      files::require_no_links(*folder, name);
      return std::make_shared<GramResult<Scalar>>(
          store::stored_gram(*folder / name, task_.network, x1, x2, store_options()));
    }
    return std::make_shared<GramResult<Scalar>>(
        cache_ ? cache_->get(task_.network, x1, x2, run_.kernels, compute) : compute());
  }
  /// Of the validation inputs with the training inputs.
  [[nodiscard]] Matrices cross() {
    if (!cross_)
      cross_ = stored("validation-train", seen().x, &task_.train.x,
                      [this] { return kernel_.gram_with_train(seen().x, run_); });
    return cross_;
  }
  [[nodiscard]] store::StoreOptions store_options() const {
    store::StoreOptions options = task_.options.store;
    options.gram = run_;
    if (run_.progress && !options.progress)
      options.progress = [show = run_.progress](const store::StoreProgress& now) {
        show({now.pairs_done + now.pairs_computed, now.pairs});
      };
    return options;
  }

  const FitTask<Scalar>& task_;
  GramOptions run_;
  std::optional<GramCache> cache_;
  ModelKernel<Scalar> kernel_;
  std::shared_ptr<IterativeKernels<Scalar>> iterative_;  ///< Null unless conjugate gradients solve.
  Matrices train_;                                       ///< Null where a device makes them anew.
  Matrices cross_;
};

/// A fit of a task, and what a model keeps of it.
template <typename Scalar>
class ModelFitting {
 public:
  explicit ModelFitting(const FitTask<Scalar>& task) : task_{task}, options_{task.options}, grams_{task} {}

  [[nodiscard]] std::vector<Selection> select(bool last = true) {
    return fitter(problem(), needs_validation(fit_options(options_).criterion), last)->select(kernel());
  }

  [[nodiscard]] ModelState run() {
    Problem to_fit = problem();
    const bool chooses = fit_options(options_).chooses(to_fit);
    std::vector<Selection> selections;
    if (options_.refit) {
      // The regulariser is chosen with validation data held back, and the model is fitted to all data.
      if (chooses) selections = select(false);
      grams_.join();
      to_fit.joined_inputs = joined_inputs(task_.train.x, task_.validation->x, options_.groups);
      to_fit.join_validation();
    }
    const bool validates = chooses && !options_.refit && needs_validation(fit_options(options_).criterion);
    const auto fits = fitter(std::move(to_fit), validates, true);
    return state_of(*fits, fits->fit(kernel(), {options_.time}, false, selections));
  }

 private:
  [[nodiscard]] std::string kernel() const { return options_.kind == ModelKind::bayesian ? "nngp" : "ntk"; }
  [[nodiscard]] Problem problem() const {
    Problem problem = problem_of(task_.train, task_.validation, options_);
    problem.inputs = distinct_inputs(task_.train.x, options_.groups);
    return problem;
  }

  [[nodiscard]] std::unique_ptr<Fitter> fitter(Problem problem, bool validate, bool last) {
    const MakeSolver solvers = [this](const std::string& kernel, GramSources& grams,
                                      const SolverTargets& targets, const SolverOptions& options,
                                      bool kernels_follow) {
      return iterates(options_) ? iterative_solver(kernel, grams, targets, options)
                                : direct_solver(kernel, grams, targets, options, kernels_follow);
    };
    FitOptions fit = fit_options(options_);
    fit.keeps_posteriors = true;
    return std::make_unique<Fitter>(std::move(problem), std::move(fit), grams_.sources(validate, last),
                                    solvers);
  }

  [[nodiscard]] ModelState state_of(const Fitter& fits, Fit fitted) {
    std::vector<OutputPosterior> posteriors;
    for (FittedOutputs& part : fitted.parts)
      posteriors.push_back({std::move(part.outputs), *part.posteriors.front()->kept(),
                            std::move(part.amplitudes), fitted.class_calibration, part.regulariser});
    const Problem& problem = fits.problem();
    RepeatedRows rows;
    if (problem.inputs->repeats() > 0) {
      grams_.keep(problem.inputs->rows);
      rows = {problem.inputs->of_row, problem.targets,
              row_weights({problem.noise_variances, problem.weights})};
    }
    ModelState state{grams_.take_kernel(), std::move(posteriors),       fits.input_targets(),
                     fits.scale(),         options_.class_names,        options_.preprocessing,
                     options_.preparation, std::move(fitted.selections)};
    state.row_factors = fits.row_factors();
    state.iterative = grams_.iterative();
    state.law = fitted.law;
    state.times = options_.times;
    state.rows = std::move(rows);
    state.groups = problem.inputs->groups;
    return state;
  }

  const FitTask<Scalar>& task_;
  const ModelOptions& options_;
  ModelGrams<Scalar> grams_;
};

/// What people asked for, in whose words refusals come.
FitRequest request_of(const Problem& problem, const ModelOptions& options) {
  FitRequest request = fit_request(problem, fit_options(options), options.kind == ModelKind::trained);
  request.is_model = true;
  request.gives_time = options.time != infinite_time || !options.times.empty();
  // Structures are shared in C++ between fits that choose and fits that do not.
  if (request.chooses() || options.door != Door::cpp) request.criterion = options.criterion;
  request.refits = options.refit;
  request.groups = !options.groups.empty();
  request.flips = options.flip;
  request.relevance = options.learning.how == InputLearning::relevance;
  request.features = options.learning.how == InputLearning::features;
  request.keeps_matrices = options.gram_folder.has_value();
  request.stores_matrices = options.store_folder.has_value();
  request.solver = options.solver;
  return request;
}

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
  require_time(options.time, fit_place);
  for (const double time : options.times) require_time(time, fit_place);
  if (options.amplitude) require_amplitude(*options.amplitude, fit_place);
  if (!nlohmann::json::parse(options.preparation, nullptr, false).is_object())
    throw ArgumentError(fmt::format("{}: preparation: expected the text of a JSON object, got '{}'",
                                    fit_place, options.preparation));
  const auto names = static_cast<Index>(options.class_names.size());
  if (names > 0 && names != std::max<Index>(outputs, 2))
    throw ArgumentError(fmt::format("{}: expected {} class names for {} outputs, got {}", fit_place,
                                    std::max<Index>(outputs, 2), outputs, names));
}

template <typename Scalar>
void require_data(const LabelledInputs<Scalar>& train, const LabelledInputs<Scalar>* validation,
                  const ModelOptions& options) {
  require_inputs(train.x, fit_place, "x");
  require_labelled(train, "the targets");
  if (validation != nullptr) {
    require_inputs(validation->x, fit_place, "the validation batch");
    require_labelled(*validation, "the validation targets");
    require_shape(validation->y, -1, train.y.cols(), fit_place, "the validation targets");
  }
  require_options(options, train.y.cols());
  if (!options.groups.empty() && static_cast<Index>(options.groups.size()) != train.x.size())
    throw ArgumentError(fmt::format("{}: groups: expected one for each of {} training inputs, got {}",
                                    fit_place, train.x.size(), options.groups.size()));
  const Problem problem = problem_of(train, validation, options);
  require_rows(problem, fit_place);
  require_fit(request_of(problem, options), options.door, options.door == Door::cpp ? fit_place : "");
  if (!options.amplitude && !fit_options(options).is_in_units_of_targets())
    require_varying_targets(train.y, problem.kind, options.targets_as_they_are, "give one");
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
  learning.kind = kind_of(options);
  learning.noise = options.noise;
  learning.row_groups = options.groups;
  const FitOptions fit = fit_options(options);
  LearnedInputs learned =
      learn_inputs(network, train.x, standardised_targets(train.y, learning.kind, fit), learning,
                   {.threads = options.gram.threads, .stop = options.gram.stop});
  LearnedTask<Scalar> task{std::move(learned), {train.x, train.y}, {}, options};
  task.train.x = task.learned.map.apply(train.x);
  if (validation != nullptr) task.validation = {task.learned.map.apply(validation->x), validation->y};
  // What was learned with the scales is a candidate too.
  if (task.learned.regulariser && !options.noise) task.options.grid.push_back(*task.learned.regulariser);
  return task;
}

/// Labelled inputs that went through the input map of the options.
template <typename Scalar>
std::optional<LabelledInputs<Scalar>> mapped(const FeatureMap& map, const LabelledInputs<Scalar>* data) {
  if (data == nullptr) return std::nullopt;
  return LabelledInputs<Scalar>{map.apply(data->x), data->y};
}

template <typename Scalar>
std::shared_ptr<const ModelState> fitted(const Network& network, const LabelledInputs<Scalar>& given,
                                         const LabelledInputs<Scalar>* given_validation,
                                         const ModelOptions& options) {
  require_data(given, given_validation, options);
  const FeatureMap& map = options.input_map;
  const LabelledInputs<Scalar> train = *mapped(map, &given);
  const std::optional<LabelledInputs<Scalar>> others = mapped(map, given_validation);
  const LabelledInputs<Scalar>* validation = others ? &*others : nullptr;
  if (options.learning.how == InputLearning::none) {
    const FitTask<Scalar> task{network, train, validation, options};
    auto state = std::make_shared<ModelState>(ModelFitting<Scalar>(task).run());
    state->map = map;
    return state;
  }
  LearnedTask<Scalar> task = learned_task(network, train, validation, options);
  const FitTask<Scalar> to_fit = task.for_fit();
  auto state = std::make_shared<ModelState>(ModelFitting<Scalar>(to_fit).run());
  state->map = map.then(task.learned.map);
  state->learned = std::move(task.learned);
  return state;
}

}  // namespace

FitOptions fit_options(const ModelOptions& options) {
  FitOptions fit;
  fit.noise = options.noise;
  fit.criterion = options.criterion.value_or(usual_criterion(options.solver));
  fit.candidates = options.grid;
  fit.amplitude = options.amplitude;
  fit.targets_as_they_are = options.targets_as_they_are;
  fit.transform = options.transform.value_or(TargetTransform::none);
  fit.fits_tails = options.fits_tails;
  fit.threads = options.gram.threads;
  fit.residual = options.residual;
  fit.stop = options.gram.stop;
  fit.progress = options.iterations;
  return fit;
}

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
std::vector<Selection> Model::select(const Network& network, const LabelledInputs<Scalar>& to_train,
                                     const std::optional<LabelledInputs<Scalar>>& validation,
                                     const ModelOptions& options) {
  if (options.noise) throw ArgumentError("Model::select: there is nothing to choose, the noise is given");
  const LabelledInputs<Scalar>* given = validation ? &*validation : nullptr;
  require_data(to_train, given, options);
  const LabelledInputs<Scalar> train = *mapped(options.input_map, &to_train);
  const std::optional<LabelledInputs<Scalar>> others = mapped(options.input_map, given);
  const LabelledInputs<Scalar>* seen = others ? &*others : nullptr;
  if (options.learning.how == InputLearning::none) {
    const FitTask<Scalar> task{network, train, seen, options};
    return ModelFitting<Scalar>(task).select();
  }
  const LearnedTask<Scalar> learned = learned_task(network, train, seen, options);
  const FitTask<Scalar> task = learned.for_fit();
  return ModelFitting<Scalar>(task).select();
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

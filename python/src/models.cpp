#include "models.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "batches.hpp"
#include "devices.hpp"
#include "left_out.hpp"
#include "run_control.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/learned_inputs.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/search.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using gp::Model;
using gp::ModelOptions;
using gp::Preprocessing;
using Numbers = Array<double>;

/// A member of an enumeration by its word.
template <typename Choice>
Choice chosen(const char* name, const std::vector<std::pair<std::string, Choice>>& words,
              const std::string& word) {
  std::string known;
  for (const auto& [spelling, choice] : words) {
    if (spelling == word) return choice;
    known += (known.empty() ? "" : ", ") + spelling;
  }
  throw ArgumentError(std::string(name) + ": expected " + known + ", got " + word);
}

/// A run on so many threads, left to itself soon after Ctrl-C: compute(run) owns what it uses but for `used`.
template <typename Compute>
auto run_on(int threads, Compute compute, std::vector<nb::object> used) {
  return run_or_leave(
      [threads, device = chosen_device(), compute = std::move(compute)](std::stop_token stop) {
        GramOptions run;
        run.threads = threads;
        run.device = device;
        run.stop = std::move(stop);
        return compute(run);
      },
      std::move(used));
}

/// Without rounds relevance is learned, else features.
gp::LearningOptions learning_of(int rounds, bool full_matrix, const std::vector<Index>& groups) {
  gp::LearningOptions options{.how = rounds > 0 ? gp::InputLearning::features : gp::InputLearning::relevance,
                              .groups = groups};
  options.rounds = rounds;
  options.full_matrix = full_matrix;
  return options;
}

/// Factors [channels] or [channels, channels], or None.
nb::object factors_of(const gp::FeatureMap& map) {
  if (map.factors().size() == 0) return nb::none();
  if (map.is_diagonal()) return nb::cast(array_of(Vector<double>(map.factors().row(0).transpose())));
  return nb::cast(array_of(Matrix<double>(map.factors())));
}

nb::object described(const gp::LearnedInputs& learned) {
  nb::dict facts;
  facts["factors"] = factors_of(learned.kept ? learned.map : learned.rejected);
  facts["kept"] = learned.kept;
  facts["score"] = learned.after;
  facts["score_without"] = learned.before;
  facts["standard_error"] = learned.standard_error;
  facts["course"] = learned.course;
  return facts;
}

ModelOptions with_stop(ModelOptions options, std::stop_token stop) {
  options.gram.stop = std::move(stop);
  return options;
}

/// The Python objects of a network or a model, whose functions are called, and of batches, whose arrays are read.
template <typename Owner, typename Scalar>
std::vector<nb::object> holders_of(const Owner& owner, const Batch<Scalar>& x,
                                   const Batch<Scalar>* other = nullptr) {
  std::vector<nb::object> holders{nb::find(owner), nb::find(x)};
  if (other != nullptr) holders.push_back(nb::find(*other));
  return holders;
}

template <typename Scalar>
gp::LabelledInputs<Scalar> labelled(const Batch<Scalar>& x, const Numbers& y) {
  return {x.inputs, matrix_of(y)};
}

template <typename Scalar>
Model fit(const Network& network, const Batch<Scalar>& x, const Numbers& y, const Batch<Scalar>* validation_x,
          const std::optional<Numbers>& validation_y, const ModelOptions& options) {
  std::optional<gp::LabelledInputs<Scalar>> validation;
  if (validation_x != nullptr && validation_y) validation = labelled(*validation_x, *validation_y);
  return run_or_leave(
      [network, train = labelled(x, y), validation, options](std::stop_token stop) {
        const ModelOptions stoppable = with_stop(options, std::move(stop));
        return validation ? Model::fit(network, train, *validation, stoppable)
                          : Model::fit(network, train.x, train.y, stoppable);
      },
      holders_of(network, x, validation_x));
}

/// (best, noise floor, scores: one dictionary a regulariser).
nb::object described(const gp::Selection& selection) {
  nb::list scores;
  for (const gp::RegulariserScore& score : selection.scores) {
    nb::dict row;
    row["regulariser"] = score.relative_regulariser;
    row["above_noise"] = score.above_noise;
    row["accuracy"] = score.accuracy;
    row["mse"] = score.mean_squared_error;
    row["nlpd"] = score.negative_log_predictive_density;
    row["log_marginal_likelihood"] = score.log_marginal_likelihood;
    row["loo"] = score.leave_one_out;
    scores.append(row);
  }
  return nb::make_tuple(selection.best.value(), selection.noise_floor, scores);
}

nb::tuple described(const std::vector<gp::Selection>& selections) {
  nb::list all;
  for (const gp::Selection& selection : selections) all.append(described(selection));
  return nb::tuple(all);
}

template <typename Scalar>
nb::tuple select(const Network& network, const Batch<Scalar>& x, const Numbers& y,
                 const Batch<Scalar>* validation_x, const std::optional<Numbers>& validation_y,
                 const ModelOptions& options) {
  std::optional<gp::LabelledInputs<Scalar>> validation;
  if (validation_x != nullptr && validation_y) validation = labelled(*validation_x, *validation_y);
  return described(run_or_leave(
      [network, train = labelled(x, y), validation, options](std::stop_token stop) {
        return Model::select(network, train, validation, with_stop(options, std::move(stop)));
      },
      holders_of(network, x, validation_x)));
}

/// Functions, [count, n, outputs].
nb::object array_of_samples(const std::vector<Matrix<double>>& samples) {
  auto* owned = new std::vector<double>();
  const nb::capsule owner(owned,
                          [](void* pointer) noexcept { delete static_cast<std::vector<double>*>(pointer); });
  const auto rows = samples.empty() ? Index{0} : samples[0].rows(),
             columns = samples.empty() ? 0 : samples[0].cols();
  for (const Matrix<double>& sample : samples)
    owned->insert(owned->end(), sample.data(), sample.data() + sample.size());
  return nb::cast(NumpyArray<double>(
      owned->data(), {samples.size(), static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)},
      owner));
}

nb::tuple law_of(const gp::ObservationLaw& law) {
  return nb::make_tuple(law.degrees_of_freedom, law.scale, law.of_logarithms);
}

template <typename Scalar>
nb::tuple predict(const Model& self, const Batch<Scalar>& x, int threads) {
  gp::ModelPrediction found = run_on(
      threads,
      [model = &self, inputs = x.inputs](const GramOptions& run) { return model->predict(inputs, run); },
      holders_of(self, x));
  return nb::make_tuple(array_of(std::move(found.mean)), array_of(found.standard_deviation()),
                        array_of(found.noise_variance), array_or_none(std::move(found.class_probabilities)),
                        law_of(found.law));
}

template <typename Scalar>
nb::tuple predict_jointly(const Model& self, const Batch<Scalar>& x, int threads) {
  gp::JointPrediction found = run_on(
      threads,
      [model = &self, inputs = x.inputs](const GramOptions& run) {
        return model->predict_jointly(inputs, run);
      },
      holders_of(self, x));
  nb::list covariances;
  for (Matrix<double>& covariance : found.covariances) covariances.append(array_of(std::move(covariance)));
  return nb::make_tuple(array_of(std::move(found.mean)), covariances);
}

template <typename Scalar>
void bind_model_of(nb::class_<Model>& model) {
  model
      .def_static("fit", &fit<Scalar>, "network"_a, "x"_a, "y"_a, "validation_x"_a.none(),
                  "validation_y"_a.none(), "options"_a)
      .def_static("select", &select<Scalar>, "network"_a, "x"_a, "y"_a, "validation_x"_a.none(),
                  "validation_y"_a.none(), "options"_a)
      .def("predict", &predict<Scalar>, "x"_a, "threads"_a)
      .def("range_warning",
           [](const Model& self, const Batch<Scalar>& x) { return self.range_warning(x.inputs); })
      .def("predict_jointly", &predict_jointly<Scalar>, "x"_a, "threads"_a)
      .def(
          "mean",
          [](const Model& self, const Batch<Scalar>& x, int threads) {
            return array_of(run_on(
                threads,
                [model = &self, inputs = x.inputs](const GramOptions& run) {
                  return model->mean(inputs, run);
                },
                holders_of(self, x)));
          },
          "x"_a, "threads"_a)
      .def(
          "samples",
          [](const Model& self, const Batch<Scalar>& x, Index count, std::uint64_t seed, bool joint,
             int threads) {
            const auto sampling = joint ? gp::Sampling::joint : gp::Sampling::marginal;
            return array_of_samples(run_on(
                threads,
                [model = &self, inputs = x.inputs, count, seed, sampling](const GramOptions& run) {
                  return model->samples(inputs, count, seed, sampling, run);
                },
                holders_of(self, x)));
          },
          "x"_a, "count"_a, "seed"_a, "joint"_a, "threads"_a)
      .def(
          "prior_samples",
          [](const Model& self, const Batch<Scalar>& x, Index count, std::uint64_t seed, int threads) {
            return array_of_samples(run_on(
                threads,
                [model = &self, inputs = x.inputs, count, seed](const GramOptions& run) {
                  return model->prior_samples(inputs, count, seed, run);
                },
                holders_of(self, x)));
          },
          "x"_a, "count"_a, "seed"_a, "threads"_a);
}

void bind_model(nb::module_& module) {
  nb::class_<Model> model(module, "Model");
  bind_model_of<float>(model);
  bind_model_of<double>(model);
  model.def("leave_one_out", &left_out_of<Model>)
      .def("log_marginal_likelihood", &Model::log_marginal_likelihood)
      .def("with_amplitude", &Model::with_amplitude, "amplitude"_a)
      .def("at_time", &Model::at_time, "time"_a)
      .def("selections", [](const Model& self) { return described(self.selections()); })
      .def(
          "save",
          [](const Model& self, const std::filesystem::path& folder) {
            run_or_leave([model = &self, folder](std::stop_token) { model->save(folder); }, {nb::find(self)});
          },
          "folder"_a)
      .def_prop_ro(
          "kind",
          [](const Model& self) { return self.kind() == gp::ModelKind::bayesian ? "bayesian" : "trained"; })
      .def_prop_ro("solver", [](const Model& self) { return gp::solver_name(self.solver()); })
      .def_prop_ro("time", &Model::time)
      .def_prop_ro("times", &Model::times)
      .def_prop_ro("amplitude", [](const Model& self) { return array_of(self.amplitude()); })
      .def_prop_ro("noise_variance", [](const Model& self) { return array_of(self.noise_variance()); })
      .def_prop_ro("regulariser", [](const Model& self) { return array_of(self.regulariser()); })
      .def_prop_ro("law", [](const Model& self) { return law_of(self.law()); })
      .def_prop_ro("target_offsets", [](const Model& m) { return array_of(m.target_scale().offsets()); })
      .def_prop_ro("target_factors", [](const Model& m) { return array_of(m.target_scale().factors()); })
      .def_prop_ro("probability_scale", [](const Model& self) { return self.class_calibration().scale; })
      .def_prop_ro(
          "probability_shifts",
          [](const Model& self) { return array_of(Vector<double>(self.class_calibration().shifts)); })
      .def_prop_ro("train_size", &Model::train_size)
      .def_prop_ro("outputs", &Model::outputs)
      .def_prop_ro("network", &Model::network)
      .def_prop_ro("class_names", &Model::class_names)
      .def_prop_ro("flips", &Model::flips)
      .def_prop_ro("feature_map", [](const Model& self) { return factors_of(self.feature_map()); })
      .def_prop_ro("learned",
                   [](const Model& self) { return self.learned() ? described(*self.learned()) : nb::none(); })
      .def_prop_ro("preprocessing", &Model::preprocessing)
      .def_prop_ro("preparation", &Model::preparation);
}

/// (network, factors or None, regulariser or None, facts).
nb::tuple learned_inputs(const Network& network, const Batch<double>& x, const Numbers& y, bool classes,
                         const std::string& kernel, int rounds, bool full_matrix,
                         const std::vector<Index>& groups, bool check, int threads) {
  gp::LearningOptions options = learning_of(rounds, full_matrix, groups);
  options.kernel = chosen<Kernels>("kernel", {{"nngp", Kernels::nngp}, {"ntk", Kernels::ntk}}, kernel);
  options.kind = classes ? gp::TargetKind::classes : gp::TargetKind::numbers;
  options.check = check;
  const gp::LearnedInputs learned = run_or_leave(
      [network, inputs = x.inputs, targets = matrix_of(y), options, threads](std::stop_token stop) {
        return gp::learn_inputs(network, inputs, targets, options,
                                {.threads = threads, .stop = std::move(stop)});
      },
      holders_of(network, x));
  return nb::make_tuple(learned.network, factors_of(learned.map), learned.regulariser, described(learned));
}

template <typename Scalar>
xt::xarray<Scalar> copied(const Array<Scalar>& array) {
  const auto dimensions = dimensions_of(array);
  xt::xarray<Scalar> result(std::vector<std::size_t>(dimensions.begin(), dimensions.end()));
  std::copy(array.data(), array.data() + array.size(), result.begin());
  return result;
}

template <typename Scalar>
ArrayObject<Scalar> applied(const Preprocessing& self, const Array<Scalar>& array) {
  auto* owned = new xt::xarray<Scalar>(
      run_or_leave([self, numbers = copied(array)](std::stop_token) { return self.apply(numbers); }));
  const nb::capsule owner(owned,
                          [](void* pointer) noexcept { delete static_cast<xt::xarray<Scalar>*>(pointer); });
  const std::vector<std::size_t> shape(owned->shape().begin(), owned->shape().end());
  return nb::borrow<ArrayObject<Scalar>>(
      nb::cast(NumpyArray<Scalar>(owned->data(), shape.size(), shape.data(), owner)));
}

template <typename Scalar>
Preprocessing fitted(const std::string& kind, const Array<Scalar>& train, double zca_regulariser,
                     bool mirror_images) {
  return run_or_leave([choice = gp::preprocessing_kind(kind), numbers = copied(train), zca_regulariser,
                       mirror_images](std::stop_token) {
    return Preprocessing::fit(choice, numbers, zca_regulariser, mirror_images);
  });
}

void bind_preprocessing(nb::module_& module) {
  nb::class_<Preprocessing>(module, "Preprocessing",
                            "The processing of inputs before a kernel sees them, fitted to training inputs "
                            "[n, spatial..., channels].\n\n"
                            "kind: 'none'; 'pixel', every position's channels, 'image', every input, "
                            "'channel', every channel over the "
                            "training inputs: mean 0 and standard deviation 1; 'zca': regularised whitening "
                            "of whole inputs, zca_regulariser "
                            "> 0, relative to the mean eigenvalue of their covariance. Float32 stays "
                            "float32, all other types are computed "
                            "as float64.")
      .def(nb::init<>(), "Leaves inputs unchanged: kind 'none'.")
      .def_static("fit", &fitted<float>, "kind"_a, "train"_a.noconvert(),
                  "zca_regulariser"_a = Preprocessing::default_zca_regulariser, "mirror_images"_a = false,
                  "Fits to training inputs, with mirror_images also to all of them reversed along the last "
                  "spatial axis, as models with flip need. ArgumentError for another kind, inputs without "
                  "channels, NaN, and inputs that do not differ.")
      .def_static("fit", &fitted<double>, "kind"_a, "train"_a,
                  "zca_regulariser"_a = Preprocessing::default_zca_regulariser, "mirror_images"_a = false)
      .def("apply", &applied<float>, "x"_a.noconvert(),
           "The preprocessed inputs, of the same shape. ArgumentError for inputs of another form than in "
           "fit().")
      .def("apply", &applied<double>, "x"_a)
      .def_prop_ro(
          "kind", [](const Preprocessing& self) { return to_string(self.kind()); }, "As in fit().");
}

using NamedBounds = std::tuple<std::string, double, double, std::string>;
using ScoredValues = std::pair<std::vector<double>, double>;

std::vector<ScoredValues> searched(const std::vector<NamedBounds>& parameters,
                                   const std::function<double(std::vector<double>)>& score, int trials,
                                   const std::vector<ScoredValues>& known) {
  std::vector<gp::SearchParameter> numbers;
  for (const auto& [name, lower, upper, scale] : parameters)
    numbers.push_back({name, lower, upper,
                       chosen<gp::SearchScale>("scale",
                                               {{"linear", gp::SearchScale::linear},
                                                {"log", gp::SearchScale::logarithmic},
                                                {"integer", gp::SearchScale::integer}},
                                               scale)});
  gp::SearchOptions options{.trials = trials, .known = {}};
  for (const auto& [values, result] : known) options.known.push_back({values, result});
  std::vector<ScoredValues> result;
  for (const gp::Trial& trial : gp::search(numbers, score, options))
    result.emplace_back(trial.values, trial.score);
  return result;
}

}  // namespace

void bind_models(nb::module_& module) {
  bind_preprocessing(module);
  bind_model(module);
  module.def("learn_inputs", &learned_inputs, "network"_a, "x"_a, "y"_a, "classes"_a, "kernel"_a, "rounds"_a,
             "full_matrix"_a, "groups"_a, "check"_a, "threads"_a);
  module.def("search", &searched, "parameters"_a, "score"_a, "trials"_a, "known"_a);
}

}  // namespace widelimit::python

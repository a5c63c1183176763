#include "head_times.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "arrays.hpp"
#include "estimates.hpp"
#include "interruptible.hpp"
#include "run_control.hpp"
#include "widelimit/specialization/configuration.hpp"
#include "widelimit/specialization/first_times.hpp"
#include "widelimit/specialization/image_task.hpp"
#include "widelimit/specialization/seeds.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using specialization::BayesRisk;
using specialization::FirstTimes;
using specialization::HeadActivation;
using specialization::HeadVectors;
using specialization::ImageTask;
using specialization::SgdOptions;

/// (times, how it ended) of each quantity from one start; NaN for what was not reached.
nb::tuple arrays_of_times(const FirstTimes& found) {
  constexpr const char* ends[] = {"specialised", "rest", "tau"};
  return nb::make_tuple(
      array_of_each(found.times,
                    [](const std::optional<double>& time) { return time.value_or(std::nan("")); }),
      ends[static_cast<std::size_t>(found.end)]);
}

/// Runs over sizes of the start, several of each.
struct TimedRuns {
  std::vector<double> etas;
  Index starts, dimension;
  std::uint64_t seed;
  int threads;
  std::function<FirstTimes(double, std::uint64_t, const RunControl&)> run;

  /// Of one of them, `start` counted from 0.
  [[nodiscard]] nb::tuple first_times(double eta, Index start) const {
    return arrays_of_times(run_interruptibly([&](std::stop_token stop) {
      return run(eta, seed + static_cast<std::uint64_t>(start), run_control_of(threads, {}, std::move(stop)));
    }));
  }
};

template <typename Run>
TimedRuns timed_runs(ConfigReader& fields, Index dimension, int threads, Run run) {
  return {.etas = fields.numbers("etas"),
          .starts = fields.integer("starts"),
          .dimension = dimension,
          .seed = specialization::read_seed(fields),
          .threads = threads,
          .run = std::move(run)};
}

/// Flows from random starts in D dimensions, or SGD in Gram form.
TimedRuns timed_heads(const specialization::Prior& prior, const nb::dict& given, bool features, int threads) {
  const auto& rows = specialization::experiment_fields(features ? "feature-times" : "phase-transition");
  return read_arguments("specialisation_times", given, rows, [&](ConfigReader& fields) {
    specialization::TimedSetup setup = specialization::read_timed_runs(fields, prior);
    set_dimension(fields, fields.integer("dimension"), setup);
    setup.runs.activation = specialization::read_activation(fields);
    return timed_runs(fields, setup.runs.dimension, threads,
                      [setup, features](double eta, std::uint64_t seed, const RunControl& control) {
                        specialization::TimedSetup with_run = setup;
                        with_run.runs.run = control;
                        return features ? feature_split_times(with_run.runs, eta, seed)
                                        : with_run.split_times(eta, seed);
                      });
  });
}

/// SGD on images; the task must live as long.
TimedRuns timed_images(const ImageTask& task, const nb::dict& given, int threads) {
  const auto& rows = specialization::experiment_fields("digit-times");
  return read_arguments("digit_times", given, rows, [&](ConfigReader& fields) {
    const HeadActivation activation = specialization::read_activation(fields);
    const Index heads = fields.integer("heads");
    const double delta = fields.number("delta");
    const SgdOptions options = specialization::read_image_sgd(fields, task.dimension());
    return timed_runs(fields, task.dimension(), threads,
                      [=, &task](double eta, std::uint64_t seed, const RunControl& control) {
                        SgdOptions with_run = options;
                        with_run.seed = seed;
                        with_run.run = control;
                        return class_split_times_of_sgd(activation, heads, task, eta, delta, with_run);
                      });
  });
}

nb::tuple pair_of_risk(const BayesRisk& risk) { return nb::make_tuple(risk.risk, risk.standard_error); }

/// (k, b, v, (loss, error), (Bayes risk, error), cosines).
nb::tuple trained_on_images(const ImageTask& task, const nb::dict& given, int threads,
                            const ProgressFunction& progress) {
  struct Told {
    HeadActivation activation;
    Index heads, fresh_samples, risk_samples;
    double eta;
    SgdOptions options;
  };
  struct Found {
    HeadVectors heads;
    BayesRisk loss, risk;
  };
  const auto& rows = specialization::experiment_fields("digits");
  Told told = read_arguments("digits", given, rows, [&](ConfigReader& fields) {
    Told read{specialization::read_activation(fields),
              fields.integer("heads"),
              fields.integer("fresh_samples"),
              fields.integer("risk_samples"),
              fields.number("eta"),
              specialization::read_image_sgd(fields, task.dimension())};
    read.options.seed = specialization::read_seed(fields);
    return read;
  });
  Found found = run_interruptibly([&](std::stop_token stop) {
    SgdOptions& options = told.options;
    options.run = run_control_of(threads, progress, std::move(stop));
    const HeadVectors start = random_start(told.activation, told.heads, 1, task.dimension(), told.eta,
                                           options.seed + specialization::start_seed)
                                  .heads;
    Found result{
        .heads = image_sgd(told.activation, task, start, options).back().heads, .loss = {}, .risk = {}};
    result.loss = image_loss(told.activation, task, result.heads, options.tokens, told.fresh_samples,
                             options.seed + specialization::judge_seed, options.run);
    result.risk = task.bayes_risk(options.tokens, told.risk_samples, options.seed + specialization::risk_seed,
                                  options.run);
    return result;
  });
  Matrix<double> cosines = task.class_cosines(found.heads.k);
  return nb::make_tuple(array_of(std::move(found.heads.k)), array_of(std::move(found.heads.b)),
                        array_of(std::move(found.heads.v)), pair_of_risk(found.loss),
                        pair_of_risk(found.risk), array_of(std::move(cosines)));
}

/// An amplitude by its row.
void make_image_task(ImageTask* self, const ArrayLikeObject& pixels, std::vector<int> labels,
                     const nb::dict& given) {
  const double amplitude = read_arguments("ImageTask", given, specialization::experiment_fields("digits"),
                                          [](ConfigReader& fields) { return fields.number("amplitude"); });
  new (self) ImageTask(matrix_of(pixels, "images"), std::move(labels), amplitude);
}

}  // namespace

void bind_head_times(nb::module_& module) {
  nb::class_<TimedRuns>(module, "TimedRuns")
      .def_ro("etas", &TimedRuns::etas)
      .def_ro("starts", &TimedRuns::starts)
      .def_ro("dimension", &TimedRuns::dimension)
      .def("first_times", &TimedRuns::first_times, "eta"_a, "start"_a);
  module.def("timed_heads", &timed_heads, "prior"_a, "given"_a, "features"_a, "threads"_a);
  nb::class_<ImageTask>(module, "HeadImageTask")
      .def("__init__", &make_image_task, "pixels"_a, "labels"_a, "given"_a)
      .def_prop_ro("amplitude", &ImageTask::amplitude)
      .def_prop_ro("dimension", &ImageTask::dimension)
      .def("class_means", [](const ImageTask& task) { return array_of(Matrix<double>(task.class_means())); });
  module.def("head_digits", &trained_on_images, "task"_a, "given"_a, "threads"_a, "progress"_a.none());
  module.def("timed_images", &timed_images, nb::keep_alive<0, 1>(), "task"_a, "given"_a, "threads"_a);
}

}  // namespace widelimit::python

#include "head_times.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "estimates.hpp"
#include "interruptible.hpp"
#include "run_control.hpp"
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

/// Flows from random starts in D dimensions, or SGD in Gram form, as widelimit.heads tells of them.
struct TimedHeads {
  specialization::TimedFlows runs;
  bool features;
  std::optional<Index> batch;  ///< Of SGD; none for flows.
};

void make_timed(TimedHeads* self, const std::string& activation, const specialization::Prior& prior,
                Index tokens, Index heads, Index dimension, Index samples, double step, Index steps,
                double delta, double stop_gradient, bool closed, bool features, std::optional<Index> batch,
                int threads) {
  using specialization::SampleSymmetry;
  new (self) TimedHeads{{.activation = specialization::head_activation_from_name(activation),
                         .prior = prior,
                         .heads = heads,
                         .tokens = tokens,
                         .dimension = dimension,
                         .samples = samples,
                         .steps = steps,
                         .step = step,
                         .delta = delta,
                         .stop_gradient = stop_gradient,
                         .symmetry = closed ? SampleSymmetry::closed : SampleSymmetry::plain,
                         .run = {.threads = threads}},
                        features,
                        batch};
}

nb::tuple first_times_of(const TimedHeads& timed, double eta, std::uint64_t seed) {
  return arrays_of_times(run_interruptibly([&](std::stop_token stop) {
    specialization::TimedFlows runs = timed.runs;
    runs.run = run_control_of(runs.run.threads, {}, std::move(stop));
    if (timed.batch) return head_split_time_of_sgd(runs, *timed.batch, eta, seed);
    return timed.features ? feature_split_times(runs, eta, seed) : head_split_time(runs, eta, seed);
  }));
}

/// What SGD on images is told.
struct ImageRuns {
  HeadActivation activation;
  Index heads;
  SgdOptions options;
  ProgressFunction progress;

  /// compute(options) of a run with its own seed, interrupted by Ctrl-C.
  template <typename Compute>
  auto run(std::uint64_t seed, const Compute& compute) const {
    return run_interruptibly([&](std::stop_token stop) {
      SgdOptions with_run = options;
      with_run.seed = seed;
      with_run.run = run_control_of(options.run.threads, progress, std::move(stop));
      return compute(with_run);
    });
  }
};

void make_image_runs(ImageRuns* self, const std::string& activation, Index tokens, Index heads, Index batch,
                     double gamma, Index steps, int threads, ProgressFunction progress) {
  new (self) ImageRuns{specialization::head_activation_from_name(activation),
                       heads,
                       {.tokens = tokens,
                        .batch = batch,
                        .gamma = gamma,
                        .steps = steps,
                        .record = {},
                        .seed = 0,
                        .run = {.threads = threads}},
                       std::move(progress)};
}

nb::tuple pair_of_risk(const BayesRisk& risk) { return nb::make_tuple(risk.risk, risk.standard_error); }

/// (k, b, v, (loss, error), (Bayes risk, error), cosines).
nb::tuple trained_on_images(const ImageRuns& runs, const ImageTask& task, double eta, std::uint64_t seed,
                            Index fresh_samples, Index risk_samples) {
  struct Found {
    HeadVectors heads;
    BayesRisk loss, risk;
  };
  Found found = runs.run(seed, [&](const SgdOptions& options) {
    const HeadVectors start = random_start(runs.activation, runs.heads, 1, task.dimension(), eta,
                                           options.seed + specialization::start_seed)
                                  .heads;
    Found result{
        .heads = image_sgd(runs.activation, task, start, options).back().heads, .loss = {}, .risk = {}};
    result.loss = image_loss(runs.activation, task, result.heads, options.tokens, fresh_samples,
                             options.seed + specialization::judge_seed, options.run);
    result.risk =
        task.bayes_risk(options.tokens, risk_samples, options.seed + specialization::risk_seed, options.run);
    return result;
  });
  Matrix<double> cosines = task.class_cosines(found.heads.k);
  return nb::make_tuple(array_of(std::move(found.heads.k)), array_of(std::move(found.heads.b)),
                        array_of(std::move(found.heads.v)), pair_of_risk(found.loss),
                        pair_of_risk(found.risk), array_of(std::move(cosines)));
}

nb::tuple class_times_of(const ImageRuns& runs, const ImageTask& task, double eta, double delta,
                         std::uint64_t seed) {
  return arrays_of_times(runs.run(seed, [&](const SgdOptions& options) {
    return class_split_times_of_sgd(runs.activation, runs.heads, task, eta, delta, options);
  }));
}

}  // namespace

void bind_head_times(nb::module_& module) {
  nb::class_<TimedHeads>(module, "TimedHeads")
      .def("__init__", &make_timed, "activation"_a, "prior"_a, "tokens"_a, "heads"_a, "dimension"_a,
           "samples"_a, "step"_a, "steps"_a, "delta"_a, "stop_gradient"_a, "closed"_a, "features"_a,
           "batch"_a.none(), "threads"_a)
      .def("first_times", &first_times_of, "eta"_a, "seed"_a);
  nb::class_<ImageTask>(module, "HeadImageTask")
      .def(
          "__init__",
          [](ImageTask* self, const ArrayLikeObject& pixels, std::vector<int> labels, double amplitude) {
            new (self) ImageTask(matrix_of(pixels, "images"), std::move(labels), amplitude);
          },
          "pixels"_a, "labels"_a, "amplitude"_a)
      .def("class_means", [](const ImageTask& task) { return array_of(Matrix<double>(task.class_means())); });
  nb::class_<ImageRuns>(module, "HeadImageRuns")
      .def("__init__", &make_image_runs, "activation"_a, "tokens"_a, "heads"_a, "batch"_a, "gamma"_a,
           "steps"_a, "threads"_a, "progress"_a.none())
      .def("train", &trained_on_images, "task"_a, "eta"_a, "seed"_a, "fresh_samples"_a, "risk_samples"_a)
      .def("class_times", &class_times_of, "task"_a, "eta"_a, "delta"_a, "seed"_a);
}

}  // namespace widelimit::python

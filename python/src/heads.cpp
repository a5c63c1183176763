#include "heads.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "estimates.hpp"
#include "interruptible.hpp"
#include "run_control.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/bayes.hpp"
#include "widelimit/specialization/hessian.hpp"
#include "widelimit/specialization/resampled_flow.hpp"
#include "widelimit/specialization/sgd_runs.hpp"
#include "widelimit/specialization/trained_heads.hpp"
#include "widelimit/specialization/trained_starts.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using specialization::FlowPoint;
using specialization::HeadActivation;
using specialization::HeadParameters;
using specialization::Prior;
using specialization::SampleSet;
using specialization::SampleSymmetry;
using specialization::SgdPoint;

HeadActivation head_activation_of(const std::string& name) {
  return specialization::head_activation_from_name(name);
}

SampleSymmetry symmetry_of(bool closed) { return closed ? SampleSymmetry::closed : SampleSymmetry::plain; }

using HeadArrays = std::tuple<ArrayLikeObject, ArrayLikeObject, ArrayLikeObject, ArrayLikeObject>;

HeadParameters heads_of(const HeadArrays& arrays) {
  return {matrix_of(std::get<0>(arrays), "m"), matrix_of(std::get<1>(arrays), "r"),
          vector_of(std::get<2>(arrays), "b"), vector_of(std::get<3>(arrays), "v")};
}

/// (m, r, b, v).
nb::tuple arrays_of_heads(HeadParameters heads) {
  return nb::make_tuple(array_of(std::move(heads.m)), array_of(std::move(heads.r)),
                        array_of(std::move(heads.b)), array_of(std::move(heads.v)));
}

/// matrix_of(point) of each, below each other.
template <typename Point, typename MatrixOf>
DoubleArrayObject stacked(const std::vector<Point>& points, const MatrixOf& matrix_of_point) {
  std::vector<Matrix<double>> matrices;
  for (const Point& point : points) matrices.push_back(matrix_of_point(point));
  return array_of_stacked(matrices);
}

/// vector_of(point) of each, a row each.
template <typename Point, typename VectorOf>
DoubleArrayObject rows_of(const std::vector<Point>& points, const VectorOf& vector_of_point) {
  Matrix<double> rows(static_cast<Index>(points.size()), vector_of_point(points.front()).size());
  for (std::size_t k = 0; k < points.size(); ++k)
    rows.row(static_cast<Index>(k)) = vector_of_point(points[k]).transpose();
  return array_of(std::move(rows));
}

/// (tau, loss, gradient, m, S, r, b, v); matrices below each other, m times `frame` where there is one.
nb::tuple arrays_of_flow(const std::vector<FlowPoint>& points, const Matrix<double>* frame = nullptr) {
  return nb::make_tuple(array_of_each(points, [](const FlowPoint& point) { return point.tau; }),
                        array_of_each(points, [](const FlowPoint& point) { return point.loss; }),
                        array_of_each(points, [](const FlowPoint& point) { return point.gradient; }),
                        stacked(points,
                                [&](const FlowPoint& point) {
                                  return frame == nullptr ? point.parameters.m
                                                          : Matrix<double>(point.parameters.m * *frame);
                                }),
                        stacked(points, [](const FlowPoint& point) { return point.S; }),
                        stacked(points, [](const FlowPoint& point) { return point.parameters.r; }),
                        rows_of(points, [](const FlowPoint& point) { return point.parameters.b; }),
                        rows_of(points, [](const FlowPoint& point) { return point.parameters.v; }));
}

/// (tau, loss, m, q, p, S, b, v).
nb::tuple arrays_of_sgd(const std::vector<SgdPoint>& points) {
  return nb::make_tuple(array_of_each(points, [](const SgdPoint& point) { return point.tau; }),
                        array_of_each(points, [](const SgdPoint& point) { return point.loss; }),
                        stacked(points, [](const SgdPoint& point) { return point.overlaps.m; }),
                        stacked(points, [](const SgdPoint& point) { return point.overlaps.q; }),
                        stacked(points, [](const SgdPoint& point) { return point.overlaps.p; }),
                        stacked(points, [](const SgdPoint& point) { return point.overlaps.S; }),
                        rows_of(points, [](const SgdPoint& point) { return point.b; }),
                        rows_of(points, [](const SgdPoint& point) { return point.v; }));
}

/// What the flows of widelimit.heads are told.
struct HeadFlows {
  specialization::TrainingSetup setup;
  ProgressFunction progress;

  /// compute(setup), interrupted by Ctrl-C.
  template <typename Compute>
  auto run(const Compute& compute) const {
    return run_interruptibly([&](std::stop_token stop) {
      specialization::TrainingSetup with_run = setup;
      with_run.flow.run = run_control_of(setup.flow.run.threads, progress, std::move(stop));
      return compute(with_run);
    });
  }
};

void make_flows(HeadFlows* self, const std::string& activation, const Prior& prior, Index tokens, Index heads,
                double step, Index steps, const std::vector<Index>& record, double stop_gradient,
                const std::string& stepper, bool symmetric, double batch_noise, Index samples,
                Index fresh_samples, bool closed, double eta, bool leave_saddles, Index starts,
                std::uint64_t seed, int threads, ProgressFunction progress) {
  using specialization::FlowStepper;
  HeadFlows made{.setup = {}, .progress = std::move(progress)};
  made.setup.activation = head_activation_of(activation);
  made.setup.prior = prior;
  made.setup.tokens = tokens;
  made.setup.heads = heads;
  made.setup.flow.step = step;
  made.setup.flow.steps = steps;
  made.setup.flow.record = record;
  made.setup.flow.stop_gradient = stop_gradient;
  made.setup.flow.stepper = stepper == "euler"          ? FlowStepper::euler
                            : stepper == "runge_kutta4" ? FlowStepper::runge_kutta4
                                                        : FlowStepper::dormand_prince;
  if (symmetric) made.setup.flow.variant = specialization::FlowVariant::symmetric;
  made.setup.flow.batch_noise = batch_noise;
  made.setup.flow.run.threads = threads;
  made.setup.samples = samples;
  made.setup.fresh_samples = fresh_samples;
  made.setup.symmetry = symmetry_of(closed);
  made.setup.eta = eta;
  made.setup.leave_saddles = leave_saddles;
  made.setup.starts = starts;
  made.setup.seed = seed;
  new (self) HeadFlows(std::move(made));
}

/// A tuple for each start: (seed, converged, loss, standard error, curvature or None, whether it is a saddle,
/// [(tau, loss, rate)] of those left, flow).
nb::list trained(const HeadFlows& flows, const std::optional<HeadArrays>& start) {
  std::optional<HeadParameters> given;
  if (start) given = heads_of(*start);
  const auto starts = flows.run([&](const specialization::TrainingSetup& setup) {
    return given ? train_from_starts(setup, *given) : train_from_starts(setup);
  });
  nb::list result;
  for (const specialization::TrainedStart& one : starts) {
    nb::list left;
    for (const specialization::LeftSaddle& saddle : one.left_saddles)
      left.append(nb::make_tuple(saddle.tau, saddle.loss, saddle.rate));
    result.append(nb::make_tuple(one.seed, one.converged, one.loss, one.standard_error, one.curvature,
                                 one.at_saddle(), left, arrays_of_flow(one.points)));
  }
  return result;
}

/// On the fresh samples of the flows.
nb::tuple pruned(const HeadFlows& flows, const HeadArrays& heads, bool full_model) {
  using specialization::PruneNormaliser;
  const HeadParameters parameters = heads_of(heads);
  const auto result = flows.run([&](const specialization::TrainingSetup& setup) {
    return greedy_prune(setup.activation, parameters, fresh_samples(setup),
                        full_model ? PruneNormaliser::full_model : PruneNormaliser::kept_heads,
                        setup.flow.run);
  });
  return nb::make_tuple(array_of_values(result.losses), result.removed);
}

/// ((loss, standard error), gradient, (relevant, other mass)) on the fresh samples of the flows.
nb::tuple judged(const HeadFlows& flows, const HeadArrays& heads) {
  using specialization::AttentionMass;
  using specialization::SampledLoss;
  const HeadParameters parameters = heads_of(heads);
  auto [loss, mass] = flows.run([&](const specialization::TrainingSetup& setup) {
    const SampleSet<float> samples = fresh_samples(setup);
    return std::pair<SampledLoss, AttentionMass>{
        sampled_loss(setup.activation, parameters, samples, specialization::LossDetail::gradients,
                     setup.flow.run),
        attention_mass(setup.activation, parameters, samples, setup.flow.run)};
  });
  if (!std::isfinite(loss.loss))
    throw NumericalError("judge: the loss leaves the range of float, nan: the heads are too large");
  return nb::make_tuple(nb::make_tuple(loss.loss, loss.standard_error),
                        arrays_of_heads(std::move(loss.gradient)), nb::make_tuple(mass.relevant, mass.other));
}

/// (chi_star [sequences L, F], xi [sequences L, H]) of the first of the fresh samples.
nb::tuple first_sequences(const HeadFlows& flows, Index sequences) {
  if (sequences < 1 || sequences > flows.setup.fresh_samples)
    throw ArgumentError(fmt::format("sequences: expected 1 to {}, the number of samples, got {}",
                                    flows.setup.fresh_samples, sequences));
  const SampleSet<float> samples =
      flows.run([](const specialization::TrainingSetup& setup) { return fresh_samples(setup); });
  const auto rows_from = [&](Index first, Index count) -> Matrix<double> {
    return Matrix<double>::NullaryExpr(sequences * samples.tokens(), count, [&](Index row, Index column) {
      return static_cast<double>(
          samples.value(row / samples.tokens(), row % samples.tokens(), first + column));
    });
  };
  return nb::make_tuple(array_of(rows_from(0, samples.features())),
                        array_of(rows_from(samples.features(), samples.noises())));
}

/// A flow on samples that are kept, and one on samples that are drawn at every step: two flows for each start.
nb::tuple resampled(const HeadFlows& flows, std::uint64_t seed) {
  const specialization::FlowPair pair = flows.run([&](const specialization::TrainingSetup& setup) {
    return specialization::flow_pair({.activation = setup.activation,
                                      .prior = setup.prior,
                                      .shape = {setup.tokens, setup.heads, setup.samples},
                                      .samples = {setup.symmetry, {}, setup.flow.run},
                                      .flow = setup.flow,
                                      .eta = setup.eta},
                                     seed);
  });
  return nb::make_tuple(arrays_of_flow(pair.kept), arrays_of_flow(pair.fresh));
}

/// What the SGD of widelimit.heads is told.
struct HeadSgd {
  specialization::SgdSetup setup;
  ProgressFunction progress;

  template <typename Compute>
  auto run(const Compute& compute) const {
    return run_interruptibly([&](std::stop_token stop) {
      specialization::SgdSetup with_run = setup;
      with_run.options.run = run_control_of(setup.options.run.threads, progress, std::move(stop));
      return compute(with_run);
    });
  }
};

void make_sgd(HeadSgd* self, const std::string& activation, const Prior& prior, Index tokens, Index heads,
              Index dimension, Index batch, double gamma, Index steps, const std::vector<Index>& record,
              double eta, bool vectors, const std::optional<ArrayLikeObject>& planted_m, std::uint64_t seed,
              int threads, ProgressFunction progress) {
  HeadSgd made{.setup = {}, .progress = std::move(progress)};
  made.setup.activation = head_activation_of(activation);
  made.setup.prior = prior;
  made.setup.heads = heads;
  made.setup.dimension = dimension;
  made.setup.eta = eta;
  made.setup.form = vectors ? specialization::SgdForm::vector : specialization::SgdForm::gram;
  if (planted_m) made.setup.planted_m = matrix_of(*planted_m, "planted_m");
  made.setup.options.tokens = tokens;
  made.setup.options.batch = batch;
  made.setup.options.gamma = gamma;
  made.setup.options.steps = steps;
  made.setup.options.record = record;
  made.setup.options.seed = seed;
  made.setup.options.run.threads = threads;
  new (self) HeadSgd(std::move(made));
}

nb::tuple sgd_of(const HeadSgd& sgd) {
  return arrays_of_sgd(
      sgd.run([](const specialization::SgdSetup& setup) { return sgd_from_random_start(setup); }));
}

/// (SGD, flow).
nb::tuple compared(const HeadSgd& sgd, double step, Index samples, bool closed) {
  struct Found {
    std::vector<SgdPoint> points;
    specialization::MatchedFlow matched;
    std::vector<FlowPoint> flow;
  };
  const Found found = sgd.run([&](const specialization::SgdSetup& setup) {
    Found result{.points = sgd_from_random_start(setup), .matched = {}, .flow = {}};
    result.matched = matched_flow(result.points.front());
    result.flow = flow_beside(setup, result.points, result.matched, {step, samples, symmetry_of(closed)});
    return result;
  });
  return nb::make_tuple(arrays_of_sgd(found.points), arrays_of_flow(found.flow, &found.matched.spike_root));
}

nb::tuple bayes_risk_of(const Prior& prior, Index tokens, Index samples, std::uint64_t seed, int threads,
                        const ProgressFunction& progress) {
  const auto risk = run_interruptibly([&](std::stop_token stop) {
    return bayes_risk(prior, tokens, samples, seed, run_control_of(threads, progress, std::move(stop)));
  });
  return nb::make_tuple(risk.risk, risk.standard_error);
}

DoubleArrayObject posterior_of(const Prior& prior, const ArrayLikeObject& chi_star,
                               const std::optional<ArrayLikeObject>& spike_gram) {
  const Matrix<double> projections = matrix_of(chi_star, "chi_star");
  return array_of(spike_gram ? bayes_posterior(prior, projections, matrix_of(*spike_gram, "spike_gram"))
                             : bayes_posterior(prior, projections));
}

/// The fields of widelimit.heads.HessianConstants in their order.
nb::tuple hessian_of(const std::string& activation, Index tokens, Index heads, std::optional<double> b) {
  const auto c = b ? specialization::hessian_constants_at(head_activation_of(activation), tokens, heads, *b)
                   : specialization::hessian_constants(head_activation_of(activation), tokens, heads);
  return nb::make_tuple(c.c1, c.c2, c.c3, c.c4, c.c5, c.b, c.v, c.initial_pull);
}

nb::tuple escape_rates_of(const std::tuple<double, double, double, double, double>& constants, Index heads,
                          double eigenvalue) {
  const auto& [c1, c2, c3, c4, c5] = constants;
  const auto rates =
      specialization::escape_rates({.c1 = c1, .c2 = c2, .c3 = c3, .c4 = c4, .c5 = c5}, heads, eigenvalue);
  return nb::make_tuple(rates.split, rates.common);
}

/// By quadrature where there are no samples.
nb::tuple split_rate_of(const std::string& activation, Index tokens, Index heads, double nu1, double nu2,
                        std::optional<Index> samples, std::uint64_t seed, int threads) {
  const auto rate = run_interruptibly([&](std::stop_token stop) {
    const RunControl run = run_control_of(threads, {}, std::move(stop));
    const HeadActivation kind = head_activation_of(activation);
    return samples ? split_rate_by_sampling(kind, tokens, heads, nu1, nu2, *samples, seed, run)
                   : split_rate_by_quadrature(kind, tokens, heads, nu1, nu2, 81, 9, run);
  });
  return nb::make_tuple(rate.rate, rate.standard_error);
}

DoubleArrayObject attention_map_of(const std::string& activation, const HeadArrays& heads,
                                   const ArrayLikeObject& chi_star, const ArrayLikeObject& xi) {
  return array_of(specialization::attention_map(head_activation_of(activation), heads_of(heads),
                                                matrix_of(chi_star, "chi_star"), matrix_of(xi, "xi")));
}

/// Its kind, and points with probabilities or variances.
nb::tuple state_of_prior(const Prior& prior) {
  return nb::make_tuple(
      prior.kind() == Prior::Kind::gaussian, array_of(Matrix<double>(prior.points())),
      array_of(
          Vector<double>(prior.kind() == Prior::Kind::gaussian ? prior.variances() : prior.probabilities())));
}

Prior prior_of_state(bool gaussian, const ArrayLikeObject& points, const ArrayLikeObject& weights) {
  return gaussian ? Prior::gaussian(vector_of(weights, "variances"))
                  : Prior::discrete(matrix_of(points, "points"), vector_of(weights, "probabilities"));
}

void bind_prior(nb::module_& module) {
  nb::class_<Prior>(module, "Prior",
                    "The distribution of the features theta [F] that mix the spikes into the signal of a "
                    "sequence: an immutable value. nu and variances are squared lengths, at least 0; "
                    "ArgumentError for anything else.")
      .def_static("flip2", &Prior::flip2, "nu1"_a, "nu2"_a,
                  "(sqrt(nu1), +-sqrt(nu2)), each sign with probability 1/2; F = 2.")
      .def_static("spikes", &Prior::spikes, "features"_a, "nu"_a,
                  "sqrt(nu) times a unit vector along one of the features, each equally likely.")
      .def_static(
          "gaussian",
          [](const ArrayLikeObject& variances) { return Prior::gaussian(vector_of(variances, "variances")); },
          "variances"_a, "Independent normal features of these variances, [F].")
      .def_static(
          "discrete",
          [](const ArrayLikeObject& points, const ArrayLikeObject& probabilities) {
            return Prior::discrete(matrix_of(points, "points"), vector_of(probabilities, "probabilities"));
          },
          "points"_a, "probabilities"_a, "Points [k, F] with their probabilities [k].")
      .def_prop_ro("features", &Prior::features, "Their number, F.")
      .def_prop_ro(
          "kind",
          [](const Prior& prior) { return prior.kind() == Prior::Kind::gaussian ? "gaussian" : "discrete"; },
          "'discrete' or 'gaussian'.")
      .def_prop_ro(
          "mean", [](const Prior& prior) { return array_of(Vector<double>(prior.mean())); }, "[F]")
      .def_prop_ro(
          "covariance", [](const Prior& prior) { return array_of(Matrix<double>(prior.covariance())); },
          "[F, F]")
      .def("__getstate__", &state_of_prior)
      .def("__setstate__", [](Prior& self, const std::tuple<bool, ArrayLikeObject, ArrayLikeObject>& state) {
        new (&self) Prior(prior_of_state(std::get<0>(state), std::get<1>(state), std::get<2>(state)));
      });
}

}  // namespace

void bind_heads(nb::module_& module) {
  bind_prior(module);
  nb::class_<HeadFlows>(module, "HeadFlows")
      .def("__init__", &make_flows, "activation"_a, "prior"_a, "tokens"_a, "heads"_a, "step"_a, "steps"_a,
           "record"_a, "stop_gradient"_a, "stepper"_a, "symmetric"_a, "batch_noise"_a, "samples"_a,
           "fresh_samples"_a, "closed"_a, "eta"_a, "leave_saddles"_a, "starts"_a, "seed"_a, "threads"_a,
           "progress"_a.none())
      .def("train", &trained, "start"_a.none())
      .def("prune", &pruned, "heads"_a, "full_model"_a)
      .def("judge", &judged, "heads"_a)
      .def("sequences", &first_sequences, "sequences"_a)
      .def("resample", &resampled, "seed"_a);
  nb::class_<HeadSgd>(module, "HeadSgd")
      .def("__init__", &make_sgd, "activation"_a, "prior"_a, "tokens"_a, "heads"_a, "dimension"_a, "batch"_a,
           "gamma"_a, "steps"_a, "record"_a, "eta"_a, "vectors"_a, "planted_m"_a.none(), "seed"_a,
           "threads"_a, "progress"_a.none())
      .def("run", &sgd_of)
      .def("compare", &compared, "step"_a, "samples"_a, "closed"_a);
  module.def("head_bayes_risk", &bayes_risk_of, "prior"_a, "tokens"_a, "samples"_a, "seed"_a, "threads"_a,
             "progress"_a.none());
  module.def("head_bayes_posterior", &posterior_of, "prior"_a, "chi_star"_a, "spike_gram"_a.none());
  module.def(
      "bayes_optimal_heads",
      [](const Prior& prior, Index heads) {
        return arrays_of_heads(specialization::bayes_optimal_heads(prior, heads));
      },
      "prior"_a, "heads"_a);
  module.def("head_hessian", &hessian_of, "activation"_a, "tokens"_a, "heads"_a, "b"_a.none());
  module.def("head_escape_rates", &escape_rates_of, "constants"_a, "heads"_a, "eigenvalue"_a);
  module.def("head_split_rate", &split_rate_of, "activation"_a, "tokens"_a, "heads"_a, "nu1"_a, "nu2"_a,
             "samples"_a.none(), "seed"_a, "threads"_a);
  module.def("head_attention_map", &attention_map_of, "activation"_a, "heads"_a, "chi_star"_a, "xi"_a);
  module.def("record_growing", &specialization::record_growing, "count"_a, "steps"_a);
  module.def(
      "noise_start",
      [](const std::string& activation, Index heads, Index features, double eta, std::uint64_t seed) {
        return arrays_of_heads(
            specialization::noise_start(head_activation_of(activation), heads, features, eta, seed));
      },
      "activation"_a, "heads"_a, "features"_a, "eta"_a, "seed"_a);
}

}  // namespace widelimit::python

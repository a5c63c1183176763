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

#include "arguments.hpp"
#include "arrays.hpp"
#include "estimates.hpp"
#include "interruptible.hpp"
#include "named_results.hpp"
#include "run_control.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/specialization/bayes.hpp"
#include "widelimit/specialization/experiments.hpp"
#include "widelimit/specialization/hessian.hpp"
#include "widelimit/specialization/trained_heads.hpp"
#include "widelimit/specialization/trained_starts.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using specialization::HeadActivation;
using specialization::HeadParameters;
using specialization::Prior;
using specialization::SampleSet;
using specialization::TrainingSetup;

/// read(fields) of the arguments of a function by the rows of the experiment that does the same.
template <typename Read>
auto read_heads(const std::string& function, const char* experiment, const nb::dict& given,
                const Read& read) {
  return read_arguments(function, given, specialization::experiment_fields(experiment), read);
}

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

/// compute(setup), interrupted by Ctrl-C; `control` is the setup's own.
template <typename Setup, typename Compute>
auto run_setup(Setup& setup, RunControl& control, int threads, const ProgressFunction& progress,
               const Compute& compute) {
  return run_interruptibly([&](std::stop_token stop) {
    control = run_control_of(threads, progress, std::move(stop));
    return compute(setup);
  });
}

/// What an experiment finds, as named_results.hpp has it.
nb::dict trained(const Prior& prior, const nb::dict& given, const std::optional<HeadArrays>& start,
                 int threads, const ProgressFunction& progress) {
  auto setup = read_heads("flow", "flow", given, [&](ConfigReader& fields) {
    if (start && fields.has("eta")) fields.fail("eta", "has no meaning together with start: leave it out");
    return specialization::read_training(fields, prior);
  });
  std::optional<HeadParameters> from;
  if (start) {
    from = heads_of(*start);
    naming_errors("flow",
                  [&] { require_heads("start", setup.activation, *from, setup.heads, prior.features()); });
  }
  return dict_of(run_setup(setup, setup.flow.run, threads, progress, [&](const TrainingSetup& with_run) {
    return specialization::flow_results(with_run, from);
  }));
}

/// Those of the flows that have such fresh samples.
TrainingSetup fresh_setup(ConfigReader& fields, const Prior& prior) {
  TrainingSetup setup = specialization::read_fresh_samples(fields, prior);
  setup.activation = specialization::read_activation(fields);
  return setup;
}

/// The heads that a function judges, which must be such.
HeadParameters heads_of(const std::string& function, const HeadArrays& arrays, HeadActivation activation,
                        Index features) {
  HeadParameters parameters = heads_of(arrays);
  naming_errors(function,
                [&] { require_heads("parameters", activation, parameters, parameters.m.rows(), features); });
  return parameters;
}

nb::tuple pruned(const Prior& prior, const HeadArrays& heads, const nb::dict& given, int threads) {
  auto [setup, normaliser] = read_heads("prune", "prune", given, [&](ConfigReader& fields) {
    return std::pair(fresh_setup(fields, prior), specialization::read_normaliser(fields));
  });
  const HeadParameters parameters = heads_of("prune", heads, setup.activation, prior.features());
  const auto result =
      run_setup(setup, setup.flow.run, threads, {}, [&, kind = normaliser](const TrainingSetup& with_run) {
        return greedy_prune(with_run.activation, parameters, fresh_samples(with_run), kind,
                            with_run.flow.run);
      });
  return nb::make_tuple(array_of_values(result.losses), result.removed);
}

/// ((loss, standard error), gradient, (relevant, other mass)) on fresh samples.
nb::tuple judged(const Prior& prior, const HeadArrays& heads, const nb::dict& given, int threads) {
  using specialization::AttentionMass;
  using specialization::SampledLoss;
  auto setup =
      read_heads("judge", "flow", given, [&](ConfigReader& fields) { return fresh_setup(fields, prior); });
  const HeadParameters parameters = heads_of("judge", heads, setup.activation, prior.features());
  auto [loss, mass] = run_setup(setup, setup.flow.run, threads, {}, [&](const TrainingSetup& with_run) {
    const SampleSet<float> samples = fresh_samples(with_run);
    return std::pair<SampledLoss, AttentionMass>{
        sampled_loss(with_run.activation, parameters, samples, specialization::LossDetail::gradients,
                     with_run.flow.run),
        attention_mass(with_run.activation, parameters, samples, with_run.flow.run)};
  });
  if (!std::isfinite(loss.loss))
    throw NumericalError("judge: the loss leaves the range of float, nan: the heads are too large");
  return nb::make_tuple(nb::make_tuple(loss.loss, loss.standard_error),
                        arrays_of_heads(std::move(loss.gradient)), nb::make_tuple(mass.relevant, mass.other));
}

/// (chi_star [sequences L, F], xi [sequences L, H]) of the first of the fresh samples.
nb::tuple first_sequences(const Prior& prior, const nb::dict& given) {
  auto [setup, count] = read_heads("fresh_sequences", "attention", given, [&](ConfigReader& fields) {
    return std::pair(specialization::read_fresh_samples(fields, prior), fields.integer("sequences"));
  });
  const Index sequences = count;
  if (sequences > setup.fresh_samples)
    throw ArgumentError(fmt::format("fresh_sequences: sequences: expected at most {}, fresh_samples, got {}",
                                    setup.fresh_samples, sequences));
  const SampleSet<float> samples = run_setup(
      setup, setup.flow.run, 0, {}, [](const TrainingSetup& with_run) { return fresh_samples(with_run); });
  const auto rows_from = [&](Index first, Index count) -> Matrix<double> {
    return Matrix<double>::NullaryExpr(sequences * samples.tokens(), count, [&](Index row, Index column) {
      return static_cast<double>(
          samples.value(row / samples.tokens(), row % samples.tokens(), first + column));
    });
  };
  return nb::make_tuple(array_of(rows_from(0, samples.features())),
                        array_of(rows_from(samples.features(), samples.noises())));
}

nb::dict resampled(const Prior& prior, const nb::dict& given, int threads, const ProgressFunction& progress) {
  auto [setup, starts, seed] = read_heads("resampling", "resampling", given, [&](ConfigReader& fields) {
    return std::tuple(specialization::read_flow_pair(fields, prior), fields.integer("starts"),
                      specialization::read_seed(fields));
  });
  return dict_of(run_setup(setup, setup.flow.run, threads, progress,
                           [count = starts, first = seed](specialization::FlowPairSetup& with_run) {
                             with_run.samples.run = with_run.flow.run;
                             return specialization::resampling_results(with_run, count, first);
                           }));
}

nb::dict sgd_of(const Prior& prior, const nb::dict& given, int threads, const ProgressFunction& progress) {
  auto setup = read_heads("sgd", "sgd", given,
                          [&](ConfigReader& fields) { return specialization::read_sgd(fields, prior); });
  return dict_of(run_setup(setup, setup.options.run, threads, progress,
                           [](const auto& with_run) { return specialization::sgd_results(with_run, 1); }));
}

nb::dict compared(const Prior& prior, const nb::dict& given, int threads, const ProgressFunction& progress) {
  auto both = read_heads("compare", "compare", given, [&](ConfigReader& fields) {
    return specialization::read_comparison(fields, prior);
  });
  return dict_of(run_setup(both, both.sgd.options.run, threads, progress, [](const auto& with_run) {
    return specialization::comparison_results(with_run, 1);
  }));
}

nb::tuple bayes_risk_of(const Prior& prior, const nb::dict& given, int threads,
                        const ProgressFunction& progress) {
  const auto [tokens, samples, seed] = read_heads("bayes_risk", "bayes", given, [](ConfigReader& fields) {
    return std::tuple(fields.integer("tokens"), fields.integer("samples"), specialization::read_seed(fields));
  });
  const auto risk = run_interruptibly([&, l = tokens, n = samples, s = seed](std::stop_token stop) {
    return bayes_risk(prior, l, n, s, run_control_of(threads, progress, std::move(stop)));
  });
  return nb::make_tuple(risk.risk, risk.standard_error);
}

nb::tuple optimal_heads_of(const Prior& prior, const nb::dict& given) {
  return arrays_of_heads(read_heads("bayes_optimal_heads", "bayes", given, [&](ConfigReader& fields) {
    return specialization::bayes_optimal_heads(prior, fields.integer("heads"));
  }));
}

/// An activation with its tokens and heads.
struct HeadModel {
  HeadActivation activation;
  Index tokens, heads;
};

HeadModel head_model_of(ConfigReader& fields) {
  return {specialization::read_activation(fields), fields.integer("tokens"), fields.integer("heads")};
}

DoubleArrayObject posterior_of(const Prior& prior, const ArrayLikeObject& chi_star,
                               const std::optional<ArrayLikeObject>& spike_gram) {
  const Matrix<double> projections = matrix_of(chi_star, "chi_star");
  return array_of(spike_gram ? bayes_posterior(prior, projections, matrix_of(*spike_gram, "spike_gram"))
                             : bayes_posterior(prior, projections));
}

/// The fields of widelimit.heads.HessianConstants in their order.
nb::tuple hessian_of(const nb::dict& given, std::optional<double> b) {
  const HeadModel model = read_heads("hessian", "hessian", given, head_model_of);
  if (b && model.activation != HeadActivation::softmax1)
    throw ArgumentError(fmt::format("hessian: b: has no effect with the activation {}: leave it out",
                                    head_activation_name(model.activation)));
  const auto c = b ? specialization::hessian_constants_at(model.activation, model.tokens, model.heads, *b)
                   : specialization::hessian_constants(model.activation, model.tokens, model.heads);
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
nb::tuple split_rate_of(const nb::dict& given, double nu1, double nu2, std::optional<Index> samples,
                        int threads) {
  const auto [model, seed] = read_heads("split_rate", "hessian", given, [](ConfigReader& fields) {
    return std::pair(head_model_of(fields), specialization::read_seed(fields));
  });
  const auto rate = run_interruptibly([&, m = model, s = seed](std::stop_token stop) {
    const RunControl run = run_control_of(threads, {}, std::move(stop));
    return samples ? split_rate_by_sampling(m.activation, m.tokens, m.heads, nu1, nu2, *samples, s, run)
                   : split_rate_by_quadrature(m.activation, m.tokens, m.heads, nu1, nu2, 81, 9, run);
  });
  return nb::make_tuple(rate.rate, rate.standard_error);
}

DoubleArrayObject attention_map_of(const nb::dict& given, const HeadArrays& heads,
                                   const ArrayLikeObject& chi_star, const ArrayLikeObject& xi) {
  const HeadActivation activation =
      read_heads("attention_map", "attention", given, specialization::read_activation);
  const Matrix<double> projections = matrix_of(chi_star, "chi_star");
  const HeadParameters parameters = heads_of("attention_map", heads, activation, projections.cols());
  return array_of(specialization::attention_map(activation, parameters, projections, matrix_of(xi, "xi")));
}

nb::tuple noise_start_of(const nb::dict& given, Index features) {
  return arrays_of_heads(read_heads("noise_start", "flow", given, [&](ConfigReader& fields) {
    return specialization::noise_start(specialization::read_activation(fields), fields.integer("heads"),
                                       features, fields.number("eta"), specialization::read_seed(fields));
  }));
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
      .def_static(
          "flip2",
          [](const nb::object& nu1, const nb::object& nu2) {
            return Prior::flip2(real_of(nu1, "nu1"), real_of(nu2, "nu2"));
          },
          "nu1"_a, "nu2"_a, "(sqrt(nu1), +-sqrt(nu2)), each sign with probability 1/2; F = 2.")
      .def_static(
          "spikes",
          [](const nb::object& features, const nb::object& nu) {
            return Prior::spikes(whole_of(features, "features"), real_of(nu, "nu"));
          },
          "features"_a, "nu"_a,
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
  module.def("head_flow", &trained, "prior"_a, "given"_a, "start"_a.none(), "threads"_a, "progress"_a.none());
  module.def("head_prune", &pruned, "prior"_a, "heads"_a, "given"_a, "threads"_a);
  module.def("head_judge", &judged, "prior"_a, "heads"_a, "given"_a, "threads"_a);
  module.def("head_sequences", &first_sequences, "prior"_a, "given"_a);
  module.def("head_resampling", &resampled, "prior"_a, "given"_a, "threads"_a, "progress"_a.none());
  module.def("head_sgd", &sgd_of, "prior"_a, "given"_a, "threads"_a, "progress"_a.none());
  module.def("head_compare", &compared, "prior"_a, "given"_a, "threads"_a, "progress"_a.none());
  module.def("head_bayes_risk", &bayes_risk_of, "prior"_a, "given"_a, "threads"_a, "progress"_a.none());
  module.def("head_bayes_posterior", &posterior_of, "prior"_a, "chi_star"_a, "spike_gram"_a.none());
  module.def("bayes_optimal_heads", &optimal_heads_of, "prior"_a, "given"_a);
  module.def("head_hessian", &hessian_of, "given"_a, "b"_a.none());
  module.def("head_escape_rates", &escape_rates_of, "constants"_a, "heads"_a, "eigenvalue"_a);
  module.def("head_split_rate", &split_rate_of, "given"_a, "nu1"_a, "nu2"_a, "samples"_a.none(), "threads"_a);
  module.def("head_attention_map", &attention_map_of, "given"_a, "heads"_a, "chi_star"_a, "xi"_a);
  module.def("noise_start", &noise_start_of, "given"_a, "features"_a);
}

}  // namespace widelimit::python

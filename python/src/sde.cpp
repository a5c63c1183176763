#include "sde.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "arrays.hpp"
#include "estimates.hpp"
#include "interruptible.hpp"
#include "run_control.hpp"
#include "widelimit/covariance_sde/checks.hpp"
#include "widelimit/covariance_sde/coefficients.hpp"
#include "widelimit/covariance_sde/configuration.hpp"
#include "widelimit/covariance_sde/deterministic_limit.hpp"
#include "widelimit/covariance_sde/exact_distributions.hpp"
#include "widelimit/covariance_sde/explosion.hpp"
#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/covariance_sde/gradient_norms.hpp"
#include "widelimit/covariance_sde/outputs.hpp"
#include "widelimit/covariance_sde/simulate.hpp"
#include "widelimit/covariance_sde/softmax_entropy.hpp"
#include "widelimit/error.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using covariance_sde::CovarianceEnsemble;
using covariance_sde::DiffusionDistribution;
using covariance_sde::NetworkSetup;
using covariance_sde::NetworkSpec;
using covariance_sde::SdeModel;

/// The rows of a command. Residual weights are given by their squares alone, so that errors speak of nothing else.
const ConfigFields& rows_of_sde(const std::string& command) {
  static std::map<std::string, ConfigFields> tables;
  const auto place = tables.find(command);
  if (place != tables.end()) return place->second;
  return tables[command] = without_fields(covariance_sde::command_fields(command),
                                          {"gamma", "gamma_feedforward", "lambda_feedforward"});
}

const char* word_of(AttentionMask mask) { return mask == AttentionMask::causal ? "causal" : "full"; }

AttentionMask attention_mask_of(const std::string& function, const nb::object& word) {
  nb::dict given;
  given["mask"] = word;
  return read_arguments(function, given, rows_of_sde("simulate"), covariance_sde::read_mask);
}

/// (relu_drift, attention_drift, linear_noise, attention_noise, c_plus, c_minus, mask).
nb::tuple model_tuple(const SdeModel& model) {
  return nb::make_tuple(model.relu_drift, model.attention_drift, model.linear_noise, model.attention_noise,
                        model.slopes.plus, model.slopes.minus, word_of(model.mask));
}

nb::tuple model_of(const std::string& function, const nb::dict& given) {
  return model_tuple(read_arguments(function, given, rows_of_sde("simulate"), covariance_sde::read_model));
}

NetworkSpec network_of(const nb::dict& given) {
  return read_arguments("Network", given, rows_of_sde("network"), covariance_sde::read_network);
}

/// ([times * paths, m * m], times, ends, stop times, last times inside, exits from the cone).
nb::tuple arrays_of_ensemble(const CovarianceEnsemble& ensemble) {
  constexpr const char* names[] = {"horizon", "above", "below", "not_finite"};
  const Index times = static_cast<Index>(ensemble.times().size()), paths = ensemble.paths(),
              m = ensemble.tokens();
  Matrix<double> all(times * paths, m * m);
  std::vector<std::string> ends;
  Vector<double> stop(paths), inside(paths), exits(paths);
  for (Index time = 0; time < times; ++time)
    for (Index path = 0; path < paths; ++path)
      Eigen::Map<Matrix<double>>(all.row(time * paths + path).data(), m, m) = ensemble.covariance(time, path);
  for (Index path = 0; path < paths; ++path) {
    const auto& outcome = ensemble.outcome(path);
    ends.emplace_back(names[static_cast<std::size_t>(outcome.end)]);
    stop[path] = outcome.stop_time;
    inside[path] = outcome.last_inside_time;
    exits[path] = static_cast<double>(outcome.cone_exits);
  }
  return nb::make_tuple(array_of(std::move(all)), array_of_values(ensemble.times()), ends,
                        array_of(std::move(stop)), array_of(std::move(inside)), array_of(std::move(exits)));
}

/// Paths of the model from the start that `given` has; `command` has the rows of their options.
struct SdeRun {
  Matrix<double> start;
  CovarianceEnsemble ensemble;
};

SdeRun simulated(const std::string& function, const char* command, const SdeModel& model,
                 const nb::dict& given, int threads) {
  auto [start, options] = read_arguments(function, given, rows_of_sde(command), [&](ConfigReader& fields) {
    Matrix<double> v0 = covariance_sde::read_start(fields);
    auto read = covariance_sde::read_simulation(fields, model, true, v0);
    return std::pair(std::move(v0), std::move(read));
  });
  options.threads = threads;
  CovarianceEnsemble ensemble = run_interruptibly([&](std::stop_token stop) {
    options.stop = std::move(stop);
    return covariance_sde::simulate(model, start, options);
  });
  return {std::move(start), std::move(ensemble)};
}

nb::tuple paths_of(const std::string& function, const SdeModel& model, const nb::dict& given, int threads) {
  return arrays_of_ensemble(simulated(function, "simulate", model, given, threads).ensemble);
}

/// ((beyond, factor, probability, lower, upper) of each time, ensemble).
nb::tuple exploded(const SdeModel& model, const nb::dict& given, int threads) {
  const auto [start, ensemble] = simulated("explosion", "explosion", model, given, threads);
  const auto shares = run_or_leave([model, start = start, ensemble = ensemble](std::stop_token) {
    return covariance_sde::explosion_shares(model, start, ensemble);
  });
  Matrix<double> rows(static_cast<Index>(shares.size()), 5);
  for (std::size_t k = 0; k < shares.size(); ++k)
    rows.row(static_cast<Index>(k)) << static_cast<double>(shares[k].beyond_upper),
        shares[k].explodes_from_there, shares[k].probability, shares[k].interval.lower,
        shares[k].interval.upper;
  return nb::make_tuple(array_of(std::move(rows)), arrays_of_ensemble(ensemble));
}

NetworkSetup setup_of(const std::string& function, const NetworkSpec& network, const nb::dict& given,
                      int threads) {
  NetworkSetup setup = read_arguments(function, given, rows_of_sde("network"), [&](ConfigReader& fields) {
    return covariance_sde::read_sampling(fields, network, covariance_sde::read_start(fields));
  });
  setup.options.threads = threads;
  return setup;
}

CovarianceEnsemble drawn(NetworkSetup& setup) {
  return run_interruptibly([&](std::stop_token stop) {
    setup.options.stop = std::move(stop);
    return covariance_sde::sample_networks(setup.network, setup.v0, setup.options);
  });
}

/// (ensemble, how it was drawn).
nb::tuple sampled_networks(const std::string& function, const NetworkSpec& network, const nb::dict& given,
                           int threads) {
  NetworkSetup setup = setup_of(function, network, given, threads);
  const bool reduced = setup.options.sampling == covariance_sde::NetworkSampling::reduced;
  return nb::make_tuple(arrays_of_ensemble(drawn(setup)), reduced ? "reduced" : "explicit_weights");
}

/// Means over running networks of the expansion.
Vector<double> mean_expansion(const NetworkSpec& network, const CovarianceEnsemble& ensemble, Index time) {
  Vector<double> sum = Vector<double>::Zero(ensemble.tokens());
  const std::vector<Index> running = ensemble.running_paths(time);
  for (const Index path : running)
    sum += covariance_sde::softmax_entropy_expansion(network, ensemble.covariance(time, path));
  return sum / static_cast<double>(running.size());
}

/// (entropy, error, expansion), [layers, m].
nb::tuple entropies(const NetworkSpec& network, const nb::dict& given, int threads) {
  NetworkSetup setup = setup_of("entropy", network, given, threads);
  // What networks without attention lack shows before the work.
  static_cast<void>(covariance_sde::softmax_entropy_expansion(network, setup.v0));
  setup.options.kept = covariance_sde::CovarianceOf::branch_inputs;
  const CovarianceEnsemble ensemble = drawn(setup);
  const auto layers = static_cast<Index>(setup.options.layers.size()), m = setup.v0.rows();
  Matrix<double> values(layers, m), errors(layers, m), expansions(layers, m);
  for (Index time = 0; time < layers; ++time) {
    const auto rows = run_interruptibly([&](std::stop_token stop) {
      return covariance_sde::softmax_entropy(network, ensemble, time, setup.options.seed,
                                             run_control_of(setup.options.threads, {}, std::move(stop)));
    });
    for (Index a = 0; a < m; ++a) {
      values(time, a) = rows[static_cast<std::size_t>(a)].value;
      errors(time, a) = rows[static_cast<std::size_t>(a)].standard_error;
    }
    expansions.row(time) = mean_expansion(network, ensemble, time).transpose();
  }
  return nb::make_tuple(array_of(std::move(values)), array_of(std::move(errors)),
                        array_of(std::move(expansions)));
}

/// ((values, errors) of tokens, {parameter: (values, errors)}).
nb::tuple gradients_of(const NetworkSpec& network, const nb::dict& given, int threads,
                       const ProgressFunction& progress) {
  auto [start, options] =
      read_arguments("gradients", given, rows_of_sde("gradients"), [](ConfigReader& fields) {
        Matrix<double> v0 = covariance_sde::read_start(fields);
        return std::pair(std::move(v0), covariance_sde::read_gradient_options(fields));
      });
  const auto norms = run_interruptibly([&](std::stop_token stop) {
    options.run = run_control_of(threads, progress, std::move(stop));
    return covariance_sde::gradient_norms(network, start, options);
  });
  const auto same = [](const numerics::Estimate& estimate) { return estimate; };
  nb::dict parameters;
  for (const auto& one : norms.parameters)
    parameters[nb::str(one.parameter.c_str())] = arrays_of_estimates(one.layers, same);
  return nb::make_tuple(arrays_of_estimates(norms.tokens, same), parameters);
}

/// The flow of a model's drift or, without one, the commuting limit: states below each other.
DoubleArrayObject flow_of(const std::string& function, const std::optional<SdeModel>& model,
                          const nb::dict& given) {
  auto setup = read_arguments(function, given, rows_of_sde("flow"), [&](ConfigReader& fields) {
    if (!model) return covariance_sde::read_flow_setup(fields);
    covariance_sde::FlowSetup of_model{.model = model, .v0 = covariance_sde::read_start(fields), .times = {}};
    of_model.times = covariance_sde::read_times(fields);
    return of_model;
  });
  return array_of_stacked(run_or_leave([setup = std::move(setup)](std::stop_token) {
    std::vector<Matrix<double>> states;
    for (const double time : setup.times)
      states.push_back(setup.model ? covariance_sde::drift_flow(*setup.model, setup.v0, time)
                                   : covariance_sde::commuting_limit(setup.v0, time, setup.shortcut));
    return states;
  }));
}

/// Outputs [k * outputs, m] of the covariances [k, m * m] of the given paths.
DoubleArrayObject outputs_of(const ArrayLikeObject& covariances, const std::vector<Index>& paths,
                             const nb::dict& given) {
  const auto [count, seed] =
      read_arguments("outputs", given, rows_of_sde("output"), [](ConfigReader& fields) {
        return std::pair(fields.integer("outputs"), static_cast<std::uint64_t>(fields.integer("seed")));
      });
  const Matrix<double> all = matrix_of(numbers_of(covariances, "covariances"));
  const Index m =
      all.rows() == 0 ? 0 : static_cast<Index>(std::lround(std::sqrt(static_cast<double>(all.cols()))));
  std::vector<Matrix<double>> drawn_outputs;
  for (std::size_t k = 0; k < paths.size(); ++k)
    drawn_outputs.push_back(covariance_sde::sampled_outputs(
        Eigen::Map<const Matrix<double>>(all.row(static_cast<Index>(k)).data(), m, m), count, seed,
        paths[k]));
  return array_of_stacked(drawn_outputs);
}

/// (S1, S2, linear, attention).
nb::tuple coefficients_of(const ArrayLikeObject& v, const nb::object& mask_word) {
  const AttentionMask mask = attention_mask_of("coefficients", mask_word);
  const Matrix<double> covariance = matrix_of(v, "V");
  return nb::make_tuple(array_of(covariance_sde::first_softmax_moments(covariance, mask)),
                        array_of(covariance_sde::second_softmax_moment(covariance, mask)),
                        array_of(covariance_sde::linear_diffusion(covariance)),
                        array_of(covariance_sde::attention_diffusion(covariance, mask)));
}

/// compute(law, x) of every element.
template <typename Compute>
DoubleArrayObject each(const DiffusionDistribution& law, const ArrayLikeObject& values,
                       const Compute& compute) {
  Vector<double> results = vector_of(values, "x");
  for (double& value : results) value = compute(law, value);
  return array_of(std::move(results));
}

DiffusionDistribution sde_law_of(const SdeModel& model, bool of_gap, double start, double time) {
  return run_or_leave([model, of_gap, start, time](std::stop_token) {
    return of_gap ? covariance_sde::gap_distribution(model, start, time)
                  : covariance_sde::correlation_distribution(model, start, time);
  });
}

void bind_sde_models(nb::module_& module) {
  nb::class_<SdeModel>(module, "SdeModel")
      .def(
          "__init__",
          [](SdeModel* self, double relu_drift, double attention_drift, double linear_noise,
             double attention_noise, double c_plus, double c_minus, const nb::object& mask) {
            const SdeModel model{relu_drift,      attention_drift,   linear_noise,
                                 attention_noise, {c_plus, c_minus}, attention_mask_of("Model", mask)};
            covariance_sde::require_model("Model", model);
            new (self) SdeModel(model);
          },
          "relu_drift"_a, "attention_drift"_a, "linear_noise"_a, "attention_noise"_a, "c_plus"_a, "c_minus"_a,
          "mask"_a);
  module.def("sde_model", &model_of, "function"_a, "given"_a);
  module.def(
      "sde_start",
      [](const nb::dict& given) {
        return array_of(read_arguments("start", given, rows_of_sde("simulate"), covariance_sde::read_start));
      },
      "given"_a);
  module.def(
      "sde_stack",
      [](const SdeModel& first, const SdeModel& second) {
        return model_tuple(covariance_sde::stack(first, second));
      },
      "first"_a, "second"_a);
  module.def(
      "sde_finite_width_drift",
      [](const SdeModel& model, Index width) {
        return model_tuple(covariance_sde::with_finite_width_drift(model, width));
      },
      "model"_a, "width"_a);
  module.def(
      "sde_drift",
      [](const SdeModel& model, const ArrayLikeObject& v) {
        return array_of(covariance_sde::drift(model, matrix_of(v, "v")));
      },
      "model"_a, "v"_a);
  module.def("sde_coefficients", &coefficients_of, "v"_a, "mask"_a);
  module.def(
      "sde_diffusion",
      [](const SdeModel& model, const ArrayLikeObject& v) {
        return array_of(covariance_sde::diffusion(model, matrix_of(v, "v")));
      },
      "model"_a, "v"_a);
}

void bind_ensembles(nb::module_& module) {
  module.def("sde_simulate", &paths_of, "function"_a, "model"_a, "given"_a, "threads"_a);
  module.def("sde_explosion", &exploded, "model"_a, "given"_a, "threads"_a);
  nb::class_<NetworkSpec>(module, "SdeNetwork").def("limit", [](const NetworkSpec& network) {
    return model_tuple(covariance_sde::limiting_model(network));
  });
  module.def("sde_network", &network_of, "given"_a);
  module.def("sde_networks", &sampled_networks, "function"_a, "network"_a, "given"_a, "threads"_a);
  module.def("sde_entropy", &entropies, "network"_a, "given"_a, "threads"_a);
  module.def("sde_gradients", &gradients_of, "network"_a, "given"_a, "threads"_a, "progress"_a.none());
  module.def("sde_outputs", &outputs_of, "covariances"_a, "paths"_a, "given"_a);
  module.def(
      "two_sample_test",
      [](const ArrayLikeObject& first, const ArrayLikeObject& second) {
        const Vector<double> one = vector_of(first, "first"), other = vector_of(second, "second");
        const std::span<const double> a(one.data(), static_cast<std::size_t>(one.size())),
            b(other.data(), static_cast<std::size_t>(other.size()));
        const double distance = numerics::kolmogorov_smirnov_distance(a, b);
        return std::pair(distance, numerics::kolmogorov_smirnov_p_value(
                                       distance, numerics::two_sample_effective_size(a.size(), b.size())));
      },
      "first"_a, "second"_a);
}

void bind_laws(nb::module_& module) {
  nb::class_<DiffusionDistribution>(module, "SdeLaw")
      .def_prop_ro("total_mass", &DiffusionDistribution::total_mass)
      .def(
          "cumulative",
          [](const DiffusionDistribution& law, const ArrayLikeObject& x) {
            return each(law, x, [](const auto& one, double value) { return one.cumulative(value); });
          },
          "x"_a)
      .def(
          "density",
          [](const DiffusionDistribution& law, const ArrayLikeObject& x) {
            return each(law, x, [](const auto& one, double value) { return one.density(value); });
          },
          "x"_a)
      .def(
          "quantile",
          [](const DiffusionDistribution& law, const ArrayLikeObject& p) {
            return each(law, p, [](const auto& one, double value) { return one.quantile(value); });
          },
          "p"_a)
      .def(
          "chart_quantile",
          [](const DiffusionDistribution& law, const ArrayLikeObject& p) {
            return each(law, p, [](const auto& one, double value) { return one.chart_quantile(value); });
          },
          "p"_a);
  module.def("sde_law", &sde_law_of, "model"_a, "of_gap"_a, "start"_a, "time"_a);
  module.def(
      "sde_explosion_probability",
      [](const SdeModel& model, double gap0) {
        return run_or_leave(
            [model, gap0](std::stop_token) { return covariance_sde::explosion_probability(model, gap0); });
      },
      "model"_a, "gap0"_a);
  module.def("sde_flow", &flow_of, "function"_a, "model"_a.none(), "given"_a);
}

}  // namespace

void bind_sde(nb::module_& module) {
  bind_sde_models(module);
  bind_ensembles(module);
  bind_laws(module);
}

}  // namespace widelimit::python

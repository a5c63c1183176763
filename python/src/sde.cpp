#include "sde.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "estimates.hpp"
#include "interruptible.hpp"
#include "run_control.hpp"
#include "widelimit/covariance_sde/coefficients.hpp"
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
using covariance_sde::NetworkSpec;
using covariance_sde::ResidualWeights;
using covariance_sde::SdeModel;
using covariance_sde::ShapedSlopes;

AttentionMask attention_mask_of(bool causal) { return causal ? AttentionMask::causal : AttentionMask::full; }

/// (relu_drift, attention_drift, linear_noise, attention_noise, c_plus, c_minus, causal).
nb::tuple model_tuple(const SdeModel& model) {
  return nb::make_tuple(model.relu_drift, model.attention_drift, model.linear_noise, model.attention_noise,
                        model.slopes.plus, model.slopes.minus, model.mask == AttentionMask::causal);
}

using SlopePair = std::pair<double, double>;

ShapedSlopes slopes_of(const SlopePair& slopes) { return {slopes.first, slopes.second}; }

/// A network by its name in configurations of the program.
NetworkSpec network_named(const std::string& name, Index width, std::optional<double> gamma_squared,
                          double temperature, const SlopePair& slopes) {
  const ResidualWeights residual =
      gamma_squared ? ResidualWeights::shaped(*gamma_squared) : ResidualWeights::unit();
  if (name == "mlp") return covariance_sde::shaped_mlp(width, slopes_of(slopes));
  if (name == "shaped_resnet") return covariance_sde::shaped_resnet(width, residual, slopes_of(slopes));
  if (name == "shaped_attention") return covariance_sde::shaped_attention(width, residual, temperature);
  if (name == "shaped_transformer")
    return covariance_sde::shaped_transformer(width, residual, temperature, slopes_of(slopes));
  using covariance_sde::Normalization;
  for (const auto& [known, normalization] : {std::pair{"unshaped", Normalization::none},
                                             std::pair{"unshaped_pre_ln", Normalization::pre_layer_norm},
                                             std::pair{"unshaped_post_ln", Normalization::post_layer_norm}})
    if (name == known) return covariance_sde::unshaped_transformer(width, residual, normalization);
  for (const auto& network : covariance_sde::attention_interventions(width, residual, temperature))
    if (network.name == name) return network.network;
  throw ArgumentError(fmt::format("network: there is none of the name '{}'", name));
}

void make_sde_network(NetworkSpec* self, const std::string& name, Index width,
                      std::optional<double> gamma_squared, double temperature, const SlopePair& slopes,
                      bool causal, Index heads, Index key_width, Index hidden_width,
                      std::optional<double> gamma_squared_feedforward, std::optional<double> g1,
                      std::optional<double> g2) {
  NetworkSpec network = network_named(name, width, gamma_squared, temperature, slopes);
  if ((g1 || g2) && !network.attention)
    throw ArgumentError(fmt::format("g1, g2: a network of the name '{}' has no attention", name));
  if (network.attention) {
    network.attention->identity_weight = g1.value_or(network.attention->identity_weight);
    network.attention->centring_weight = g2.value_or(network.attention->centring_weight);
    network.attention->mask = attention_mask_of(causal);
    network.attention->heads = heads;
    network.key_width = key_width;
  }
  if (network.feedforward) {
    network.feedforward->hidden_width = hidden_width;
    if (network.attention && gamma_squared_feedforward)
      network.feedforward_residual = ResidualWeights::shaped(*gamma_squared_feedforward);
  }
  new (self) NetworkSpec(std::move(network));
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

/// How paths of the SDE are simulated.
struct SdePaths {
  covariance_sde::SimulationOptions options;

  [[nodiscard]] CovarianceEnsemble run(const SdeModel& model, const Matrix<double>& v0) const {
    return run_interruptibly([&](std::stop_token stop) {
      covariance_sde::SimulationOptions with_stop = options;
      with_stop.stop = std::move(stop);
      return covariance_sde::simulate(model, v0, with_stop);
    });
  }
};

void make_paths(SdePaths* self, const std::vector<double>& times, double max_step,
                std::optional<double> step_control, const std::string& scheme, double lower, double upper,
                Index paths, std::uint64_t seed, int threads) {
  using covariance_sde::StepScheme;
  new (self) SdePaths{{.times = times,
                       .max_step = max_step,
                       .step_control = step_control,
                       .scheme = scheme == "geometric"        ? StepScheme::geometric
                                 : scheme == "euler_maruyama" ? StepScheme::euler_maruyama
                                                              : StepScheme::euler_maruyama_dense,
                       .bounds = {lower, upper},
                       .paths = paths,
                       .seed = seed,
                       .threads = threads}};
}

nb::tuple simulated(const SdePaths& paths, const SdeModel& model, const ArrayLikeObject& v0) {
  return arrays_of_ensemble(paths.run(model, matrix_of(v0, "v0")));
}

/// ((beyond, factor, probability, lower, upper) of each time, ensemble).
nb::tuple exploded(const SdePaths& paths, const SdeModel& model, const ArrayLikeObject& v0) {
  const Matrix<double> start = matrix_of(v0, "v0");
  const CovarianceEnsemble ensemble = paths.run(model, start);
  const auto shares = run_or_leave([model, start, ensemble](std::stop_token) {
    return covariance_sde::explosion_shares(model, start, ensemble);
  });
  Matrix<double> rows(static_cast<Index>(shares.size()), 5);
  for (std::size_t k = 0; k < shares.size(); ++k)
    rows.row(static_cast<Index>(k)) << static_cast<double>(shares[k].beyond_upper),
        shares[k].explodes_from_there, shares[k].probability, shares[k].interval.lower,
        shares[k].interval.upper;
  return nb::make_tuple(array_of(std::move(rows)), arrays_of_ensemble(ensemble));
}

/// How random networks are drawn.
struct SdeNetworks {
  covariance_sde::NetworkOptions options;

  [[nodiscard]] CovarianceEnsemble run(const NetworkSpec& network, const Matrix<double>& v0) const {
    return run_interruptibly([&](std::stop_token stop) {
      covariance_sde::NetworkOptions with_stop = options;
      with_stop.stop = std::move(stop);
      return covariance_sde::sample_networks(network, v0, with_stop);
    });
  }
};

void make_sde_networks(SdeNetworks* self, const std::vector<Index>& layers, Index samples, std::uint64_t seed,
                       double lower, double upper, bool explicit_weights, int threads) {
  using covariance_sde::NetworkSampling;
  new (self) SdeNetworks{
      {.layers = layers,
       .samples = samples,
       .seed = seed,
       .threads = threads,
       .bounds = {lower, upper},
       .sampling = explicit_weights ? NetworkSampling::explicit_weights : NetworkSampling::reduced}};
}

nb::tuple sampled_networks(const SdeNetworks& networks, const NetworkSpec& network,
                           const ArrayLikeObject& v0) {
  return arrays_of_ensemble(networks.run(network, matrix_of(v0, "v0")));
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
nb::tuple entropies(const SdeNetworks& networks, const NetworkSpec& network, const ArrayLikeObject& v0) {
  const Matrix<double> start = matrix_of(v0, "v0");
  // What networks without attention lack shows before the work.
  static_cast<void>(covariance_sde::softmax_entropy_expansion(network, start));
  SdeNetworks of_inputs = networks;
  of_inputs.options.kept = covariance_sde::CovarianceOf::branch_inputs;
  const CovarianceEnsemble ensemble = of_inputs.run(network, start);
  const auto layers = static_cast<Index>(networks.options.layers.size()), m = start.rows();
  Matrix<double> values(layers, m), errors(layers, m), expansions(layers, m);
  for (Index time = 0; time < layers; ++time) {
    const auto rows = run_interruptibly([&](std::stop_token stop) {
      return covariance_sde::softmax_entropy(network, ensemble, time, networks.options.seed,
                                             run_control_of(networks.options.threads, {}, std::move(stop)));
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
nb::tuple gradients_of(const NetworkSpec& network, const ArrayLikeObject& v0, Index depth, Index networks,
                       std::uint64_t seed, int threads, const ProgressFunction& progress) {
  const Matrix<double> start = matrix_of(v0, "v0");
  const auto norms = run_interruptibly([&](std::stop_token stop) {
    return covariance_sde::gradient_norms(network, start,
                                          {.depth = depth,
                                           .networks = networks,
                                           .seed = seed,
                                           .run = run_control_of(threads, progress, std::move(stop))});
  });
  const auto same = [](const numerics::Estimate& estimate) { return estimate; };
  nb::dict parameters;
  for (const auto& one : norms.parameters)
    parameters[nb::str(one.parameter.c_str())] = arrays_of_estimates(one.layers, same);
  return nb::make_tuple(arrays_of_estimates(norms.tokens, same), parameters);
}

/// states(time) at each time, below each other.
template <typename StateAt>
DoubleArrayObject flow_of(const std::vector<double>& times, const StateAt& state_at) {
  if (times.empty()) throw ArgumentError("times: expected one at least, got none");
  return array_of_stacked(run_or_leave([times, state_at](std::stop_token) {
    std::vector<Matrix<double>> states;
    for (const double time : times) states.push_back(state_at(time));
    return states;
  }));
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
             double attention_noise, double c_plus, double c_minus, bool causal) {
            new (self) SdeModel{relu_drift,      attention_drift,   linear_noise,
                                attention_noise, {c_plus, c_minus}, attention_mask_of(causal)};
          },
          "relu_drift"_a, "attention_drift"_a, "linear_noise"_a, "attention_noise"_a, "c_plus"_a, "c_minus"_a,
          "causal"_a);
  module.def(
      "sde_mlp",
      [](const SlopePair& slopes) { return model_tuple(covariance_sde::mlp_model(slopes_of(slopes))); },
      "slopes"_a);
  module.def(
      "sde_resnet",
      [](double gamma_squared, const SlopePair& slopes, double hidden_ratio) {
        return model_tuple(covariance_sde::resnet_model(ResidualWeights::shaped(gamma_squared),
                                                        slopes_of(slopes), hidden_ratio));
      },
      "gamma_squared"_a, "slopes"_a, "hidden_ratio"_a);
  module.def(
      "sde_attention",
      [](double gamma_squared, double temperature, bool causal, Index heads) {
        return model_tuple(covariance_sde::attention_model(ResidualWeights::shaped(gamma_squared),
                                                           temperature, attention_mask_of(causal), heads));
      },
      "gamma_squared"_a, "temperature"_a, "causal"_a, "heads"_a);
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
  module.def(
      "sde_linear_diffusion",
      [](const ArrayLikeObject& v) { return array_of(covariance_sde::linear_diffusion(matrix_of(v, "v"))); },
      "v"_a);
  module.def(
      "sde_attention_diffusion",
      [](const ArrayLikeObject& v, bool causal) {
        return array_of(covariance_sde::attention_diffusion(matrix_of(v, "v"), attention_mask_of(causal)));
      },
      "v"_a, "causal"_a);
  module.def(
      "sde_first_moments",
      [](const ArrayLikeObject& v, bool causal) {
        return array_of(covariance_sde::first_softmax_moments(matrix_of(v, "v"), attention_mask_of(causal)));
      },
      "v"_a, "causal"_a);
  module.def(
      "sde_second_moments",
      [](const ArrayLikeObject& v, bool causal) {
        return array_of(covariance_sde::second_softmax_moment(matrix_of(v, "v"), attention_mask_of(causal)));
      },
      "v"_a, "causal"_a);
  module.def(
      "sde_diffusion",
      [](const SdeModel& model, const ArrayLikeObject& v) {
        return array_of(covariance_sde::diffusion(model, matrix_of(v, "v")));
      },
      "model"_a, "v"_a);
}

void bind_ensembles(nb::module_& module) {
  nb::class_<SdePaths>(module, "SdePaths")
      .def("__init__", &make_paths, "times"_a, "max_step"_a, "step_control"_a.none(), "scheme"_a, "lower"_a,
           "upper"_a, "paths"_a, "seed"_a, "threads"_a)
      .def("simulate", &simulated, "model"_a, "v0"_a)
      .def("explode", &exploded, "model"_a, "v0"_a);
  nb::class_<NetworkSpec>(module, "SdeNetwork")
      .def("__init__", &make_sde_network, "name"_a, "width"_a, "gamma_squared"_a.none(), "temperature"_a,
           "slopes"_a, "causal"_a, "heads"_a, "key_width"_a, "hidden_width"_a,
           "gamma_squared_feedforward"_a.none(), "g1"_a.none(), "g2"_a.none())
      .def("limit",
           [](const NetworkSpec& network) { return model_tuple(covariance_sde::limiting_model(network)); })
      .def("lacks_reduction", [](const NetworkSpec& network, Index tokens) {
        return !covariance_sde::usual_sampling(network, tokens).reason.empty();
      });
  nb::class_<SdeNetworks>(module, "SdeNetworks")
      .def("__init__", &make_sde_networks, "layers"_a, "samples"_a, "seed"_a, "lower"_a, "upper"_a,
           "explicit_weights"_a, "threads"_a)
      .def("sample", &sampled_networks, "network"_a, "v0"_a)
      .def("entropies", &entropies, "network"_a, "v0"_a);
  module.def("sde_gradients", &gradients_of, "network"_a, "v0"_a, "depth"_a, "networks"_a, "seed"_a,
             "threads"_a, "progress"_a.none());
  module.def(
      "sde_outputs",
      [](const ArrayLikeObject& v, Index count, std::uint64_t seed, Index path) {
        return array_of(covariance_sde::sampled_outputs(matrix_of(v, "v"), count, seed, path));
      },
      "v"_a, "count"_a, "seed"_a, "path"_a);
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
  module.def(
      "sde_drift_flow",
      [](const SdeModel& model, const ArrayLikeObject& v0, const std::vector<double>& times) {
        return flow_of(times, [model, start = matrix_of(v0, "v0")](double time) {
          return covariance_sde::drift_flow(model, start, time);
        });
      },
      "model"_a, "v0"_a, "times"_a);
  module.def(
      "sde_commuting_limit",
      [](const ArrayLikeObject& v0, const std::vector<double>& times, bool preserving) {
        using covariance_sde::Shortcut;
        return flow_of(times, [start = matrix_of(v0, "v0"), preserving](double time) {
          return covariance_sde::commuting_limit(start, time,
                                                 preserving ? Shortcut::variance_preserving : Shortcut::unit);
        });
      },
      "v0"_a, "times"_a, "preserving"_a);
}

}  // namespace

void bind_sde(nb::module_& module) {
  bind_sde_models(module);
  bind_ensembles(module);
  bind_laws(module);
}

}  // namespace widelimit::python

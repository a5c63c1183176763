#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "covariance_sde/check_rows.hpp"
#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/covariance_sde/simulate.hpp"
#include "widelimit/error.hpp"

/// The sections of a reference file that are sampled.
namespace widelimit::covariance_sde {

namespace {

using numerics::Estimate;

/// "V01", "rho01", "gap01" or "largest_eigenvalue" at the end of every path.
std::vector<double> observable(const CovarianceEnsemble& ensemble, const std::string& name) {
  const auto time = static_cast<Index>(ensemble.times().size()) - 1;
  if (name == "largest_eigenvalue") return ensemble.largest_eigenvalues(time);
  const std::size_t digits = name.size() < 2 ? 0 : name.size() - 2;
  const std::string kind = name.substr(0, digits);
  const auto token = [&name](std::size_t i) {
    const char c = i < name.size() ? name[i] : ' ';
    if (std::isdigit(static_cast<unsigned char>(c)) == 0)
      throw DataError(fmt::format(
          "observable: expected V, rho or gap and two digits, or largest_eigenvalue, got {}", name));
    return static_cast<Index>(c - '0');
  };
  const Index a = token(digits), b = token(digits + 1);
  if (kind == "V") return ensemble.entries(time, a, b);
  if (kind == "rho") return ensemble.correlations(time, a, b);
  if (kind != "gap")
    throw DataError(fmt::format("observable: expected V, rho, gap or largest_eigenvalue, got {}", name));
  const std::vector<double> left = ensemble.entries(time, a, a), right = ensemble.entries(time, b, b);
  std::vector<double> values = ensemble.entries(time, a, b);
  // This is the gap Delta of docs/theory/covariance-sde.md, section 7.3.
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (left[i] + right[i] - 2 * values[i]) / 4;
  return values;
}

void check_quantiles(const JsonValue& entry, const CovarianceEnsemble& ensemble, const std::string& name,
                     Rows& rows) {
  const auto probabilities = entry.at("probabilities").get<std::vector<double>>();
  for (const auto& [kind, expected] : entry.at("observables").items()) {
    const std::vector<double> ascending = numerics::sorted(observable(ensemble, kind));
    check::WorstRow worst;
    for (std::size_t i = 0; i < probabilities.size(); ++i)
      worst.add_sampled({expected.at("quantiles").at(i), expected.at("standard_errors").at(i)},
                        numerics::quantile(ascending, probabilities[i]));
    rows.push_back(worst.named(fmt::format("{} {}", name, kind)));
  }
}

/// Variance over mean of the number of exits a path.
double exit_dispersion(const CovarianceEnsemble& ensemble) {
  std::vector<double> counts;
  counts.reserve(static_cast<std::size_t>(ensemble.paths()));
  for (Index path = 0; path < ensemble.paths(); ++path)
    counts.push_back(static_cast<double>(ensemble.outcome(path).cone_exits));
  const double mean = numerics::mean(counts).value;
  return mean > 0 ? numerics::variance(counts).value / mean : 1;
}

NetworkSpec network_of(const JsonValue& entry) {
  const auto name = entry.at("model").get<std::string>();
  const ResidualWeights residual = ResidualWeights::shaped(entry.at("gamma_squared"));
  const Index n = entry.at("n");
  if (name == "resnet") return shaped_resnet(n, residual, read_slopes(entry));
  NetworkSpec network = name == "attention"
                            ? shaped_attention(n, residual, entry.at("tau0"))
                            : shaped_transformer(n, residual, entry.at("tau0"), read_slopes(entry));
  network.key_width = entry.at("n_k");
  return network;
}

NetworkSpec variant_of(const JsonValue& entry) {
  const Index n = entry.at("n");
  const auto variant = entry.at("variant").get<std::string>();
  if (entry.at("network") == "attention only") {
    NetworkSpec network =
        shaped_attention(n, ResidualWeights::shaped(entry.at("gamma_squared")), entry.at("tau0"));
    network.key_width = entry.at("n_k");
    network.attention->identity_weight = entry.at("identity");
    network.attention->centring_weight = entry.at("center");
    if (entry.at("tau") == "tau0*sqrt(n_k)") network.attention->temperature_scale = TemperatureScale::key;
    return network;
  }
  const ResidualWeights residual =
      entry.at("lambda_squared") == 1.0 && entry.at("gamma_squared") == 1.0
          ? ResidualWeights::unit()
          : ResidualWeights::from(std::sqrt(entry.at("lambda_squared").get<double>()),
                                  std::sqrt(entry.at("gamma_squared").get<double>()));
  const bool normalised = entry.at("pre_ln");
  NetworkSpec network =
      unshaped_transformer(n, residual, normalised ? Normalization::pre_layer_norm : Normalization::none);
  network.key_width = entry.at("n_k");
  network.feedforward->slopes = {entry.at("slopes").at(0), entry.at("slopes").at(1)};
  if (variant == "shaped transformer") network.attention = AttentionBlock{.temperature = entry.at("tau0")};
  return network;
}

NetworkOptions network_options(const CheckOptions& options, std::vector<Index> layers) {
  NetworkOptions result;
  result.layers = std::move(layers);
  result.samples = options.network_samples;
  result.seed = options.seed;
  result.threads = options.threads;
  return result;
}

void check_layer_means(const JsonValue& entry, const CheckOptions& options, Rows& rows) {
  std::vector<Index> layers;
  layers.reserve(entry.at("layers").size());
  for (const JsonValue& layer : entry.at("layers").list()) layers.push_back(layer.at("layer"));
  const CovarianceEnsemble ensemble =
      sample_networks(variant_of(entry), entry.at("V0"), network_options(options, layers));
  const double ratio =
      std::sqrt(static_cast<double>(options.network_samples) / entry.at("samples").get<double>());
  check::WorstRow correlation, absolute, covariance;
  for (std::size_t k = 0; k < layers.size(); ++k) {
    const JsonValue expected = entry.at("layers").at(k);
    const auto time = static_cast<Index>(k);
    correlation.add_sampled({expected.at("mean_rho"), expected.at("se_mean_rho")},
                            numerics::mean(ensemble.mean_correlations(time)));
    absolute.add_sampled({expected.at("mean_abs_rho"), expected.at("se_mean_abs_rho")},
                         numerics::mean(ensemble.mean_absolute_correlations(time)));
    // The file gives no error of the median: that of the same distribution at the file's sample size.
    const Estimate median =
        numerics::quantile(numerics::sorted(ensemble.mean_absolute_covariances(time)), 0.5);
    const double value = expected.at("median_abs_cov");
    covariance.add(1, median.value / value,
                   check::standard_errors_accepted * std::hypot(1.0, ratio) * median.standard_error / value +
                       formula_tolerance);
  }
  const std::string name = fmt::format("network layer means, {}", entry.at("variant").get<std::string>());
  rows.push_back(correlation.named(name + ": mean rho"));
  rows.push_back(absolute.named(name + ": mean |rho|"));
  rows.push_back(covariance.named(name + ": median |V01| over expected"));
}

void check_stopping_time(const JsonValue& entry, const CheckOptions& options, Rows& rows) {
  const double gamma = entry.at("gamma");
  const Index n = entry.at("n"), depth = entry.at("depth");
  NetworkSpec network = shaped_attention(n, ResidualWeights::shaped(gamma * gamma), entry.at("tau0"));
  network.key_width = entry.at("n_k");
  NetworkOptions sampling = network_options(options, {depth});
  sampling.bounds = {1e-4, 1e4};
  const CovarianceEnsemble ensemble = sample_networks(network, entry.at("V0"), sampling);
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(ensemble.paths()));
  for (Index path = 0; path < ensemble.paths(); ++path)
    times.push_back(ensemble.outcome(path).last_inside_time);
  const std::vector<double> ascending = numerics::sorted(times);
  const std::string name = fmt::format("stopping time m = {} gamma = {} tau0 = {}", entry.at("m").get<int>(),
                                       gamma, entry.at("tau0").get<double>());
  check::WorstRow worst;
  for (std::size_t i = 0; i < entry.at("probabilities").size(); ++i) {
    const Estimate computed = numerics::quantile(ascending, entry.at("probabilities").at(i));
    const double error = std::hypot(entry.at("standard_errors").at(i).get<double>(), computed.standard_error);
    // Times are multiples of 1 / n: a quantile may fall on either of two neighbours.
    worst.add(entry.at("quantiles").at(i), computed.value,
              check::standard_errors_accepted * error + 1 / static_cast<double>(n));
  }
  rows.push_back(worst.named(name));
  const Index samples = entry.at("samples");
  const auto expected = [&](const char* field) {
    return entry.at(field).get<double>() * static_cast<double>(samples);
  };
  const auto count = [&](PathEnd end) { return static_cast<double>(ensemble.count(end)); };
  add_count_row(rows, name + ": left above", expected("fraction_above"), samples, count(PathEnd::above),
                ensemble.paths());
  add_count_row(rows, name + ": left below", expected("fraction_below"), samples, count(PathEnd::below),
                ensemble.paths());
}

}  // namespace

void check_sde_quantiles(const JsonValue& reference, const CheckOptions& options, Rows& rows) {
  for (const JsonValue& entry : reference.at("sde_quantiles").list()) {
    const auto scheme = entry.at("scheme").get<std::string>();
    SimulationOptions simulation;
    simulation.times = {read_horizon(entry)};
    simulation.max_step = entry.at("step");
    // The file's paths go in equal steps; those under control explode more often.
    simulation.step_control = 0;
    simulation.scheme = scheme == "geometric" ? StepScheme::geometric : StepScheme::euler_maruyama;
    simulation.paths = options.sde_paths;
    simulation.seed = options.seed;
    simulation.threads = options.threads;
    const CovarianceEnsemble ensemble = simulate(read_model(entry), entry.at("V0"), simulation);
    const std::string name = fmt::format("SDE {} {}", entry.at("name").get<std::string>(), scheme);
    check_quantiles(entry, ensemble, name, rows);
    const Index samples = entry.at("samples");
    add_count_row(rows, name + ": stopped a path", entry.at("stopped_above_1e4"), samples,
                  static_cast<double>(ensemble.paths() - ensemble.count(PathEnd::horizon)), ensemble.paths());
    add_count_row(rows, name + ": cone exits a path", entry.at("outside_cone"), samples,
                  static_cast<double>(ensemble.cone_exits()), ensemble.paths(), exit_dispersion(ensemble));
  }
}

void check_networks(const JsonValue& reference, const CheckOptions& options, Rows& rows) {
  for (const JsonValue& entry : reference.at("network_quantiles").list()) {
    const CovarianceEnsemble ensemble = sample_networks(
        network_of(entry), entry.at("V0"), network_options(options, {entry.at("depth").get<Index>()}));
    check_quantiles(entry, ensemble, "network " + entry.at("name").get<std::string>(), rows);
  }
  for (const JsonValue& entry : reference.at("network_layer_means").list())
    check_layer_means(entry, options, rows);
  for (const JsonValue& entry : reference.at("stopping_times").list())
    check_stopping_time(entry, options, rows);
}

}  // namespace widelimit::covariance_sde

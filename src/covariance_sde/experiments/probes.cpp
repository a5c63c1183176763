#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "covariance_sde/experiments/shared.hpp"
#include "widelimit/covariance_sde/coefficients.hpp"
#include "widelimit/covariance_sde/gradient_norms.hpp"
#include "widelimit/covariance_sde/outputs.hpp"
#include "widelimit/covariance_sde/softmax_entropy.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/numerics/statistics.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::covariance_sde {

using nlohmann::json;
using numerics::Estimate;
using results::matrix_json;

namespace {

/// Outputs X W / sqrt(n) of the paths that run, a row each: given V, each is N(0, V).
Table output_table(const CovarianceEnsemble& ensemble, Index units, std::uint64_t seed) {
  const Index last = last_time(ensemble);
  results::Column outputs = results::vector_column("x", ensemble.tokens());
  outputs.format = "{:.10g}";
  Table table({{.name = "path"}, {.name = "output"}, outputs});
  for (const Index path : ensemble.running_paths(last)) {
    const Matrix<double> x = sampled_outputs(ensemble.covariance(last, path), units, seed, path);
    for (Index unit = 0; unit < units; ++unit)
      table.add(static_cast<double>(path), static_cast<double>(unit), x.row(unit));
  }
  return table;
}

/// 3 E V^2 / (E V)^2 of each token: the kurtosis of an output, whose variance is V.
json kurtosis_of(const CovarianceEnsemble& ensemble) {
  const Index last = last_time(ensemble);
  const std::vector<Index> running = ensemble.running_paths(last);
  json result = json::array();
  for (Index a = 0; a < ensemble.tokens(); ++a) {
    double sum = 0, squares = 0;
    for (const Index path : running) {
      const double v = ensemble.covariance(last, path)(a, a);
      sum += v;
      squares += v * v;
    }
    result.push_back(3 * squares * static_cast<double>(running.size()) / (sum * sum));
  }
  return result;
}

Picture output_picture(const Table& table) {
  DensityPanel panel{"output"};
  const std::vector<std::string> names = table.names();
  constexpr std::size_t most_drawn = 4;
  for (std::size_t a = 0; a < std::min(most_drawn, names.size() - 2); ++a)
    panel.curves.push_back({fmt::format("token {}", a), table.values(names[a + 2]), static_cast<int>(a) + 1});
  return densities_picture("Outputs of paths that run to the last time", {panel});
}

}  // namespace

Results output_experiment(ConfigReader& fields, const Control& control) {
  Run run(fields, control);
  Index units = 1;
  // Paths of the SDE or networks, as the configuration says.
  const auto sampled_by = [&](const auto& read) {
    return sampled(run.read_setup(run.config,
                                  [&](ConfigReader& reading) {
                                    units = reading.integer("outputs");
                                    return read(reading);
                                  }),
                   control);
  };
  const CovarianceEnsemble ensemble =
      run.config.contains("network") ? sampled_by(read_network_setup) : sampled_by(read_sde_setup);
  require_running("sde output", "paths", ensemble);
  warn_of_stopped(run, "paths", ensemble);
  const Table& table = run.results.tables["outputs"] =
      output_table(ensemble, units, *run.results.origin.seed);
  run.results.summary = {{"counts", ensemble_counts(ensemble)}, {"kurtosis", kurtosis_of(ensemble)}};
  run.results.shapes = {
      {"V0", {ensemble.tokens(), ensemble.tokens()}}, {"paths", ensemble.paths()}, {"outputs", units}};
  run.results.pictures = {picture([table] { return output_picture(table); })};
  return std::move(run.results);
}

namespace {

/// Means over running networks of the expansion.
Vector<double> mean_expansion(const NetworkSpec& network, const CovarianceEnsemble& ensemble, Index time) {
  Vector<double> sum = Vector<double>::Zero(ensemble.tokens());
  const std::vector<Index> running = ensemble.running_paths(time);
  for (const Index path : running) sum += softmax_entropy_expansion(network, ensemble.covariance(time, path));
  return sum / static_cast<double>(running.size());
}

}  // namespace

Results entropy_experiment(ConfigReader& fields, const Control& control) {
  Run run(fields, control);
  NetworkSetup setup = run.read_setup(run.config, read_network_setup);
  setup.options.kept = CovarianceOf::branch_inputs;
  // What networks without attention lack shows before the work.
  naming_errors("config.network",
                [&] { static_cast<void>(softmax_entropy_expansion(setup.network, setup.v0)); });
  const CovarianceEnsemble ensemble = sampled(setup, control);
  Table& table = run.results.tables["entropy"] = Table({{.name = "layer"},
                                                        {.name = "row"},
                                                        {.name = "entropy", .format = "{:.10g}"},
                                                        {.name = "standard_error", .format = "{:.3g}"},
                                                        {.name = "expansion", .format = "{:.10g}"}});
  LinePlot plot{.title = "Entropy of the softmax rows of attention",
                .x_label = "layers passed",
                .y_label = "entropy, nats"};
  for (Index a = 0; a < setup.v0.rows(); ++a) {
    plot.samples.push_back({fmt::format("token {}, networks", a)});
    plot.curves.push_back({fmt::format("token {}, expansion", a), {}});
  }
  for (Index time = 0; time <= last_time(ensemble); ++time) {
    const auto layer = static_cast<double>(setup.options.layers[static_cast<std::size_t>(time)]);
    const auto entropies = softmax_entropy(setup.network, ensemble, time, setup.options.seed,
                                           {.threads = control.threads, .stop = control.stop});
    const Vector<double> expansion = mean_expansion(setup.network, ensemble, time);
    plot.x.push_back(layer);
    for (std::size_t a = 0; a < entropies.size(); ++a) {
      const Estimate& one = entropies[a];
      const double expanded = expansion[static_cast<Index>(a)];
      plot.samples[a].add_with_error(one.value, one.standard_error);
      plot.curves[a].values.push_back(expanded);
      table.add(layer, static_cast<double>(a), one.value, one.standard_error, expanded);
    }
  }
  warn_of_stopped(run, "networks", ensemble);
  run.results.shapes = shape_of(setup.v0);
  run.results.shapes["layers"] = plot.x.size();
  run.results.pictures = {picture([plot] { return lines_picture(plot); })};
  return std::move(run.results);
}

namespace {

json estimates_json(const std::vector<Estimate>& estimates) {
  json list = json::array();
  for (const Estimate& estimate : estimates) list.push_back(results::estimate_json(estimate));
  return list;
}

const char* parameter_in_words(const std::string& name) {
  return name == "query"    ? "query weights"
         : name == "key"    ? "key weights"
         : name == "value"  ? "value weights"
         : name == "hidden" ? "first feedforward weights"
         : name == "output" ? "second feedforward weights"
                            : "weights";
}

/// Squared gradients of a parameter against depth.
Series gradient_series(const ParameterGradientNorms& parameter, const std::string& label, int colour) {
  Series series{.draw = Draw::joined_bars,
                .columns = {{}, {}, {}},
                .name = label,
                .colour = colour,
                .width = 2,
                .size = 0.5};
  for (const Estimate& layer : parameter.layers) {
    series.columns[0].push_back(static_cast<double>(series.columns[0].size() + 1));
    series.columns[1].push_back(layer.value);
    series.columns[2].push_back(layer.standard_error);
  }
  return series;
}

/// A panel a parameter, a colour a network.
Picture gradients_picture(const std::vector<std::string>& labels, const std::vector<GradientNorms>& norms) {
  Picture picture{.panels = {}, .width = 1300, .title = "Squared gradients against depth"};
  std::vector<std::string> names;
  for (const GradientNorms& one : norms)
    for (const ParameterGradientNorms& parameter : one.parameters)
      if (std::ranges::find(names, parameter.parameter) == names.end()) names.push_back(parameter.parameter);
  for (const std::string& name : names) {
    Panel panel{.title = fmt::format("of the {}", parameter_in_words(name)),
                .x = {.label = "layer"},
                .y = {.label = "squared gradient over tokens times width",
                      .logarithmic = true,
                      .number_format = "%.0e"},
                .legend = Legend::outside_below,
                .grid = true};
    for (std::size_t k = 0; k < norms.size(); ++k)
      for (const ParameterGradientNorms& parameter : norms[k].parameters)
        if (parameter.parameter == name)
          panel.series.push_back(gradient_series(parameter, labels[k], static_cast<int>(k) + 1));
    picture.panels.push_back(std::move(panel));
  }
  picture.height = names.size() > 3 ? 900 : 480;
  picture.columns = static_cast<int>(std::min<std::size_t>(names.size(), 3));
  return picture;
}

}  // namespace

Results gradients_experiment(ConfigReader& fields, const Control& control) {
  Run run(fields, control);
  GradientSetup setup = run.read(run.config, read_gradient_setup);
  run.results.origin.seed = setup.options.seed;
  Table& table = run.results.tables["gradients"] = Table({{.name = "network", .quoted = true},
                                                          {.name = "parameter"},
                                                          {.name = "layer"},
                                                          {.name = "squared_norm", .format = "{:.10g}"},
                                                          {.name = "standard_error", .format = "{:.3g}"}});
  std::vector<GradientNorms> norms;
  std::vector<std::string> labels;
  for (const GradientSetup::Network& network : setup.networks) {
    setup.options.run = control.part(network.label);
    norms.push_back(gradient_norms(network.network, setup.v0, setup.options));
    labels.push_back(network.label);
  }
  for (std::size_t k = 0; k < norms.size(); ++k) {
    const GradientNorms& one = norms[k];
    // Layer 0 of "tokens" is the input.
    const auto add = [&](const std::string& parameter, const std::vector<Estimate>& layers, Index first) {
      for (const Estimate& layer : layers)
        table.add(labels[k], parameter, static_cast<double>(first++), layer.value, layer.standard_error);
    };
    json summary{{"label", labels[k]}, {"tokens", estimates_json(one.tokens)}};
    add("tokens", one.tokens, 0);
    for (const ParameterGradientNorms& parameter : one.parameters) {
      add(parameter.parameter, parameter.layers, 1);
      summary["parameters"][parameter.parameter] = estimates_json(parameter.layers);
    }
    run.results.summary["networks"].push_back(std::move(summary));
    const ParameterGradientNorms& last = one.parameters.back();
    run.say(fmt::format(
        "{:<24} gradient at the input {:.4g}, of the last block's {} in the first layer {:.4g}, in the last "
        "{:.4g}\n",
        visible_text(labels[k]), one.tokens.front().value, last.parameter, last.layers.front().value,
        last.layers.back().value));
  }
  run.results.shapes = shape_of(setup.v0);
  run.results.shapes["networks"] = setup.networks.size();
  run.results.pictures = {picture([labels, norms] { return gradients_picture(labels, norms); })};
  return std::move(run.results);
}

namespace {

/// [a][d][b][w]
json first_moments(const Matrix<double>& v, AttentionMask mask) {
  const Matrix<double> moments = first_softmax_moments(v, mask);
  const Index m = v.rows();
  json result = json::array();
  for (Index a = 0; a < m; ++a) {
    json of_row = json::array();
    for (Index d = 0; d < m; ++d)
      of_row.push_back(matrix_json(moments.row(a * m + d).reshaped<Eigen::RowMajor>(m, m)));
    result.push_back(std::move(of_row));
  }
  return result;
}

json coefficients_of(const SdeModel& model, const Matrix<double>& v) {
  json report{{"V", matrix_json(v)},
              {"coordinates", json::array()},
              {"weights",
               {{"relu_drift", model.relu_drift},
                {"attention_drift", model.attention_drift},
                {"linear_noise", model.linear_noise},
                {"attention_noise", model.attention_noise}}},
              {"drift", matrix_json(drift(model, v))},
              {"Sigma", matrix_json(diffusion(model, v))},
              {"Sigma_lin", matrix_json(linear_diffusion(v))}};
  for (Index a = 0; a < v.rows(); ++a)
    for (Index b = a; b < v.rows(); ++b) report["coordinates"].push_back({a, b});
  SdeModel relu = model, attention = model;
  relu.attention_drift = attention.relu_drift = 0;
  if (model.relu_drift > 0) report["drift_relu"] = matrix_json(drift(relu, v));
  if (!(model.attention_drift > 0)) return report;
  report.update({{"drift_attention", matrix_json(drift(attention, v))},
                 {"A", matrix_json(attention_diffusion(v, model.mask))},
                 {"S1", first_moments(v, model.mask)},
                 {"S2", matrix_json(second_softmax_moment(v, model.mask))}});
  return report;
}

}  // namespace

Results coefficients_experiment(ConfigReader& fields, const Control& control) {
  Run run(fields, control);
  const CoefficientSetup setup = run.read(run.config, read_coefficient_setup);
  const Matrix<double>& v = setup.v0;
  // Every pair of coordinates is written, and every entry of S1.
  if (v.rows() > most_coefficient_tokens)
    fields.fail("V0",
                fmt::format("expected at most {} tokens for sde coefficients, whose tables have tokens^4 "
                            "entries, got {}",
                            most_coefficient_tokens, v.rows()));
  run.results.summary = coefficients_of(setup.model, v);
  const Matrix<double> b = drift(setup.model, v);
  Table& table = run.results.tables["coefficients"] = Table({{.name = "row"},
                                                             {.name = "column"},
                                                             {.name = "V", .format = "{:.12g}"},
                                                             {.name = "drift", .format = "{:.12g}"}});
  for (Index row = 0; row < v.rows(); ++row)
    for (Index column = row; column < v.rows(); ++column)
      table.add(static_cast<double>(row), static_cast<double>(column), v(row, column), b(row, column));
  run.say(csv_text(table));
  run.results.shapes = shape_of(v);
  return std::move(run.results);
}

namespace {

/// Medians and 10 % quantiles over residual weights and temperatures.
struct StoppingGrid {
  std::vector<double> gammas, temperatures;
  std::vector<double> medians, early;  ///< [temperature][gamma]
  double horizon = 0;                  ///< Where every path ends.
};

std::vector<std::pair<double, std::string>> numbered_tics(const std::vector<double>& values) {
  std::vector<std::pair<double, std::string>> tics;
  for (const double value : values) tics.emplace_back(tics.size(), fmt::format("{:g}", value));
  return tics;
}

/// Medians in colour where both vary, else lines over the one that does.
Picture stopping_picture(const StoppingGrid& grid) {
  if (grid.gammas.size() == 1 || grid.temperatures.size() == 1) {
    const bool over_gamma = grid.temperatures.size() == 1;
    return lines_picture(
        {.title = "When eigenvalues of V leave their bounds",
         .x_label = over_gamma ? "residual weight gamma" : "temperature",
         .y_label = "stopping time, layers over width",
         .x = over_gamma ? grid.gammas : grid.temperatures,
         .curves = {{"median of networks", grid.medians}, {"first tenth of networks", grid.early}}});
  }
  // Evenly spaced cells, whatever the values are. At the horizon the median is of paths that had not stopped.
  Series cells{.draw = Draw::cells, .columns = {{}, {}, {}}},
      censored{.draw = Draw::labels, .columns = {{}, {}}};
  for (std::size_t k = 0; k < grid.medians.size(); ++k) {
    const auto column = static_cast<double>(k % grid.gammas.size()),
               row = static_cast<double>(k / grid.gammas.size());
    const double cell[] = {column, row, grid.medians[k]};
    for (std::size_t c = 0; c < 3; ++c) cells.columns[c].push_back(cell[c]);
    if (grid.medians[k] < grid.horizon) continue;
    for (std::size_t c = 0; c < 2; ++c) censored.columns[c].push_back(cell[c]);
    censored.texts.push_back(fmt::format(">{:g}", grid.medians[k]));
  }
  Panel panel{.title = "When eigenvalues of V leave their bounds",
              .x = {.label = "residual weight gamma",
                    .from = -0.5,
                    .to = static_cast<double>(grid.gammas.size()) - 0.5,
                    .named_tics = numbered_tics(grid.gammas)},
              .y = {.label = "temperature",
                    .from = -0.5,
                    .to = static_cast<double>(grid.temperatures.size()) - 0.5,
                    .named_tics = numbered_tics(grid.temperatures)},
              .colours = {.label = "median stopping time, layers over width", .from = 0},
              .palette = results::Palette::viridis,
              .series = {std::move(cells)}};
  if (!censored.texts.empty()) panel.series.push_back(std::move(censored));
  return {.panels = {std::move(panel)}, .height = 560};
}

}  // namespace

Results stopping_experiment(ConfigReader& fields, const Control& control) {
  Run run(fields, control);
  json config = run.config;
  StoppingGrid grid;
  grid.gammas = take_gammas(config);
  grid.temperatures = take_temperatures(config);
  NetworkSetup setup = run.read_setup(config, read_network_setup);
  auto& attention = setup.network.attention;
  if (!grid.temperatures.empty() && !attention)
    fields.fail("temperatures", "the network has no attention block");
  const bool shaped = !grid.gammas.empty();
  if (!shaped) grid.gammas.push_back(setup.network.residual.gamma());
  if (grid.temperatures.empty()) grid.temperatures.push_back(attention ? attention->temperature : 1);
  for (const double temperature : grid.temperatures)
    for (const double gamma : grid.gammas) {
      if (shaped) setup.network.residual = ResidualWeights::shaped(gamma * gamma);
      if (attention) attention->temperature = temperature;
      const CovarianceEnsemble ensemble = sampled(setup, control);
      std::vector<double> times;
      for (Index path = 0; path < ensemble.paths(); ++path)
        times.push_back(ensemble.outcome(path).last_inside_time);
      const std::vector<double> ascending = numerics::sorted(times);
      json row{{"gamma", gamma}, {"temperature", temperature}, {"counts", ensemble_counts(ensemble)}};
      for (const double p : {0.1, 0.5, 0.9})
        row["quantiles"].push_back({{"p", p}, {"time", numerics::quantile(ascending, p).value}});
      run.results.summary["stopping_times"].push_back(std::move(row));
      grid.horizon = ensemble.times().back();
      grid.medians.push_back(numerics::quantile(ascending, 0.5).value);
      grid.early.push_back(numerics::quantile(ascending, 0.1).value);
      run.say(fmt::format("gamma {:<8g} temperature {:<8g} median {:.4f}  10 % {:.4f}\n", gamma, temperature,
                          grid.medians.back(), grid.early.back()));
    }
  run.results.shapes = shape_of(setup.v0);
  run.results.shapes.update(nlohmann::ordered_json{{"gammas", grid.gammas.size()},
                                                   {"temperatures", grid.temperatures.size()},
                                                   {"networks", setup.options.samples}});
  run.results.pictures = {picture([grid] { return stopping_picture(grid); })};
  return std::move(run.results);
}

}  // namespace widelimit::covariance_sde

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/output/progress_bar.hpp"
#include "cli/output/text_parts.hpp"
#include "cli/sde/sde_run.hpp"
#include "widelimit/covariance_sde/gradient_norms.hpp"
#include "widelimit/covariance_sde/outputs.hpp"
#include "widelimit/covariance_sde/softmax_entropy.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {

using namespace covariance_sde;
using nlohmann::json;
using numerics::Estimate;

namespace {

/// Outputs X W / sqrt(n) of the paths that run: given V, each is N(0, V).
struct Outputs {
  std::string csv;
  std::vector<Observable> tokens;  ///< Outputs of each token.
  json kurtosis = json::array();
};

Outputs outputs_of(const CovarianceEnsemble& ensemble, Index units, std::uint64_t seed) {
  const Index last = last_time(ensemble), m = ensemble.tokens();
  Outputs outputs{"path,output", {}, {}};
  for (Index a = 0; a < m; ++a) {
    outputs.tokens.push_back({fmt::format("x{}", a), {}});
    outputs.csv += "," + outputs.tokens.back().name;
  }
  outputs.csv += "\n";
  for (const Index path : ensemble.running_paths(last)) {
    const Matrix<double> x = sampled_outputs(ensemble.covariance(last, path), units, seed, path);
    for (Index unit = 0; unit < units; ++unit) {
      outputs.csv += fmt::format("{},{}", path, unit);
      for (Index a = 0; a < m; ++a) {
        outputs.tokens[static_cast<std::size_t>(a)].values.push_back(x(unit, a));
        fmt::format_to(std::back_inserter(outputs.csv), ",{:.10g}", x(unit, a));
      }
      outputs.csv += "\n";
    }
  }
  return outputs;
}

/// 3 E V^2 / (E V)^2 of each token: the kurtosis of an output, whose variance is V.
json kurtosis_of(const CovarianceEnsemble& ensemble) {
  const Index last = last_time(ensemble);
  json result = json::array();
  for (Index a = 0; a < ensemble.tokens(); ++a) {
    double sum = 0, squares = 0;
    const std::vector<Index> running = ensemble.running_paths(last);
    for (const Index path : running) {
      const double v = ensemble.covariance(last, path)(a, a);
      sum += v;
      squares += v * v;
    }
    result.push_back(3 * squares * static_cast<double>(running.size()) / (sum * sum));
  }
  return result;
}

/// Paths of the SDE or networks, as the configuration says.
CovarianceEnsemble sampled(SdeRun& run, Index& units) {
  const auto setup_of = [&](const auto& read) {
    return run.read_setup(run.config, [&](ConfigReader& fields) {
      units = fields.integer("outputs");
      return read(fields);
    });
  };
  return run.config.contains("network") ? sampled_ensemble(setup_of(read_network_setup))
                                        : sampled_ensemble(setup_of(read_sde_setup));
}

/// Means over running networks of the expansion.
Vector<double> mean_expansion(const NetworkSpec& network, const CovarianceEnsemble& ensemble, Index time) {
  Vector<double> sum = Vector<double>::Zero(ensemble.tokens());
  const std::vector<Index> running = ensemble.running_paths(time);
  for (const Index path : running) sum += softmax_entropy_expansion(network, ensemble.covariance(time, path));
  return sum / static_cast<double>(running.size());
}

json estimates_json(const std::vector<Estimate>& estimates) {
  json list = json::array();
  for (const Estimate& estimate : estimates) list.push_back(estimate_json(estimate));
  return list;
}

json gradients_json(const GradientSetup::Network& network, const GradientNorms& norms) {
  json result{{"label", network.label}, {"tokens", estimates_json(norms.tokens)}};
  for (const ParameterGradientNorms& parameter : norms.parameters)
    result["parameters"][parameter.parameter] = estimates_json(parameter.layers);
  return result;
}

/// "label,parameter,layer,squared_norm,standard_error" rows; layer 0 of "tokens" is the input.
void append_gradients(std::string& csv, const std::string& label, const GradientNorms& norms) {
  const auto append = [&](const std::string& parameter, const std::vector<Estimate>& layers, Index first) {
    for (const Estimate& one : layers)
      fmt::format_to(std::back_inserter(csv), "{},{},{},{:.10g},{:.3g}\n", label, parameter, first++,
                     one.value, one.standard_error);
  };
  append("tokens", norms.tokens, 0);
  for (const ParameterGradientNorms& parameter : norms.parameters)
    append(parameter.parameter, parameter.layers, 1);
}

const char* parameter_in_words(const std::string& name) {
  return name == "query"    ? "query weights"
         : name == "key"    ? "key weights"
         : name == "value"  ? "value weights"
         : name == "hidden" ? "first feedforward weights"
         : name == "output" ? "second feedforward weights"
                            : "weights";
}

/// A panel a parameter, a colour a network: squared gradients against depth.
std::string gradients_script(const std::vector<GradientSetup::Network>& networks,
                             const std::vector<GradientNorms>& norms) {
  std::vector<std::string> names;
  for (const GradientNorms& one : norms)
    for (const ParameterGradientNorms& parameter : one.parameters)
      if (std::find(names.begin(), names.end(), parameter.parameter) == names.end())
        names.push_back(parameter.parameter);
  std::string script = gnuplot_canvas(1300, names.size() > 3 ? 900 : 480), plots;
  for (const std::string& name : names) {
    plots += fmt::format("set title 'of the {}'\nplot ", parameter_in_words(name));
    for (std::size_t k = 0; k < norms.size(); ++k)
      for (const ParameterGradientNorms& parameter : norms[k].parameters) {
        if (parameter.parameter != name) continue;
        script += fmt::format("${}{} << end\n", name, k);
        for (std::size_t l = 0; l < parameter.layers.size(); ++l)
          fmt::format_to(std::back_inserter(script), "{} {} {}\n", l + 1, parameter.layers[l].value,
                         parameter.layers[l].standard_error);
        script += "end\n";
        plots += fmt::format("${}{} with yerrorlines pt 7 ps 0.5 lw 2 lc {} title {}, ", name, k, k + 1,
                             gnuplot_quoted(networks[k].label));
      }
    plots += "\n";
  }
  return script +
         fmt::format(
             "set multiplot layout {},{} title 'Squared gradients against depth'\nset logscale y\nset format "
             "y '%.0e'\nset grid\nset xlabel 'layer'\nset ylabel 'squared gradient over tokens times width'\n"
             "set key outside below\n{}unset multiplot\n",
             names.size() > 3 ? 2 : 1, std::min<std::size_t>(names.size(), 3), plots);
}

std::string outputs_script(const Outputs& outputs) {
  DensityPanel panel{"output", {}};
  constexpr std::size_t most_drawn = 4;
  for (std::size_t a = 0; a < std::min(most_drawn, outputs.tokens.size()); ++a)
    panel.curves.push_back({fmt::format("token {}", a), outputs.tokens[a].values, static_cast<int>(a) + 1});
  return densities_script("Outputs of paths that run to the last time", {panel});
}

}  // namespace

void run_sde_output(const SdeArguments& arguments, const RunContext& context) {
  SdeRun run(arguments, context, "output", {"outputs.csv", "output.json"}, {"output.png"});
  Index units = 1;
  const CovarianceEnsemble ensemble = run.with_config([&] { return sampled(run, units); });
  require_running("sde output", "paths", ensemble);
  warn_of_stopped("paths", ensemble);
  const Outputs outputs = outputs_of(ensemble, units, *run.origin.seed);
  const json report{{"counts", ensemble_counts(ensemble)}, {"kurtosis", kurtosis_of(ensemble)}};
  run.write_csv("outputs.csv", outputs.csv);
  run.write_report("output.json", report);
  say("{}", result_text(report));
  run.finish(
      {{"V0", {ensemble.tokens(), ensemble.tokens()}}, {"paths", ensemble.paths()}, {"outputs", units}},
      {[&] { return outputs_script(outputs); }});
}

void run_sde_entropy(const SdeArguments& arguments, const RunContext& context) {
  SdeRun run(arguments, context, "entropy", {"entropy.csv"}, {"entropy.png"});
  std::string csv = "layer,row,entropy,standard_error,expansion\n";
  LinePlot plot{.title = "Entropy of the softmax rows of attention",
                .x_label = "layers passed",
                .y_label = "entropy, nats",
                .x = {}};
  Matrix<double> v0;
  run.with_config([&] {
    NetworkSetup setup = run.read_setup(run.config, read_network_setup);
    v0 = setup.v0;
    setup.options.kept = CovarianceOf::branch_inputs;
    // What networks without attention lack shows before the work.
    naming_errors("config.network",
                  [&] { static_cast<void>(softmax_entropy_expansion(setup.network, setup.v0)); });
    const CovarianceEnsemble ensemble = sampled_ensemble(setup);
    for (Index a = 0; a < v0.rows(); ++a) {
      plot.samples.push_back({fmt::format("token {}, networks", a), {}, {}, {}});
      plot.curves.push_back({fmt::format("token {}, expansion", a), {}});
    }
    for (Index time = 0; time <= last_time(ensemble); ++time) {
      const Index layer = setup.options.layers[static_cast<std::size_t>(time)];
      const auto entropies =
          softmax_entropy(setup.network, ensemble, time, setup.options.seed,
                          {.threads = arguments.threads, .stop = context.interrupt.token()});
      const Vector<double> expansion = mean_expansion(setup.network, ensemble, time);
      plot.x.push_back(static_cast<double>(layer));
      for (Index a = 0; a < v0.rows(); ++a) {
        const Estimate& one = entropies[static_cast<std::size_t>(a)];
        plot.samples[static_cast<std::size_t>(a)].add_with_error(one.value, one.standard_error);
        plot.curves[static_cast<std::size_t>(a)].values.push_back(expansion(a));
        fmt::format_to(std::back_inserter(csv), "{},{},{:.10g},{:.3g},{:.10g}\n", layer, a, one.value,
                       one.standard_error, expansion(a));
      }
    }
    warn_of_stopped("networks", ensemble);
  });
  run.write_csv("entropy.csv", csv);
  print_csv(csv);
  run.finish({{"V0", {v0.rows(), v0.cols()}}, {"layers", plot.x.size()}},
             {[&] { return lines_script(plot); }});
}

void run_sde_gradients(const SdeArguments& arguments, const RunContext& context) {
  SdeRun run(arguments, context, "gradients", {"gradients.csv", "gradients.json"}, {"gradients.png"});
  std::string csv = "network,parameter,layer,squared_norm,standard_error\n";
  json networks = json::array();
  std::vector<GradientNorms> norms;
  const GradientSetup setup = run.with_config([&] {
    GradientSetup read = run.read(run.config, read_gradient_setup);
    run.steer(read.options.run);
    run.origin.seed = read.options.seed;
    for (const GradientSetup::Network& network : read.networks) {
      ProgressBar bar(network.label, Counted::steps, arguments.threads);
      read.options.run.progress = [&](std::ptrdiff_t done, std::ptrdiff_t total) { bar.show(done, total); };
      norms.push_back(gradient_norms(network.network, read.v0, read.options));
    }
    return read;
  });
  for (std::size_t k = 0; k < norms.size(); ++k) {
    append_gradients(csv, csv_quoted(setup.networks[k].label), norms[k]);
    networks.push_back(gradients_json(setup.networks[k], norms[k]));
    say("{:<24} gradient at the input {:.4g}, of the last block's {} in the first layer {:.4g}, in the last "
        "{:.4g}\n",
        visible_text(setup.networks[k].label), norms[k].tokens.front().value,
        norms[k].parameters.back().parameter, norms[k].parameters.back().layers.front().value,
        norms[k].parameters.back().layers.back().value);
  }
  run.write_csv("gradients.csv", csv);
  run.write_report("gradients.json", {{"networks", networks}});
  run.finish({{"V0", {setup.v0.rows(), setup.v0.cols()}}, {"networks", setup.networks.size()}},
             {[&] { return gradients_script(setup.networks, norms); }});
}

}  // namespace widelimit::cli

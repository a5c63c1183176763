#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/output_folder.hpp"
#include "cli/output/result_table.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/run_context.hpp"
#include "cli/sde/sde_lists.hpp"
#include "cli/sde/sde_tables.hpp"
#include "widelimit/covariance_sde/configuration.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::cli {

/// What the command line says to every command of `widelimit sde`.
struct SdeArguments {
  std::filesystem::path config;
  std::filesystem::path out;
  int threads = 0;
  OtherFiles other_files = OtherFiles::refused;
  bool no_pictures = false;
  SampleTimes samples = SampleTimes::last;
};

/// One run: its configuration and where its results go.
class SdeRun {
 public:
  /// `names` are the files besides the pictures. Reads the configuration and opens the folder: what is wrong
  /// with either shows before the work.
  SdeRun(const SdeArguments& arguments, const RunContext& context, const char* command,
         std::vector<std::string> names, std::vector<std::string> pictures);

  /// Puts what was written in place, then the pictures that the scripts draw, in the order of their names; an empty
  /// script draws none.
  void finish(const nlohmann::ordered_json& shapes, const std::vector<std::function<std::string()>>& scripts);

  /// body(), whose errors name the configuration.
  template <typename Body>
  auto with_config(const Body& body) const {
    return naming_errors(arguments_.config.string(), body);
  }

  /// What read_fields(fields) makes of the configuration, or of one point of its lists.
  template <typename Read>
  [[nodiscard]] auto read(const nlohmann::json& point, const Read& read_fields) const {
    ConfigReader fields = reader(point);
    auto setup = read_fields(fields);
    fields.finish(unused_field);
    return setup;
  }

  /// The same of a setup of samples, which take a seed, threads and a stop.
  template <typename Read>
  [[nodiscard]] auto read_setup(const nlohmann::json& point, const Read& read_fields) {
    auto setup = read(point, read_fields);
    origin.seed = setup.options.seed;
    // What was chosen is repeated by the origin, too.
    if constexpr (requires { setup.why_explicit; })
      if (!setup.why_explicit.empty()) origin.configuration["sampling"] = "explicit_weights";
    steer(setup.options);
    return setup;
  }

  /// Gives options the threads and the stop of the command line.
  template <typename Options>
  void steer(Options& options) const {
    options.threads = arguments_.threads;
    options.stop = interrupt_.token();
  }

  /// Of the configuration, or of one point of its lists.
  [[nodiscard]] ConfigReader reader(const nlohmann::json& point) const { return {point, fields_}; }

  /// Writes a JSON file with the origin in it.
  void write_report(const std::string& name, nlohmann::json report);
  /// Writes a CSV file after the origin's lines.
  void write_csv(const std::string& name, const std::string& text);

  nlohmann::json config;
  Origin origin;
  OutputFolder folder;

 private:
  const SdeArguments& arguments_;
  const Interrupt& interrupt_;
  const ConfigFields& fields_;
  RunRecord record_;
  std::vector<std::string> pictures_;
  Gnuplot gnuplot_;
};

/// simulate() or sample_networks() of a setup, with a bar that shows how far it is.
[[nodiscard]] covariance_sde::CovarianceEnsemble sampled_ensemble(covariance_sde::SdeSetup setup);
[[nodiscard]] covariance_sde::CovarianceEnsemble sampled_ensemble(covariance_sde::NetworkSetup setup);

[[nodiscard]] Index last_time(const covariance_sde::CovarianceEnsemble& ensemble);

/// Says on standard error which share of paths no quantile at the horizon speaks of, and why.
void warn_of_stopped(const std::string& what, const covariance_sde::CovarianceEnsemble& ensemble);

/// NumericalError of `command` that says what became of all paths, unless one ran to the horizon.
void require_running(const std::string& command, const std::string& what,
                     const covariance_sde::CovarianceEnsemble& ensemble);

/// The commands; see their --help. In sde_command.cpp, sde_coefficients.cpp,
/// sde_law.cpp, sde_laws.cpp, sde_probes.cpp and sde_stopping.cpp.
void run_sde_simulate(const SdeArguments& arguments, const RunContext& context);
void run_sde_network(const SdeArguments& arguments, const RunContext& context);
void run_sde_compare(const SdeArguments& arguments, const RunContext& context);
void run_sde_stopping_time(const SdeArguments& arguments, const RunContext& context);
void run_sde_explosion(const SdeArguments& arguments, const RunContext& context);
void run_sde_law(const SdeArguments& arguments, const RunContext& context);
void run_sde_flow(const SdeArguments& arguments, const RunContext& context);
void run_sde_output(const SdeArguments& arguments, const RunContext& context);
void run_sde_entropy(const SdeArguments& arguments, const RunContext& context);
void run_sde_gradients(const SdeArguments& arguments, const RunContext& context);
void run_sde_coefficients(const SdeArguments& arguments, const RunContext& context);

}  // namespace widelimit::cli

#include "cli/sde/sde_run.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"

namespace widelimit::cli {

namespace {

std::vector<std::string> all_files(std::vector<std::string> names, const std::vector<std::string>& pictures) {
  names.insert(names.end(), pictures.begin(), pictures.end());
  return names;
}

/// Those of `output` are a network's where the configuration names one.
const ConfigFields& fields_of(std::string_view command, const nlohmann::json& config) {
  return covariance_sde::command_fields(
      command == "output" && config.contains("network") ? "output of networks" : command);
}

nlohmann::json checked_config(const std::filesystem::path& file, const char* command) {
  nlohmann::json config = read_sde_config(file);
  naming_errors(file.string(), [&] {
    if (const FieldReader fields(config, "config");
        std::string_view(command) == "output" && !fields.has("network") && !fields.has("model"))
      fields.fail("network", "expected this field, or model, got none");
    check_fields(config, fields_of(command, config), "config");
  });
  return config;
}

}  // namespace

SdeRun::SdeRun(const SdeArguments& arguments, const RunContext& context, const char* command,
               std::vector<std::string> names, std::vector<std::string> pictures)
    : config(checked_config(arguments.config, command)),  // braces would make a list of it
      origin{fmt::format("sde {}", command), config},
      folder{arguments.out, all_files(std::move(names), pictures), arguments.other_files},
      arguments_{arguments},
      interrupt_{context.interrupt},
      fields_{fields_of(command, config)},
      record_{context.command_line, config, {}},
      pictures_{std::move(pictures)},
      gnuplot_{context.interrupt.token()} {
  folder.check_inputs({{"the configuration", arguments.config}});
}

void SdeRun::finish(const nlohmann::ordered_json& shapes,
                    const std::vector<std::function<std::string()>>& scripts) {
  record_.shapes = shapes;
  folder.commit(record_);
  if (arguments_.no_pictures) return;
  for (std::size_t k = 0; k < scripts.size(); ++k) {
    const std::string script = scripts[k]();
    if (!script.empty()) folder.draw(pictures_[k], script, gnuplot_);
  }
  folder.commit(record_);
}

void SdeRun::write_report(const std::string& name, nlohmann::json report) {
  note_missing(report);
  if (prints_json()) print_result(report);
  report["origin"] = origin_json(origin);
  folder.write(name, report.dump(2) + "\n");
}

void SdeRun::write_csv(const std::string& name, const std::string& text) {
  folder.write(name, origin_comment(origin) + text);
}

covariance_sde::CovarianceEnsemble sampled_ensemble(covariance_sde::SdeSetup setup) {
  ProgressBar bar("paths", Counted::steps, setup.options.threads);
  setup.options.progress = [&bar](std::ptrdiff_t done, std::ptrdiff_t all) { bar.show(done, all); };
  return simulate(setup.model, setup.v0, setup.options);
}

namespace {

/// Says that a network is drawn with its weights although nobody asked for them, once for all points of a list.
void say_explicit(const covariance_sde::NetworkSetup& setup) {
  static std::string said;
  if (setup.why_explicit.empty() || setup.why_explicit == said) return;
  said = setup.why_explicit;
  print_notice("widelimit: sampling: explicit_weights, because " + said);
}

}  // namespace

covariance_sde::CovarianceEnsemble sampled_ensemble(covariance_sde::NetworkSetup setup) {
  say_explicit(setup);
  ProgressBar bar("networks", Counted::steps, setup.options.threads);
  setup.options.progress = [&bar](std::ptrdiff_t done, std::ptrdiff_t all) { bar.show(done, all); };
  return sample_networks(setup.network, setup.v0, setup.options);
}

Index last_time(const covariance_sde::CovarianceEnsemble& ensemble) {
  return static_cast<Index>(ensemble.times().size()) - 1;
}

namespace {

/// Of a count: "12 %", never in powers of ten.
std::string percent_of(Index part, Index whole) {
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  return percent < 0.01 ? "less than 0.01 %" : fmt::format("{:.3g} %", percent);
}

/// What became of the paths that did not run to the horizon: "3 of 100 paths (3 %) left the bounds of the eigenvalues
/// before the horizon". Empty if all did.
std::string what_stopped(const std::string& what, const covariance_sde::CovarianceEnsemble& ensemble) {
  using covariance_sde::PathEnd;
  const Index paths = ensemble.paths(), infinite = ensemble.count(PathEnd::not_finite),
              left = ensemble.count(PathEnd::above) + ensemble.count(PathEnd::below);
  std::string text;
  if (left > 0)
    text = fmt::format("{} of {} {} ({}) left the bounds of the eigenvalues", left, paths, what,
                       percent_of(left, paths));
  if (infinite > 0 && left > 0)
    text += fmt::format(" and {} ({}) became not finite", infinite, percent_of(infinite, paths));
  else if (infinite > 0)
    text =
        fmt::format("{} of {} {} ({}) became not finite", infinite, paths, what, percent_of(infinite, paths));
  return text.empty() ? text : text + " before the horizon";
}

}  // namespace

void warn_of_stopped(const std::string& what, const covariance_sde::CovarianceEnsemble& ensemble) {
  const std::string stopped = what_stopped(what, ensemble);
  if (!stopped.empty()) warn("{}; they are reported apart, in their last state inside", stopped);
}

void require_running(const std::string& command, const std::string& what,
                     const covariance_sde::CovarianceEnsemble& ensemble) {
  if (ensemble.running_paths(last_time(ensemble)).empty())
    throw NumericalError(fmt::format("{}: {}; take an earlier one", command, what_stopped(what, ensemble)));
}

}  // namespace widelimit::cli

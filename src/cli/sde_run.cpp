#include "cli/sde_run.hpp"

#include <cstdio>
#include <string_view>

#include "cli/sde_fields.hpp"

namespace widelimit::cli {

namespace {

std::vector<std::string> with_picture(std::vector<std::string> names, const std::string& picture) {
  names.push_back(picture);
  return names;
}

/// Of `output`, whose configuration is that of a network where it names one.
std::string_view fields_command(std::string_view command, const nlohmann::json& config) {
  return command == "output" && config.contains("network") ? "output of networks" : command;
}

nlohmann::json checked_config(const std::filesystem::path& file, const char* command) {
  nlohmann::json config = read_sde_config(file);
  naming_errors(file.string(),
                [&] { check_fields(config, sde_fields(fields_command(command, config)), "config"); });
  return config;
}

}  // namespace

SdeRun::SdeRun(const SdeArguments& arguments, const RunContext& context, const char* command,
               std::vector<std::string> names, const std::string& picture)
    : config(checked_config(arguments.config, command)),  // braces would make a list of it
      origin{fmt::format("sde {}", command), config},
      folder{arguments.out, with_picture(std::move(names), picture), arguments.other_files},
      record_{context.command_line, config, {}},
      picture_{picture},
      draws_{!arguments.no_pictures},
      gnuplot_{context.interrupt.token()} {
  folder.check_inputs({{"the configuration", arguments.config}});
}

void SdeRun::write_report(const std::string& name, nlohmann::json report) {
  report["origin"] = origin_json(origin);
  folder.write(name, report.dump(2) + "\n");
}

void SdeRun::write_csv(const std::string& name, const std::string& text) {
  folder.write(name, origin_comment(origin) + text);
}

Index last_time(const covariance_sde::CovarianceEnsemble& ensemble) {
  return static_cast<Index>(ensemble.times().size()) - 1;
}

void warn_of_stopped(const std::string& what, const covariance_sde::CovarianceEnsemble& ensemble) {
  const auto stopped = static_cast<Index>(ensemble.stopped_paths(last_time(ensemble)).size());
  if (stopped == 0) return;
  fmt::print(stderr,
             "widelimit: warning: {} of {} {} ({:.2g} %) left the bounds of the eigenvalues before the "
             "horizon; they are reported apart, in their last state inside\n",
             stopped, ensemble.paths(), what,
             100 * static_cast<double>(stopped) / static_cast<double>(ensemble.paths()));
}

}  // namespace widelimit::cli

#include "cli/program/device_tuning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/options/network_argument.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/result_text.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/kernel/device_tuning.hpp"

namespace widelimit::cli {
namespace {

DeviceTuning tuning_of(const std::string& name, const TuningArguments& arguments, const RunContext& context) {
  const Shape shape(arguments.input.begin(), arguments.input.end() - 1);
  const Index channels = arguments.input.back();
  GramOptions options = gram_options(arguments.kernel);
  options.device = device_of(options.device, context);
  options.stop = context.interrupt.token();
  const Network network = network_from_argument(name, shape.size());
  return naming_errors(name, [&] {
    return arguments.kernel.precision == Precision::float32
               ? tune_device<float>(network, shape, channels, options)
               : tune_device<double>(network, shape, channels, options);
  });
}

std::string text_of(const std::string& name, const DeviceTuning& tuning, const TuningArguments& arguments) {
  std::string text = fmt::format("{}, inputs of {}, {}, on {}\n", name, fmt::join(arguments.input, " x "),
                                 to_string(arguments.kernel.precision), tuning.device);
  if (tuning.forms.empty()) return text + "  one form only: nothing to measure\n";
  for (const TimedForm& timed : tuning.forms)
    fmt::format_to(std::back_inserter(text), "  {:<36} {}{}\n", timed.form,
                   std::isfinite(timed.seconds) ? fmt::format("{:10.4f} ms a pair", 1e3 * timed.seconds)
                                                : "   refused by the device",
                   timed.form == tuning.form ? ", chosen" : "");
  return text + (tuning.kept_in.empty() ? "  not kept\n" : fmt::format("  kept in {}\n", tuning.kept_in));
}

nlohmann::ordered_json json_of(const std::string& name, const DeviceTuning& tuning,
                               const TuningArguments& arguments) {
  auto forms = nlohmann::ordered_json::array();
  for (const TimedForm& timed : tuning.forms)
    forms.push_back({{"form", timed.form},
                     {"seconds", std::isfinite(timed.seconds) ? nlohmann::ordered_json(timed.seconds)
                                                              : nlohmann::ordered_json()}});
  return {{"network", name},
          {"input", arguments.input},
          {"precision", to_string(arguments.kernel.precision)},
          {"device", tuning.device},
          {"form", tuning.form},
          {"kept_in", tuning.kept_in},
          {"forms", forms}};
}

}  // namespace

void add_tuning_options(CLI::App& command, TuningArguments& arguments) {
  CLI::Option* const tune = command.add_flag(
      "--tune", arguments.tunes,
      "Measure the forms in which --device evaluates planes of each NETWORK, print their times, and keep the "
      "fastest for later runs");
  add_value(command, "network", arguments.networks,
            "Networks to tune for, as gram takes them [conv-gap:depth=8 conv-flatten:depth=8 struct]",
            "NETWORK")
      ->needs(tune);
  add_value(command, "--input", arguments.input,
            "Shape of an input as it lies in an array: spatial sizes, then channels [32,32,3]",
            whole_number<Index>(1), "S,...,C")
      ->delimiter(',')
      ->needs(tune);
  add_kernel_options(command, arguments.kernel);
  for (const char* option : {"--kernel", "--precision", "--threads", "--device", "--exact-attention"})
    command.get_option(option)->needs(tune);
  command.get_option("--device")
      ->description("The device to tune: gpu, or part of its name or its platform's, as listed [gpu]");
}

void tune_devices(const TuningArguments& arguments, bool as_json, const RunContext& context) {
  auto all = nlohmann::ordered_json::array();
  for (const std::string& name : arguments.networks) {
    const DeviceTuning tuning = tuning_of(name, arguments, context);
    if (as_json)
      all.push_back(json_of(name, tuning, arguments));
    else
      print_text(stdout, text_of(name, tuning, arguments));
  }
  if (as_json) print_document(nlohmann::ordered_json{{"tuned", all}}.dump(2) + "\n");
}

}  // namespace widelimit::cli

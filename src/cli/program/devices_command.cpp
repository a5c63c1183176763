#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "cli/program/device_tuning.hpp"
#include "cli/program/machine_facts.hpp"
#include "widelimit/kernel/devices.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

std::string types_of(const DeviceDescription& device) {
  return device.has_double ? "float, double" : "float";
}

std::string as_text(const std::vector<DeviceDescription>& devices,
                    const std::vector<PlatformDescription>& platforms) {
  std::string text;
  for (const DeviceDescription& device : devices) {
    fmt::format_to(std::back_inserter(text), "{}\n", visible_text(device.name));
    const auto line = [&](const char* name, const std::string& value) {
      fmt::format_to(std::back_inserter(text), "  {:<14} {}\n", name, visible_text(value));
    };
    if (!device.is_available) line("not available", device.problem);
    line("platform", device.platform);
    line("driver", device.driver);
    line("kind", device.is_gpu ? "GPU" : "CPU or other");
    line("types", types_of(device));
    line("memory",
         fmt::format("{:.1f} GiB, {} KiB for each work-group",
                     static_cast<double>(device.memory_bytes) / 0x1p30, device.local_memory_bytes / 1024));
    line("units", std::to_string(device.units));
  }
  if (devices.empty()) text += "no device but the CPU engine\n";
  if (!platforms.empty()) text += "platforms\n";
  for (const PlatformDescription& platform : platforms)
    fmt::format_to(std::back_inserter(text), "  {}\n", visible_text(description_of(platform)));
  const std::string missing = missing_for_devices();
  if (!missing.empty()) fmt::format_to(std::back_inserter(text), "missing: {}\n", missing);
  return text;
}

std::string as_json(const std::vector<DeviceDescription>& devices,
                    const std::vector<PlatformDescription>& platforms) {
  auto all = nlohmann::ordered_json::array();
  for (const DeviceDescription& device : devices)
    all.push_back({{"name", device.name},
                   {"platform", device.platform},
                   {"driver", device.driver},
                   {"is_gpu", device.is_gpu},
                   {"is_available", device.is_available},
                   {"problem", device.problem},
                   {"has_double", device.has_double},
                   {"memory_bytes", device.memory_bytes},
                   {"local_memory_bytes", device.local_memory_bytes},
                   {"units", device.units}});
  auto drivers = nlohmann::ordered_json::array();
  for (const PlatformDescription& platform : platforms)
    drivers.push_back({{"name", platform.name},
                       {"version", platform.version},
                       {"devices", platform.devices},
                       {"problem", platform.problem}});
  const nlohmann::ordered_json document{
      {"devices", all}, {"platforms", drivers}, {"missing", missing_for_devices()}};
  return document.dump(2) + "\n";
}

void fill_devices_command(CLI::App& command, const RunContext& context) {
  auto json = std::make_shared<bool>(false);
  auto tuning = std::make_shared<TuningArguments>();
  command.add_flag("--json", *json, "Write it as JSON");
  add_tuning_options(command, *tuning);
  command.footer(
      "Devices are those of OpenCL.\n"
      "Example:\n"
      "  widelimit devices --tune conv-gap:depth=8 --input 32,32,3 --device gpu");
  command.callback([json, tuning, &context] {
    if (tuning->tunes) return tune_devices(*tuning, *json, context);
    const std::vector<DeviceDescription> all = devices();
    const std::vector<PlatformDescription> platforms = device_platforms();
    if (*json)
      print_document(as_json(all, platforms));
    else
      print_text(stdout, as_text(all, platforms));
  });
}

}  // namespace

const Command devices_command{"devices",
                              "Lists the devices on which kernels can be computed (--device), their "
                              "platforms, and what is missing for them; tunes them",
                              fill_devices_command};

}  // namespace widelimit::cli

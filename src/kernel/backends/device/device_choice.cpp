#include "kernel/backends/device/device_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "widelimit/kernel/devices.hpp"

namespace widelimit {
namespace {

std::string in_lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

bool answers_to(const opencl::Device& device, const std::string& choice) {
  if (choice == "gpu") return device.is_gpu;
  const auto has = [&](const std::string& name) {
    return in_lower_case(name).find(choice) != std::string::npos;
  };
  // PoCL's platform is named "Portable Computing Language".
  return has(device.name) || has(device.platform) ||
         (choice == "pocl" && device.platform == "Portable Computing Language");
}

std::string names(const std::vector<opencl::Device>& devices) {
  std::string text;
  for (const opencl::Device& device : devices)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", device.name, device.platform);
  return text;
}

/// A choice may end in ":" and the number of one of several devices that answer to what stands before it.
struct NumberedChoice {
  std::string name;
  std::optional<std::size_t> number;

  explicit NumberedChoice(const std::string& choice) : name{in_lower_case(choice)} {
    const std::size_t colon = name.rfind(':');
    if (colon == std::string::npos || colon + 1 == name.size()) return;
    std::size_t parsed = 0;
    const char *begin = name.data() + colon + 1, *end = name.data() + name.size();
    if (std::from_chars(begin, end, parsed).ptr != end) return;
    number = parsed;
    name.resize(colon);
  }
};

[[noreturn]] void throw_no_device(const std::vector<opencl::Device>& devices, const std::string& choice) {
  const std::string problem = opencl::problem();
  const std::string there = devices.empty() ? "there is none" : "there is " + names(devices);
  throw DeviceError(
      fmt::format("device: expected a device that answers to \"{}\", but {}{}{}; `cpu` computes without",
                  choice, there, problem.empty() ? "" : ": ", problem));
}

}  // namespace

const opencl::Device& chosen_device(const std::vector<opencl::Device>& devices, const std::string& choice) {
  const NumberedChoice wanted(choice);
  std::vector<const opencl::Device*> answering;
  for (const opencl::Device& device : devices)
    if (answers_to(device, wanted.name)) answering.push_back(&device);
  if (wanted.number ? *wanted.number >= answering.size() : answering.empty())
    throw_no_device(devices, choice);
  if (wanted.number) return *answering[*wanted.number];
  if (answering.size() == 1) return *answering.front();
  std::string matches;
  for (std::size_t i = 0; i < answering.size(); ++i)
    matches += fmt::format("{}{}:{} ({}, {})", i == 0 ? "" : ", ", wanted.name, i, answering[i]->name,
                           answering[i]->platform);
  throw DeviceError(
      fmt::format("device: several devices answer to \"{}\"; choose one of {}", choice, matches));
}

bool is_cpu(const std::string& choice) { return choice.empty() || in_lower_case(choice) == "cpu"; }

std::shared_ptr<opencl::Session> open_device(const std::string& choice) {
  const std::vector<opencl::Device> devices = opencl::list_devices();
  // Drivers are loaded by now, so that at the end of the process sessions go before what drivers keep of their own.
  static std::mutex opening;
  static std::map<cl_device_id, std::shared_ptr<opencl::Session>> sessions;
  const opencl::Device& found = chosen_device(devices, choice);
  if (!found.is_available)
    throw DeviceError(fmt::format("device: {} is not available, or has no compiler", found.name));
  const std::scoped_lock lock(opening);
  auto& session = sessions[found.id];
  if (session == nullptr) session = std::make_shared<opencl::Session>(found);
  return session;
}

std::vector<DeviceDescription> devices() {
  std::vector<DeviceDescription> all;
  for (const opencl::Device& device : opencl::list_devices())
    all.push_back({.name = device.name,
                   .platform = device.platform,
                   .driver = device.driver,
                   .is_gpu = device.is_gpu,
                   .is_available = device.is_available,
                   .has_double = device.has_double,
                   .memory_bytes = device.memory,
                   .local_memory_bytes = device.local_memory,
                   .units = static_cast<int>(device.units)});
  return all;
}

std::string device_in_full(const std::string& choice) {
  if (is_cpu(choice)) return {};
  const opencl::Device& device = open_device(choice)->device();
  return fmt::format("{}, {}, driver {}", device.name, device.platform, device.driver);
}

void require_cpu(const std::string& choice, const char* what) {
  if (!is_cpu(choice))
    throw DeviceError(
        fmt::format("device: {} are computed on the CPU only; choose the device cpu, got {}", what, choice));
}

std::string missing_for_devices() { return opencl::problem(); }

}  // namespace widelimit

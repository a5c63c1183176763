#include "kernel/backends/device/device_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
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

/// A choice may end in ":" and the number of one of several devices that answer to what stands before it, or "all".
struct NumberedChoice {
  std::string name;
  std::optional<std::size_t> number;
  bool is_all = false;

  explicit NumberedChoice(const std::string& choice) : name{in_lower_case(choice)} {
    const std::size_t colon = name.rfind(':');
    if (colon == std::string::npos || colon + 1 == name.size()) return;
    if (name.substr(colon + 1) == "all") {
      is_all = true;
      name.resize(colon);
      return;
    }
    std::size_t parsed = 0;
    const char *begin = name.data() + colon + 1, *end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(begin, end, parsed);
    if (stop != end) return;
    // A number beyond the type is that of no device either.
    number = error == std::errc{} ? parsed : std::numeric_limits<std::size_t>::max();
    name.resize(colon);
  }
};

[[noreturn]] void throw_no_device(const std::vector<opencl::Device>& devices, const std::string& choice) {
  const std::string problem = opencl::problems();
  const std::string there = devices.empty() ? "there is none" : "there is " + names(devices);
  throw DeviceError(
      fmt::format("device: expected a device that answers to \"{}\", but {}{}{}; `cpu` computes without",
                  choice, there, problem.empty() ? "" : ": ", problem));
}

}  // namespace

namespace {

/// What one choice among those of a list names.
std::vector<opencl::Device> answering(const std::vector<opencl::Device>& devices, const std::string& choice) {
  const NumberedChoice wanted(choice);
  std::vector<opencl::Device> found;
  for (const opencl::Device& device : devices)
    if (answers_to(device, wanted.name)) found.push_back(device);
  if (wanted.number ? *wanted.number >= found.size() : found.empty()) throw_no_device(devices, choice);
  if (wanted.number) return {found[*wanted.number]};
  if (wanted.is_all || found.size() == 1) return found;
  std::string matches;
  for (std::size_t i = 0; i < found.size(); ++i)
    matches +=
        fmt::format("{}{}:{} ({}, {})", i == 0 ? "" : ", ", wanted.name, i, found[i].name, found[i].platform);
  throw DeviceError(
      fmt::format("device: several devices answer to \"{}\"; choose one of {}, or several with commas "
                  "between them, or {}:all",
                  choice, matches, wanted.name));
}

/// The choices of a list. Names may have commas of their own.
std::vector<std::string> parts_of(const std::string& choice, const std::vector<opencl::Device>& devices) {
  const std::string name = NumberedChoice(choice).name;
  if (std::any_of(devices.begin(), devices.end(),
                  [&](const auto& device) { return answers_to(device, name); }))
    return {choice};
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= choice.size();) {
    const std::size_t end = std::min(choice.find(',', begin), choice.size());
    parts.push_back(choice.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool are_equal(const opencl::Device& a, const opencl::Device& b) {
  return a.name == b.name && a.platform == b.platform && a.driver == b.driver && a.memory == b.memory &&
         a.local_memory == b.local_memory && a.largest_group == b.largest_group && a.units == b.units;
}

}  // namespace

std::vector<opencl::Device> chosen_devices(const std::vector<opencl::Device>& devices,
                                           const std::string& choice) {
  std::vector<opencl::Device> chosen;
  const std::vector<std::string> parts = parts_of(choice, devices);
  for (const std::string& part : parts) {
    if (parts.size() > 1 && (is_cpu(part) || part.find_first_not_of(' ') == std::string::npos))
      throw DeviceError(
          fmt::format("device: expected devices with commas between them, as gpu:0,gpu:1, got \"{}\"; the "
                      "CPU shares with none",
                      choice));
    for (const opencl::Device& device : answering(devices, part)) {
      if (std::any_of(chosen.begin(), chosen.end(), [&](const auto& other) { return other.id == device.id; }))
        throw DeviceError(fmt::format("device: \"{}\" names {} twice", choice, device.name));
      chosen.push_back(device);
    }
  }
  for (const opencl::Device& device : chosen)
    if (!are_equal(device, chosen.front()))
      throw DeviceError(
          fmt::format("device: \"{}\" names {} and {}: devices share tiles if they are equal, so that it "
                      "makes no difference which "
                      "computes one; choose one of them",
                      choice, chosen.front().name, device.name));
  return chosen;
}

bool is_cpu(const std::string& choice) { return choice.empty() || in_lower_case(choice) == "cpu"; }

std::vector<std::shared_ptr<opencl::Session>> open_devices(const std::string& choice) {
  const std::vector<opencl::Device> devices = opencl::list_devices();
  // Drivers are loaded by now, so that at the end of the process sessions go before what drivers keep of their own.
  static std::mutex opening;
  static std::map<cl_device_id, std::shared_ptr<opencl::Session>> sessions;
  std::vector<std::shared_ptr<opencl::Session>> opened;
  for (const opencl::Device& found : chosen_devices(devices, choice)) {
    if (!found.is_available)
      throw DeviceError(fmt::format("device: {} is not available: {}", found.name, found.problem));
    const std::scoped_lock lock(opening);
    auto& session = sessions[found.id];
    if (session == nullptr) session = std::make_shared<opencl::Session>(found);
    opened.push_back(session);
  }
  return opened;
}

std::shared_ptr<opencl::Session> open_device(const std::string& choice, const char* what) {
  const std::vector<std::shared_ptr<opencl::Session>> opened = open_devices(choice);
  if (opened.size() > 1)
    throw DeviceError(fmt::format("device: several devices do not share {}; choose one, got {} by \"{}\"",
                                  what, opened.size(), choice));
  return opened.front();
}

std::vector<DeviceDescription> devices() {
  std::vector<DeviceDescription> all;
  for (const opencl::Device& device : opencl::list_devices())
    all.push_back({.name = device.name,
                   .platform = device.platform,
                   .driver = device.driver,
                   .is_gpu = device.is_gpu,
                   .is_available = device.is_available,
                   .problem = device.problem,
                   .has_double = device.has_double,
                   .memory_bytes = device.memory,
                   .local_memory_bytes = device.local_memory,
                   .units = static_cast<int>(device.units)});
  return all;
}

std::vector<PlatformDescription> device_platforms() {
  std::vector<PlatformDescription> all;
  for (const opencl::Platform& platform : opencl::list_platforms())
    all.push_back({.name = platform.name,
                   .version = platform.version,
                   .devices = static_cast<int>(platform.devices.size()),
                   .problem = platform.problem});
  return all;
}

std::string device_in_full(const std::string& choice) {
  if (is_cpu(choice)) return {};
  // Equal devices that share tiles make what one of them makes.
  const std::vector<std::shared_ptr<opencl::Session>> opened = open_devices(choice);
  const opencl::Device& device = opened.front()->device();
  return fmt::format("{}, {}, driver {}", device.name, device.platform, device.driver);
}

void require_cpu(const std::string& choice, const char* what) {
  if (!is_cpu(choice))
    throw DeviceError(
        fmt::format("device: {} are computed on the CPU only; choose the device cpu, got {}", what, choice));
}

std::string device_in_turn(const std::string& choice, int turn) {
  if (is_cpu(choice)) return choice;
  const std::vector<opencl::Device> all = opencl::list_devices(), chosen = chosen_devices(all, choice);
  if (chosen.size() == 1) return choice;
  const opencl::Device& own = chosen[static_cast<std::size_t>(turn) % chosen.size()];
  // Its name and its number among those that answer to it.
  std::size_t number = 0;
  for (const opencl::Device& device : all) {
    if (device.id == own.id) break;
    if (answers_to(device, in_lower_case(own.name))) ++number;
  }
  return fmt::format("{}:{}", own.name, number);
}

std::string missing_for_devices() { return opencl::problem(); }

}  // namespace widelimit

// Which device a choice names, of devices that need not be there.
#include "kernel/backends/device/device_choice.hpp"

#include <doctest/doctest.h>

#include "support/error_message.hpp"
#include "widelimit/device_error.hpp"

namespace widelimit::testing::device_choice_test {
namespace {

opencl::Device device(const char* name, const char* platform, bool is_gpu) {
  opencl::Device made{};
  made.name = name;
  made.platform = platform;
  made.is_gpu = is_gpu;
  return made;
}

TEST_CASE("a choice names one device, or the error lists those that answer") {
  const std::vector<opencl::Device> all{
      device("AMD Radeon", "AMD", true), device("H200", "NVIDIA CUDA", true),
      device("H200", "NVIDIA CUDA", true), device("pthread-Intel", "Portable Computing Language", false)};
  const auto number = [&](const char* choice) { return &chosen_device(all, choice) - all.data(); };
  CHECK(number("radeon") == 0);
  CHECK(number("PoCL") == 3);
  CHECK(number("h200:0") == 1);
  CHECK(number("NVIDIA:1") == 2);
  CHECK(number("gpu:2") == 2);
  CHECK(number("pocl:0") == 3);
  const auto error = [&](const char* choice) {
    return error_message<DeviceError>([&] { static_cast<void>(chosen_device(all, choice)); });
  };
  CHECK(error("H200").find("choose one of h200:0 (H200, NVIDIA CUDA), h200:1 (H200, NVIDIA CUDA)") !=
        std::string::npos);
  CHECK(
      error("gpu").find("several devices answer to \"gpu\"; choose one of gpu:0 (AMD Radeon, AMD), gpu:1") !=
      std::string::npos);
  CHECK(error("gpu:3").find("expected a device that answers to \"gpu:3\"") != std::string::npos);
  CHECK(error("gpu:x").find("expected a device that answers to \"gpu:x\"") != std::string::npos);
  CHECK(error("").find("several devices answer") != std::string::npos);
}

TEST_CASE("errors of a device name it, and the layer at which they happened") {
  const std::string name = open_device("pocl")->device().name;
  const std::string message = error_message<DeviceError>([] {
    open_device("pocl")->naming("layers[2] (relu)",
                                [] { throw DeviceError("device: running a kernel: out of resources"); });
  });
  CHECK(message == "device: " + name + ", at layers[2] (relu): running a kernel: out of resources");
}

}  // namespace
}  // namespace widelimit::testing::device_choice_test

// Which device a choice names, of devices that need not be there.
#include "kernel/backends/device/device_choice.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "support/error_message.hpp"
#include "widelimit/device_error.hpp"
#include "widelimit/kernel/devices.hpp"

namespace widelimit::testing::device_choice_test {
namespace {

opencl::Device device(const char* name, const char* platform, bool is_gpu) {
  static std::uintptr_t made_before = 0;
  opencl::Device made{};
  made.id = reinterpret_cast<cl_device_id>(++made_before);
  made.name = name;
  made.platform = platform;
  made.is_gpu = is_gpu;
  return made;
}

TEST_CASE("a choice names one device, or the error lists those that answer") {
  const std::vector<opencl::Device> all{
      device("AMD Radeon", "AMD", true), device("H200", "NVIDIA CUDA", true),
      device("H200", "NVIDIA CUDA", true), device("pthread-Intel", "Portable Computing Language", false)};
  const auto numbers = [&](const char* choice) {
    std::vector<int> found;
    for (const opencl::Device& one : chosen_devices(all, choice))
      for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].id == one.id) found.push_back(static_cast<int>(i));
    return found;
  };
  using Numbers = std::vector<int>;
  CHECK(numbers("radeon") == Numbers{0});
  CHECK(numbers("PoCL") == Numbers{3});
  CHECK(numbers("h200:0") == Numbers{1});
  CHECK(numbers("NVIDIA:1") == Numbers{2});
  CHECK(numbers("gpu:2") == Numbers{2});
  CHECK(numbers("pocl:0") == Numbers{3});
  const auto error = [&](const char* choice) {
    return error_message<DeviceError>([&] { static_cast<void>(chosen_devices(all, choice)); });
  };
  // Several that share tiles.
  CHECK(numbers("h200:all") == Numbers{1, 2});
  CHECK(numbers("gpu:2,NVIDIA:0") == Numbers{2, 1});
  CHECK(numbers("pocl:all") == Numbers{3});
  const std::vector<opencl::Device> of_mesa{device("Radeon (gfx1030, LLVM 15)", "rusticl", true),
                                            device("Radeon (gfx1030, LLVM 15)", "rusticl", true)};
  CHECK(chosen_devices(of_mesa, "radeon (gfx1030, llvm 15):1").at(0).id == of_mesa[1].id);
  CHECK(chosen_devices(of_mesa, "Radeon (gfx1030, LLVM 15):all").size() == 2);
  CHECK(error("gpu:1,h200:0") == "device: \"gpu:1,h200:0\" names H200 twice");
  CHECK(error("gpu:all").find("names AMD Radeon and H200: devices share tiles if they are equal") !=
        std::string::npos);
  CHECK(error("radeon,pocl").find("devices share tiles if they are equal") != std::string::npos);
  for (const char* choice : {"cpu,gpu:1", "gpu:1,", ",gpu:1", "gpu:1,,gpu:2"})
    CHECK(error(choice).find("expected devices with commas between them, as gpu:0,gpu:1") !=
          std::string::npos);
  CHECK(error("radeon,nothing").find("expected a device that answers to \"nothing\"") != std::string::npos);
  CHECK(error("nothing:all").find("expected a device that answers to \"nothing:all\"") != std::string::npos);
  CHECK(error("H200").find("choose one of h200:0 (H200, NVIDIA CUDA), h200:1 (H200, NVIDIA CUDA)") !=
        std::string::npos);
  CHECK(
      error("gpu").find("several devices answer to \"gpu\"; choose one of gpu:0 (AMD Radeon, AMD), gpu:1") !=
      std::string::npos);
  CHECK(error("gpu:3").find("expected a device that answers to \"gpu:3\"") != std::string::npos);
  CHECK(error("gpu:x").find("expected a device that answers to \"gpu:x\"") != std::string::npos);
  CHECK(error("").find("several devices answer") != std::string::npos);
}

TEST_CASE("one device, and the CPU, are everybody's turn") {
  for (const int turn : {0, 1, 5}) {
    CHECK(device_in_turn("pocl", turn) == "pocl");
    CHECK(device_in_turn("pocl:all", turn) == "pocl:all");
    CHECK(device_in_turn("cpu", turn) == "cpu");
    CHECK(device_in_turn("", turn) == "");
  }
  CHECK_THROWS_AS(static_cast<void>(device_in_turn("nothing:all", 1)), DeviceError);
}

TEST_CASE("errors of a device name it, and the layer at which they happened") {
  const std::string name = open_device("pocl", "names")->device().name;
  const std::string message = error_message<DeviceError>([] {
    open_device("pocl", "names")->naming("layers[2] (relu)", [] {
      throw DeviceError("device: running a kernel: out of resources");
    });
  });
  CHECK(message == "device: " + name + ", at layers[2] (relu): running a kernel: out of resources");
}

}  // namespace
}  // namespace widelimit::testing::device_choice_test

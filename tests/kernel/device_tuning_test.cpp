#include "widelimit/kernel/device_tuning.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "data/temporary_folder.hpp"
#include "kernel/backends/device/device_comparison.hpp"
#include "support/environment_variable.hpp"
#include "support/error_message.hpp"
#include "widelimit/kernel/explain.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::device_tuning_test {
namespace {

Network network_of(const std::string& readout) {
  return parse_network(R"({"widelimit": 1, "layers": [
      {"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, )" +
                       readout + "]}");
}

TEST_CASE("tune_device: all forms that are searched, the fastest of which is found again") {
  const TemporaryFolder folder;
  const EnvironmentVariable cache("WIDELIMIT_CACHE", folder.path().string()),
      forced("WIDELIMIT_DEVICE_FORM", "planes=2");
  const Network network = network_of(R"({"layer": "global_average_pool"})");
  const DeviceTuning tuning = tune_device<float>(network, {6, 6}, 2, on_device());
  CHECK_FALSE(tuning.device.empty());
  REQUIRE(tuning.forms.size() >= 6);
  CHECK(tuning.forms.size() <= 12);
  CHECK(tuning.forms.front().form == "items=64,planes=1,windows=loops");
  double chosen = 0;
  for (const TimedForm& timed : tuning.forms) {
    CHECK(timed.seconds > 0);
    if (timed.form == tuning.form) chosen = timed.seconds;
  }
  CHECK(chosen > 0);
  CHECK(std::filesystem::path(tuning.kept_in).parent_path() == folder.path());
  const EnvironmentVariable tuned("WIDELIMIT_DEVICE_FORM", "tuned");
  const auto explained = [&](const Network& of, Kernels kernels) {
    return explain<float>(of, {6, 6}, 2, on_device(kernels), 0).device;
  };
  CHECK(explained(network, Kernels::both).find("planes by " + tuning.form + " (remembered)") !=
        std::string::npos);
  CHECK(explained(network, Kernels::nngp).find("(remembered)") == std::string::npos);
  CHECK(explained(network_of(R"({"layer": "flatten"})"), Kernels::both).find("(remembered)") ==
        std::string::npos);
}

TEST_CASE("tune_device: networks of one form, the CPU, and inputs that are none") {
  const Network vectors =
      parse_network(R"({"widelimit": 1, "layers": [{"layer": "dense"}, {"layer": "relu"}]})");
  const DeviceTuning tuning = tune_device<double>(vectors, {}, 3, on_device());
  CHECK(tuning.form.empty());
  CHECK(tuning.forms.empty());
  CHECK(tuning.kept_in.empty());
  const auto message = error_message<DeviceError>([&] { return tune_device<float>(vectors, {}, 3, {}); });
  CHECK(message.find("expected a device, got the CPU") != std::string::npos);
  CHECK_THROWS_AS(static_cast<void>(tune_device<float>(vectors, {}, 0, on_device())), ArgumentError);
}

}  // namespace
}  // namespace widelimit::testing::device_tuning_test

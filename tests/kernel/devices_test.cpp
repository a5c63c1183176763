// What devices there are, and which of them a choice names. PoCL's is there wherever these tests run.
#include "widelimit/kernel/devices.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "support/error_message.hpp"

using namespace widelimit;
using widelimit::testing::error_message;

TEST_CASE("devices: PoCL's is listed with what it has") {
  const auto all = devices();
  const auto pocl = std::ranges::find_if(
      all, [](const DeviceDescription& device) { return device.platform == "Portable Computing Language"; });
  REQUIRE(pocl != all.end());
  CHECK(pocl->is_available);
  CHECK(pocl->has_double);
  CHECK(!pocl->name.empty());
  CHECK(pocl->memory_bytes > 0);
  CHECK(pocl->local_memory_bytes > 0);
  CHECK(pocl->units > 0);
}

TEST_CASE("devices: a choice is a part of a name, case aside") {
  CHECK(device_in_full("").empty());
  CHECK(device_in_full("CPU").empty());
  CHECK(device_in_full("pocl").find("Portable Computing Language") != std::string::npos);
  CHECK(device_in_full("portable COMPUTING") == device_in_full("pocl"));
  const std::string missing = error_message<DeviceError>([] { return device_in_full("no such device"); });
  CHECK(missing.find("\"no such device\"") != std::string::npos);
  CHECK(missing.find("Portable Computing Language") != std::string::npos);
}

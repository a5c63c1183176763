// What devices there are, and which of them a choice names. PoCL's is there wherever these tests run.
#include "widelimit/kernel/devices.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

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

TEST_CASE("devices: platforms are listed with how many they have") {
  const auto all = device_platforms();
  const auto pocl = std::ranges::find_if(all, [](const PlatformDescription& platform) {
    return platform.name == "Portable Computing Language";
  });
  REQUIRE(pocl != all.end());
  CHECK(pocl->devices > 0);
  CHECK(pocl->problem.empty());
  CHECK(!pocl->version.empty());
}

namespace {

/// What a forked process is told that calls this; "no end" if it has to be ended after some seconds.
template <typename Call>
std::string told_in_fork(const Call& call) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);
    const std::string told = error_message<DeviceError>(call);
    const bool is_written = write(ends[1], told.data(), told.size()) == static_cast<ssize_t>(told.size());
    _exit(is_written ? 0 : 1);
  }
  close(ends[1]);
  std::string told;
  std::array<char, 4096> part{};
  for (ssize_t count = 0; (count = read(ends[0], part.data(), part.size())) > 0;)
    told.append(part.data(), static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? told : "no end";
}

}  // namespace

TEST_CASE("devices: a process that was forked from one that had opened them is told so, and does not wait") {
  REQUIRE(!devices().empty());
  const auto checks = {told_in_fork([] { return devices(); }),
                       told_in_fork([] { return device_platforms(); }),
                       told_in_fork([] { return device_in_full("pocl"); }),
                       told_in_fork([] { return missing_for_devices(); })};
  for (const std::string& told : checks) {
    CHECK(told.find("this process was forked from one that had opened the devices") != std::string::npos);
    CHECK(told.find("spawn") != std::string::npos);
  }
  // The CPU needs none.
  CHECK(told_in_fork([] { return device_in_full("cpu"); }) == "no error");
  CHECK(!devices().empty());
}

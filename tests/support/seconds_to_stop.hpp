#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <stop_token>
#include <thread>

#include "widelimit/error.hpp"

namespace widelimit::testing {

/// Seconds that body(stop_token), which takes minutes, goes on after it was asked to stop; CHECKs that it ends by
/// Cancelled with a message that contains `message`.
template <typename Body>
double seconds_to_stop(const Body& body, const char* message = "") {
  using Clock = std::chrono::steady_clock;
  std::stop_source source;
  Clock::time_point asked;
  const std::jthread asking([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    asked = Clock::now();
    source.request_stop();
  });
  CHECK_THROWS_WITH_AS(static_cast<void>(body(source.get_token())), doctest::Contains(message), Cancelled);
  return std::chrono::duration<double>(Clock::now() - asked).count();
}

}  // namespace widelimit::testing

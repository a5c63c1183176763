#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <stop_token>
#include <thread>

#include "widelimit/error.hpp"

namespace widelimit::testing {

/// Seconds that body(stop_token), which takes minutes, goes on after it was asked to stop: those of the clock, or those
/// of work by all its threads where others keep the machine busy. CHECKs that it ends by Cancelled with a message that
/// contains `message`.
template <typename Body>
double seconds_to_stop(const Body& body, const char* message = "") {
  using Clock = std::chrono::steady_clock;
  std::stop_source source;
  Clock::time_point asked;
  std::clock_t worked = 0;
  const std::jthread asking([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    asked = Clock::now();
    worked = std::clock();
    source.request_stop();
  });
  CHECK_THROWS_WITH_AS(static_cast<void>(body(source.get_token())), doctest::Contains(message), Cancelled);
  const double of_work = static_cast<double>(std::clock() - worked) / CLOCKS_PER_SEC;
  return std::min(of_work, std::chrono::duration<double>(Clock::now() - asked).count());
}

}  // namespace widelimit::testing

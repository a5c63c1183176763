#include "widelimit/stop_request.hpp"

#include <doctest/doctest.h>

#include <stop_token>
#include <thread>

using widelimit::Cancelled;
using widelimit::StopRequest;

TEST_CASE("stop request: without a token it never asks") {
  const StopRequest never;
  CHECK_NOTHROW(never.check());
}

TEST_CASE("stop request: check() throws from the moment that a stop is asked for, of copies too") {
  std::stop_source source;
  const std::stop_token token = source.get_token();
  const StopRequest request(token);
  const StopRequest copy = request;  // NOLINT(performance-unnecessary-copy-initialization)
  CHECK_NOTHROW(request.check());
  CHECK_NOTHROW(copy.check());
  source.request_stop();
  CHECK_THROWS_WITH_AS(request.check(), "stopped on request", Cancelled);
  CHECK_THROWS_WITH_AS(copy.check(), "stopped on request", Cancelled);
  CHECK_THROWS_AS(request.check(), Cancelled);
}

TEST_CASE("stop request: a token that no source belongs to never asks") {
  const std::stop_token token;
  const StopRequest request(token);
  CHECK_NOTHROW(request.check());
}

TEST_CASE("stop request: a thread that only checks ends when another asks") {
  bool stopped = false;
  std::jthread worker([&](const std::stop_token& token) {
    const StopRequest request(token);
    try {
      for (;;) request.check();
    } catch (const Cancelled&) {
      stopped = true;
    }
  });
  worker.request_stop();
  worker.join();
  CHECK(stopped);
}

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "covariance_sde/example_covariances.hpp"
#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/covariance_sde/simulate.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;

namespace {

/// Seconds that body(stop), which takes minutes, goes on after it was asked to stop.
template <typename Body>
double seconds_to_stop(const Body& body) {
  using Clock = std::chrono::steady_clock;
  std::stop_source source;
  Clock::time_point asked;
  const std::jthread asking([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    asked = Clock::now();
    source.request_stop();
  });
  CHECK_THROWS_AS(body(source.get_token()), Cancelled);
  return std::chrono::duration<double>(Clock::now() - asked).count();
}

}  // namespace

TEST_CASE("stop: from within the only path") {
  CHECK(seconds_to_stop([](std::stop_token stop) {
          SimulationOptions options;
          options.times = {1};
          options.paths = 1;
          options.max_step = 1e-9;
          options.stop = std::move(stop);
          static_cast<void>(simulate(transformer_model(ResidualWeights::shaped(0.3), 1, {0, -1}),
                                     examples::two_tokens(), options));
        }) < 1);
}

TEST_CASE("stop: from within the only network") {
  for (const NetworkSampling sampling : {NetworkSampling::reduced, NetworkSampling::explicit_weights})
    CHECK(seconds_to_stop([&](std::stop_token stop) {
            NetworkOptions options;
            options.layers = {1'000'000'000};
            options.samples = 1;
            options.sampling = sampling;
            options.stop = std::move(stop);
            static_cast<void>(sample_networks(shaped_attention(100, ResidualWeights::shaped(1e-6), 1),
                                              examples::two_tokens(), options));
          }) < 1);
}

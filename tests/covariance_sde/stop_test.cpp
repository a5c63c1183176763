// A stop that is asked for ends a simulation within its only path or network.
#include <doctest/doctest.h>

#include "covariance_sde/example_covariances.hpp"
#include "support/seconds_to_stop.hpp"
#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/covariance_sde/simulate.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;

using widelimit::testing::seconds_to_stop;

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

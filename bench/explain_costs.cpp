// How right explain() is about time: its estimate beside gram() itself, in processor time of one run, for networks of
// README and docs on images of 8 x 8 and 32 x 32. `explain NETWORK --input` runs images of its own, `--x` those at
// hand. Ends with 1 where an estimate is further off than SHARE (a quarter is promised on an idle machine).
//
//     explain_costs [SECONDS of every gram(), 1] [THREADS, 0: all] [SHARE, 0: none]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "networks.hpp"
#include "processor_time.hpp"
#include "widelimit/data/preprocessing.hpp"
#include "widelimit/data/synthetic_images.hpp"
#include "widelimit/gp/preprocessing.hpp"
#include "widelimit/models/named_networks.hpp"

namespace {

using namespace benchmarks;

/// The generated images that --data sample has, resized and standardised as gp does.
xt::xarray<float> sample_images(Index count, Index side) {
  xt::xarray<float> images = data::generate_synthetic_images(static_cast<std::size_t>(count), 1).images;
  if (side != 32)
    images =
        data::resize_anti_aliased(images, static_cast<std::size_t>(side), static_cast<std::size_t>(side));
  return gp::Preprocessing::fit(gp::PreprocessingKind::pixel, images).apply(images);
}

std::vector<std::pair<std::string, Network>> networks() {
  const auto named = [](const std::string& name, const models::NetworkSettings& options = {}) {
    return models::named_network(name, options);
  };
  return {{"fcn", named("fcn")},
          {"conv-flatten", named("conv-flatten")},
          {"conv-gap", named("conv-gap")},
          {"conv-gap:depth=8", named("conv-gap", {{"depth", 8}})},
          {"conv-lap", named("conv-lap")},
          {"myrtle5", named("myrtle5")},
          {"resnet", named("resnet")},
          {"vanilla", named("vanilla")},
          {"struct", named("struct")},
          {"struct:depth=4", named("struct", {{"depth", 4}})},
          {"residual-attention", named("residual-attention")},
          {"attention-gap", Network({layers::conv({.filter = {3, 3}}), layers::relu(), layers::attention({}),
                                     layers::layer_norm(), layers::flatten(), layers::dense()})}};
}

/// The number of inputs whose Gram matrix takes about so long.
Index inputs_for(const Plan& plan, double seconds) {
  Index n = 8;
  while (n < 4096 && plan.of_gram(2 * n).processor_seconds < seconds) n *= 2;
  return n;
}

/// The larger of ratio and 1 / ratio, with the direction kept for people.
double deviation(double ratio) { return std::abs(std::log(ratio)); }

struct Row {
  double by_shape;
  double by_inputs;
};

Row compare(const std::string& name, const Network& network, Index side, double seconds, int threads) {
  const GramOptions options{.threads = threads};
  const Plan first = explain<float>(network, {side, side}, 3, options, 0.3);
  const Index n = inputs_for(first, seconds);
  const auto x = sample_images(n, side);
  const auto estimate = [&](const Plan& plan) { return plan.of_gram(n).processor_seconds; };
  const Plan by_shape = explain<float>(network, {side, side}, 3, options, 0.5, StepTimes::none, n);
  const double before = processor_seconds([&] { static_cast<void>(gram<float>(network, x, options)); });
  const Plan by_inputs = explain<float>(network, x, options, 0.5);
  const double after = processor_seconds([&] { static_cast<void>(gram<float>(network, x, options)); });
  const double measured = (before + after) / 2;
  const Row row{estimate(by_shape) / measured, estimate(by_inputs) / measured};
  fmt::print(
      "{:<18} {:>2} x {:<2} {:>5} {:>9.3f} {:>9.3f} {:>6.2f} {:>9.3f} {:>6.2f}   pair {:.3g} / {:.3g} ms, "
      "input {:.3g} / {:.3g} ms\n",
      name, side, side, n, measured, estimate(by_shape), row.by_shape, estimate(by_inputs), row.by_inputs,
      1e3 * by_shape.pair.processor_seconds, 1e3 * by_inputs.pair.processor_seconds,
      1e3 * by_shape.input.processor_seconds, 1e3 * by_inputs.input.processor_seconds);
  return row;
}

int run(double seconds, int threads, double share) {
  fmt::print("{:<18} {:>7} {:>5} {:>9} {:>9} {:>6} {:>9} {:>6}\n", "network", "images", "n", "gram s",
             "by shape", "ratio", "by x", "ratio");
  double worst = 0;
  for (const auto& [name, network] : networks())
    for (const Index side : {8, 32}) {
      const Row row = compare(name, network, side, seconds, threads);
      worst = std::max({worst, deviation(row.by_shape), deviation(row.by_inputs)});
    }
  fmt::print("at most {:.0f} % off\n", 100 * (std::exp(worst) - 1));
  return share > 0 && std::exp(worst) > 1 + share ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? std::atof(argv[1]) : 1, argc > 2 ? std::atoi(argv[2]) : 0,
               argc > 3 ? std::atof(argv[3]) : 0);
  } catch (const std::exception& error) {
    fmt::print(stderr, "explain_costs: {}\n", error.what());
    return 1;
  }
}

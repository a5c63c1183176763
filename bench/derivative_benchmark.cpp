// What derivatives of Gram matrices cost against the matrices: processor time of one thread, measured in turns within
// one run: by both batches, and by the first only. Prints a table (docs/derivatives.md).
//
//     derivative_benchmark [NETWORK...]     all without arguments
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "networks.hpp"
#include "processor_time.hpp"
#include "widelimit/kernel/gram_gradient.hpp"
#include "widelimit/kernel/gram_vjp.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace {

using namespace benchmarks;

struct Case {
  std::string name;
  Network network;
  Index inputs;
  std::vector<std::size_t> shape;  ///< Of an input, channels last.
};

/// Of all layers that have weights and stand by themselves.
std::vector<std::string> variances_of(const Network& network) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < network.layers().size(); ++i) {
    const std::string kind = network.layers()[i].kind();
    if (kind == "dense" || kind == "conv") paths.push_back(fmt::format("layers[{}].weight_variance", i));
  }
  return paths;
}

template <typename Scalar>
void run(const Case& to_run) {
  std::vector<std::size_t> dimensions{static_cast<std::size_t>(to_run.inputs)};
  dimensions.insert(dimensions.end(), to_run.shape.begin(), to_run.shape.end());
  xt::random::seed(1);
  const xt::xarray<Scalar> x1 = xt::random::randn<Scalar>(dimensions),
                           x2 = xt::random::randn<Scalar>(dimensions);
  const Inputs<Scalar> first(x1), second(x2);
  const Matrix<Scalar> ones = Matrix<Scalar>::Ones(to_run.inputs, to_run.inputs);
  GramOptions options;
  options.threads = 1;
  RunControl control;
  control.threads = 1;
  double kernels = std::numeric_limits<double>::infinity(), derivatives = kernels, of_first = kernels,
         by_numbers = kernels;
  const KernelCotangents<Scalar> cotangents{ones, ones};
  for (int turn = 0; turn < 3; ++turn) {
    kernels = std::min(
        kernels, processor_seconds([&] { static_cast<void>(gram(to_run.network, first, second, options)); }));
    const auto derive = [&](VjpInputs wanted) {
      return processor_seconds(
          [&] { static_cast<void>(gram_vjp(to_run.network, first, second, cotangents, wanted, control)); });
    };
    derivatives = std::min(derivatives, derive(VjpInputs::both));
    of_first = std::min(of_first, derive(VjpInputs::x1));
    by_numbers = std::min(by_numbers, processor_seconds([&] {
                            static_cast<void>(gram_number_vjp(to_run.network, first, second, cotangents,
                                                              variances_of(to_run.network), control));
                          }));
  }
  fmt::print("{:<16} {:>7} {:>6} {:>10.4f} {:>10.4f} {:>6.1f} {:>8.1f} {:>8.1f}\n", to_run.name,
             sizeof(Scalar) == 4 ? "float" : "double", to_run.inputs, kernels, derivatives,
             derivatives / kernels, of_first / kernels, by_numbers / kernels);
}

/// Convolutions with a nonlinearity each, and global pooling.
Network convolutions(const Layer& nonlinearity) {
  Layers hidden;
  for (int depth = 0; depth < 8; ++depth) {
    hidden.push_back(layers::conv({.filter = {3, 3}, .weight_variance = 2, .bias_variance = 0.01}));
    hidden.push_back(nonlinearity);
  }
  hidden.push_back(layers::global_average_pool());
  hidden.push_back(layers::dense());
  return Network(std::move(hidden));
}

std::vector<Case> all_cases() {
  const auto named = [](const char* name, const models::NetworkSettings& settings) {
    return models::named_network(name, settings);
  };
  return {{"fcn", named("fcn", {{"depth", 5}, {"axes", 0}}), 600, {3072}},
          {"conv-flatten", named("conv-flatten", {{"depth", 8}}), 40, {32, 32, 3}},
          {"conv-gap", named("conv-gap", {{"depth", 8}}), 6, {32, 32, 3}},
          {"conv-gap-8", named("conv-gap", {{"depth", 8}}), 24, {8, 8, 3}},
          {"conv-erf-8", convolutions(layers::erf()), 24, {8, 8, 3}},
          {"conv-gelu-8", convolutions(layers::gelu()), 24, {8, 8, 3}},
          {"struct-8", named("struct", {{"depth", 4}}), 16, {8, 8, 3}},
          {"imdb-cnn-gap", named("imdb-cnn-gap", {}), 24, {60, 50}}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  fmt::print("{:<16} {:>7} {:>6} {:>10} {:>10} {:>6} {:>8} {:>8}\n", "network", "", "inputs", "gram s",
             "vjp s", "ratio", "of first", "numbers");
  for (const Case& to_run : all_cases()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), to_run.name) == wanted.end()) continue;
    run<float>(to_run);
    run<double>(to_run);
  }
}

// Error of sampled softmax attention with 1/sqrt(width) scaling against the number of samples, 2^6 .. 2^14,
// and whether the standard error that the library reports is right.
//
// Two tokens: the softmax is a sigmoid of the difference of two logits, so the exact kernels are its dual
// activation, a two-dimensional Gaussian integral. More tokens: against 2^17 samples drawn with another seed.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <widelimit/layers/attention.hpp>
#include <widelimit/layers/pooling.hpp>
#include <widelimit/numerics/activations.hpp>
#include <widelimit/numerics/random_stream.hpp>

#include "example_support.hpp"

using namespace examples;
namespace layers = widelimit::layers;

namespace {

constexpr double query_key_std = 2;
constexpr std::size_t channels = 8;
using Pair = std::array<xt::xtensor<double, 3>, 2>;  ///< Two inputs [1, tokens, channels].

struct Kernel {
  double nngp;
  double ntk;
};

Network network(std::int64_t samples, std::uint64_t seed) {
  layers::AttentionOptions attention;
  attention.scaling = layers::AttentionScaling::inverse_sqrt_width;
  attention.query_key_std = query_key_std;
  attention.samples = samples;
  attention.seed = seed;
  return Network({layers::attention(attention), layers::flatten()});
}

/// Two random inputs that have half of their variance in common.
Pair random_pair(std::size_t tokens) {
  widelimit::numerics::RandomStream random(1);
  Pair pair;
  for (auto& input : pair) input = xt::xtensor<double, 3>::from_shape({1, tokens, channels});
  for (std::size_t i = 0; i < tokens * channels; ++i) {
    const double common = random.normal();
    for (auto& input : pair) input.data()[i] = (common + random.normal()) / std::sqrt(2.0);
  }
  return pair;
}

/// K_ab of the inputs themselves.
double covariance(const xt::xtensor<double, 3>& x, const xt::xtensor<double, 3>& y, std::size_t a,
                  std::size_t b) {
  double sum = 0;
  for (std::size_t c = 0; c < channels; ++c) sum += x(0, a, c) * y(0, b, c);
  return sum / static_cast<double>(channels);
}

/// Covariance of x_0 - x_1 and y_0 - y_1.
double difference_covariance(const xt::xtensor<double, 3>& x, const xt::xtensor<double, 3>& y) {
  return covariance(x, y, 0, 0) - covariance(x, y, 0, 1) - covariance(x, y, 1, 0) + covariance(x, y, 1, 1);
}

/// The exact kernels of network() for two tokens.
Kernel exact_two_tokens(const Pair& pair) {
  const auto& [x, y] = pair;
  const auto sigmoid = widelimit::numerics::sigmoid();
  const double scale = query_key_std * query_key_std;
  const double difference = difference_covariance(x, y);
  const double same = covariance(x, y, 0, 0) + covariance(x, y, 1, 1);
  const double other = covariance(x, y, 0, 1) + covariance(x, y, 1, 0);
  Kernel kernel{.nngp = 0, .ntk = 0};
  for (std::size_t a = 0; a < 2; ++a) {
    const double k = covariance(x, y, a, a);
    // The weights are s and 1 - s with s = sigmoid of a difference of logits, whose mean is 1/2.
    const auto dual =
        sigmoid->dual(scale * covariance(x, x, a, a) * difference_covariance(x, x),
                      scale * covariance(y, y, a, a) * difference_covariance(y, y), scale * k * difference);
    const double value = same * dual.value + other * (0.5 - dual.value);
    kernel.nngp += value / 2;
    kernel.ntk += value + scale * k * difference * difference * dual.derivative;
  }
  return kernel;
}

struct Estimate {
  Kernel value;
  Kernel standard_error;
};

Estimate sampled(const Pair& pair, std::int64_t samples, std::uint64_t seed, const Settings& settings) {
  GramOptions options;
  options.threads = settings.threads;
  const auto result = gram(network(samples, seed), Inputs<double>(pair[0]), Inputs<double>(pair[1]), options);
  return {.value = {result.nngp(0, 0), result.ntk(0, 0)},
          .standard_error = {result.nngp_error(0, 0), result.ntk_error(0, 0)}};
}

/// Root mean squares over seeds, relative to the exact value.
struct Errors {
  double actual_squares = 0;
  double reported_squares = 0;
  int count = 0;

  void add(double value, double standard_error, double exact) {
    actual_squares += std::pow((value - exact) / exact, 2);
    reported_squares += std::pow(standard_error / exact, 2);
    ++count;
  }
  double actual() const { return std::sqrt(actual_squares / count); }
  double reported() const { return std::sqrt(reported_squares / count); }
};

void measure(const Settings& settings, Csv& table, std::size_t tokens, int seeds) {
  const Pair pair = random_pair(tokens);
  const Kernel exact = tokens == 2
                           ? exact_two_tokens(pair)
                           : sampled(pair, settings.size(1 << 20, 1 << 17), 1'000'000, settings).value;
  fmt::print("{} tokens: {} NNGP {:.8f}, NTK {:.8f}\n", tokens, tokens == 2 ? "exact" : "many samples",
             exact.nngp, exact.ntk);
  for (int log_samples = 6; log_samples <= 14; ++log_samples) {
    const Clock clock;
    const std::int64_t samples = std::int64_t{1} << log_samples;
    Errors nngp, ntk;
    for (int seed = 0; seed < seeds; ++seed) {
      const Estimate estimate = sampled(pair, samples, static_cast<std::uint64_t>(seed), settings);
      nngp.add(estimate.value.nngp, estimate.standard_error.nngp, exact.nngp);
      ntk.add(estimate.value.ntk, estimate.standard_error.ntk, exact.ntk);
    }
    const double milliseconds = 1000 * clock.seconds() / seeds;
    const std::string name = fmt::format("{} tokens", tokens);
    table.row(name, "nngp", samples, nngp.actual(), nngp.reported(), milliseconds);
    table.row(name, "ntk", samples, ntk.actual(), ntk.reported(), milliseconds);
    fmt::print(
        "{:6} samples  NNGP error {:.2e}, reported {:.2e}; NTK error {:.2e}, reported {:.2e}; {:.2f} ms\n",
        samples, nngp.actual(), nngp.reported(), ntk.actual(), ntk.reported(), milliseconds);
    std::fflush(stdout);
  }
}

void draw(const Settings& settings, std::size_t tokens) {
  std::string commands =
      "set multiplot layout 1,2\nset logscale x 2\nset logscale y\nset format y '%.0e'\nset xlabel "
      "'samples'\n"
      "set ylabel 'relative error'\nset key top right\n";
  for (const std::size_t count : {std::size_t{2}, tokens}) {
    commands += fmt::format("set title '{} tokens'\nplot ", count);
    for (const char* kernel : {"nngp", "ntk"}) {
      const std::string rows = fmt::format(
          "'softmax_samples.csv' using (strcol(1) eq '{} tokens' && strcol(2) eq '{}' ? $3 : NaN)", count,
          kernel);
      commands +=
          fmt::format("{}:4 with points pt 7 title '{} error', {}:5 with lines lw 2 title '{} reported', ",
                      rows, kernel, rows, kernel);
    }
    commands += "1/sqrt(x) with lines dt 2 lc 'black' title '1/sqrt(samples)'\n";
  }
  plot(settings, "softmax_samples", commands + "unset multiplot");
}

}  // namespace

int main(int argc, char** argv) {
  ArgumentList arguments{"Error of sampled softmax attention against samples"};
  Settings settings;
  add_arguments(arguments, settings, "softmax_samples");
  std::optional<int> seeds;
  std::size_t tokens = 16;
  arguments.number("--seeds", seeds, "Seeds for two tokens; a quarter of them for more [256; --quick: 64]", 4,
                   100'000);
  arguments.number("--tokens", tokens, "Tokens of the second pair", 3, 1024);
  return run_example(arguments, argc, argv, settings, [&] {
    Csv table(settings, "softmax_samples",
              "tokens,kernel,samples,error,reported standard error,milliseconds");
    const int count = seeds.value_or(settings.size(256, 64));
    measure(settings, table, 2, count);
    measure(settings, table, tokens, count / 4);
    draw(settings, tokens);
    return 0;
  });
}

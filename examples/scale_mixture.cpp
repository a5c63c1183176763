// Figure 1 of arXiv:2006.10540: the output of 1/sqrt(width) attention with one head stays a scale mixture of
// Gaussians however wide the head is; with many heads it becomes Gaussian. Excess kurtosis of the output at
// one position over random networks, and histograms of one head and of the largest number of heads.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <widelimit/finite/finite_network.hpp>
#include <widelimit/layers/activations.hpp>
#include <widelimit/layers/attention.hpp>
#include <widelimit/layers/pooling.hpp>
#include <widelimit/numerics/random_stream.hpp>

#include "attention_networks.hpp"
#include "example_support.hpp"

using namespace examples;
namespace networks = widelimit::finite;

namespace {

constexpr std::size_t tokens = 4;
constexpr std::size_t input_channels = 16;
constexpr Index outputs =
    32;  ///< Channels of the output, alike in distribution; they share a network's scale.

Network attention_network(const std::string& weights) {
  return Network({layers::attention(sqrt_attention(weights)), layers::flatten()});
}

xt::xtensor<double, 3> random_input() {
  widelimit::numerics::RandomStream random(1);
  auto input = xt::xtensor<double, 3>::from_shape({1, tokens, input_channels});
  for (double& number : input) number = random.normal();
  return input;
}

/// Outputs at the first token of `draws` networks, [draws, outputs].
Matrix<double> sampled_outputs(const std::string& weights, Index heads, Index width, Index draws) {
  const auto input = random_input();
  Matrix<double> samples(draws, outputs);
  for (Index k = 0; k < draws; ++k) {
    const networks::FiniteNetwork<double> network(attention_network(weights), {{tokens}, input_channels},
                                                  {.hidden = outputs, .outputs = 1, .layers = {}},
                                                  {.count = heads, .key_width = width, .value_width = width},
                                                  static_cast<std::uint64_t>(k), 1);
    samples.row(k) = network.forward(input).leftCols(outputs);
  }
  return samples;
}

struct Kurtosis {
  double excess;
  double standard_error;
};

/// Fourth moment over squared second, minus 3; its error from leaving out one of 20 groups of networks at a
/// time.
Kurtosis excess_kurtosis(const Matrix<double>& samples) {
  constexpr Index groups = 20;
  const auto excess = [](double second, double fourth) { return fourth / (second * second) - 3; };
  const Matrix<double> squares = samples.cwiseAbs2(), fourths = squares.cwiseAbs2();
  const double second = squares.mean(), fourth = fourths.mean();
  const auto count = static_cast<double>(samples.rows());
  double sum = 0, sum_of_squares = 0;
  for (Index g = 0; g < groups; ++g) {
    const Index first = g * samples.rows() / groups, size = (g + 1) * samples.rows() / groups - first;
    const auto left_out = static_cast<double>(size);
    const double value =
        excess((second * count - squares.middleRows(first, size).mean() * left_out) / (count - left_out),
               (fourth * count - fourths.middleRows(first, size).mean() * left_out) / (count - left_out));
    sum += value;
    sum_of_squares += value * value;
  }
  const double variance = std::max(sum_of_squares / groups - sum * sum / groups / groups, 0.0);
  return {excess(second, fourth), std::sqrt((groups - 1) * variance)};
}

/// Density of outputs divided by their standard deviation, in bins of 0.2.
void write_histogram(Csv& table, const std::string& label, const Matrix<double>& samples) {
  constexpr double bin = 0.2;
  const double deviation = std::sqrt(samples.cwiseAbs2().mean());
  std::map<int, int> counts;
  for (Index i = 0; i < samples.size(); ++i)
    ++counts[static_cast<int>(std::floor(samples.data()[i] / deviation / bin))];
  for (const auto& [place, count] : counts)
    table.row(label, (place + 0.5) * bin, count / (bin * static_cast<double>(samples.size())));
}

void draw(const Settings& settings, const std::string& many) {
  plot(settings, "scale_mixture",
       fmt::format("set logscale y\nset xrange [-6:6]\nset yrange [1e-5:1]\nset xlabel 'output / standard "
                   "deviation'\nset ylabel 'density'\n"
                   "plot 'scale_mixture_histogram.csv' using (strcol(1) eq 'identity 1' ? $2 : NaN):3 with "
                   "linespoints title 'one head', '' using (strcol(1) eq 'identity {0}' ? $2 : NaN):3 with "
                   "linespoints title '{0} heads', exp(-x**2/2)/sqrt(2*pi) lc 'black' title 'Gaussian'",
                   many));
}

}  // namespace

int main(int argc, char** argv) {
  ArgumentList arguments{"One attention head against many: a scale mixture against a Gaussian"};
  Settings settings;
  add_arguments(arguments, settings, "scale_mixture");
  std::optional<Index> networks;
  Index most_heads = 64;
  arguments.number("--networks", networks, "Random networks of every size [4000; --quick: 1000]", 40,
                   1'000'000);
  arguments.number("--heads", most_heads, "Largest number of heads", 4, 4096);
  return run_example(arguments, argc, argv, settings, [&] {
    const Index draws = networks.value_or(settings.size<Index>(4000, 1000));
    Csv table(settings, "scale_mixture", "weights,heads,width,excess kurtosis,standard error");
    Csv histogram(settings, "scale_mixture_histogram", "weights and heads,output,density");
    fmt::print("{:<10} {:>6} {:>6} {:>16}\n", "weights", "heads", "width", "excess kurtosis");
    bool as_expected = true;
    for (const std::string weights : {"softmax", "identity"}) {
      Kurtosis one{}, many{};
      for (const auto& [heads, width] : std::vector<std::pair<Index, Index>>{
               {1, 8}, {1, 32}, {1, 128}, {4, 32}, {16, 32}, {most_heads, 32}}) {
        const Matrix<double> samples = sampled_outputs(weights, heads, width, draws);
        const Kurtosis kurtosis = excess_kurtosis(samples);
        table.row(weights, heads, width, kurtosis.excess, kurtosis.standard_error);
        fmt::print("{:<10} {:>6} {:>6} {:>8.3f} +- {:.3f}\n", weights, heads, width, kurtosis.excess,
                   kurtosis.standard_error);
        if (heads == 1) one = kurtosis;
        if (heads == most_heads) many = kurtosis;
        if (width == 32) write_histogram(histogram, fmt::format("{} {}", weights, heads), samples);
      }
      as_expected = as_expected && one.excess > 4 * one.standard_error && many.excess < one.excess / 4;
    }
    fmt::print("one head heavy-tailed at any width, many heads towards Gaussian: {}\n",
               as_expected ? "yes" : "NO");
    draw(settings, std::to_string(most_heads));
    return 0;
  });
}

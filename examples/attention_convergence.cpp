// Figure 2 of arXiv:2006.10540: empirical NNGP Gram matrices of finite attention networks against the limit.
// Images of 8 x 8 pixels, a valid 3 x 3 convolution with ReLU, 1/sqrt(width) attention with softmax or
// identity weights, flatten and a dense readout, whose average over its weights is taken exactly. Channels,
// heads and key width grow together; kernels are averaged over draws of the network.

#include <fmt/format.h>

#include <cmath>
#include <widelimit/finite/monte_carlo.hpp>
#include <widelimit/gp/metrics.hpp>
#include <widelimit/layers/activations.hpp>
#include <widelimit/layers/attention.hpp>
#include <widelimit/layers/convolution.hpp>
#include <widelimit/layers/pooling.hpp>

#include "attention_networks.hpp"
#include "example_support.hpp"

using namespace examples;
namespace networks = widelimit::finite;

namespace {

constexpr double readout_variance = 2;
constexpr double bias_variance = 0.01;

/// All layers except the readout.
Network body(const std::string& weights, std::int64_t samples) {
  layers::AttentionOptions attention = sqrt_attention(weights);
  attention.samples = samples;
  const auto conv = layers::conv({.filter = {3, 3},
                                  .strides = {},
                                  .padding = widelimit::Padding::valid,
                                  .weight_variance = 2,
                                  .bias_variance = bias_variance});
  return Network(weights, {conv, layers::relu(), layers::attention(attention), layers::flatten()});
}

/// The NNGP after the dense readout.
Matrix<float> behind_readout(const Matrix<double>& kernel) {
  return (readout_variance * kernel.array() + bias_variance).matrix().cast<float>();
}

/// Training and validation images as one batch, to sample all kernels at once.
struct Images {
  xt::xtensor<float, 4> x;
  Index train;
};

Images joined(const ImageTask& task) {
  return {xt::concatenate(xt::xtuple(task.train.x, task.validation.x), 0), task.train.size()};
}

double accuracy(const Matrix<float>& kernel, const Images& images, const ImageTask& task, int threads) {
  const Index train = images.train, rest = kernel.rows() - train;
  return validate(kernel.topLeftCorner(train, train), kernel.bottomLeftCorner(rest, train), task, threads)
      .accuracy;
}

/// The running mean of kernels over draws: its distance to the limit when 1, 2, 4, ... draws are in it.
struct Sampled {
  std::vector<std::pair<Index, double>> distances;
  Matrix<double> mean;
};

Sampled sample(const Network& network, const Images& images, Index size, Index draws,
               const Matrix<double>& limit, const Settings& settings) {
  networks::MonteCarloOptions options;
  options.widths = {.hidden = size, .outputs = 1, .layers = {}};
  options.heads = {.count = size, .key_width = size, .value_width = size};
  options.seed = settings.seed + static_cast<std::uint64_t>(size);
  options.draws = draws;
  options.threads = settings.threads;
  options.kernels = networks::MonteCarloOptions::Kernels::nngp;
  Sampled sampled;
  networks::KernelMoments moments;
  options.on_draw = [&](Index, const Matrix<double>& nngp, const Matrix<double>&) {
    moments.add(nngp);
    if ((moments.draws & (moments.draws - 1)) == 0)
      sampled.distances.emplace_back(moments.draws,
                                     (moments.mean - limit).squaredNorm() / limit.squaredNorm());
  };
  static_cast<void>(networks::monte_carlo_kernel<float>(network, images.x, options));
  sampled.mean = moments.mean;
  return sampled;
}

/// Least-squares slope.
double slope(const std::vector<std::pair<double, double>>& points) {
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [a, b] : points) {
    x += a;
    y += b;
    xx += a * a;
    xy += a * b;
  }
  const auto n = static_cast<double>(points.size());
  return (n * xy - x * y) / (n * xx - x * x);
}

void draw(const Settings& settings, Index draws) {
  std::string commands =
      "set logscale xy\nset xlabel 'channels = heads'\nset ylabel 'squared distance / squared norm'\nplot ";
  for (const char* weights : {"softmax", "identity"})
    for (const Index count : {Index{1}, draws})
      commands += fmt::format(
          "'attention_convergence.csv' using (strcol(1) eq '{0}' && $3 == {1} ? $2 : NaN):4 with linespoints "
          "title '{0}, {1} draws', ",
          weights, count);
  plot(settings, "attention_convergence", commands + "1/x dt 2 lc 'black' title '1 / heads'");
}

/// Options besides the common arguments.
struct Choice {
  std::optional<int> largest;
  std::optional<Index> draws;
  std::optional<std::int64_t> samples;
};

void add_choice(ArgumentList& arguments, Choice& choice) {
  arguments.number("--largest", choice.largest,
                   "Channels and heads go from 1 to 2 to this power [7; --quick: 5]", 3, 9);
  arguments.number("--draws", choice.draws, "Networks of every size, a power of two [8; --quick: 4]", 1,
                   65'536);
  arguments.number("--softmax-samples", choice.samples, "Samples of the softmax limit [2048; --quick: 512]",
                   16, 1'000'000);
}

}  // namespace

int main(int argc, char** argv) {
  ArgumentList arguments{"Empirical Gram matrices of attention networks approach their limit"};
  Settings settings;
  add_arguments(arguments, settings, "attention_convergence");
  add_image_arguments(arguments, settings);
  Choice choice;
  add_choice(arguments, choice);
  return run_example(arguments, argc, argv, settings, [&] {
    const Sizes sizes = settings.sizes({.side = 8, .train = 200, .validation = 200, .test = 0},
                                       {.side = 8, .train = 30, .validation = 30, .test = 0});
    const ImageTask task = load_images(settings, sizes);
    const Images images = joined(task);
    const int powers = choice.largest.value_or(settings.size(7, 5));
    const Index draws = choice.draws.value_or(settings.size<Index>(8, 4));
    fmt::print("{}\n", task.description);
    Csv table(settings, "attention_convergence", "weights,heads,draws,distance");
    Csv accuracies(settings, "attention_convergence_accuracy", "weights,heads,accuracy,limit's accuracy");
    for (const std::string weights : {"softmax", "identity"}) {
      const Network network = body(weights, choice.samples.value_or(settings.size<std::int64_t>(2048, 512)));
      GramOptions exact = settings.gram_options();
      exact.kernels = Kernels::nngp;
      const Matrix<double> limit = gram<float>(network, images.x, exact).nngp.cast<double>();
      const double best = accuracy(behind_readout(limit), images, task, settings.threads);
      std::vector<std::pair<double, double>> points;
      for (int power = 0; power <= powers; ++power) {
        const Index size = Index{1} << power;
        const Sampled sampled = sample(network, images, size, draws, limit, settings);
        for (const auto& [count, distance] : sampled.distances) {
          table.row(weights, size, count, distance);
          // Smaller networks are too far from their limit for powers of their size to tell.
          if (size >= 8)
            points.emplace_back(std::log10(static_cast<double>(size * count)), std::log10(distance));
        }
        const double found = accuracy(behind_readout(sampled.mean), images, task, settings.threads);
        accuracies.row(weights, size, found, best);
        fmt::print("{:<9} {:>4} heads, {} draws: distance {:.2e}, accuracy {:.1f} % (limit {:.1f} %)\n",
                   weights, size, draws, sampled.distances.back().second, 100 * found, 100 * best);
      }
      fmt::print("{}: {:.2f} decades a decade of draws x heads\n", weights, slope(points));
    }
    draw(settings, draws);
    return 0;
  });
}

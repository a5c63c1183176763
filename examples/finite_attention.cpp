// Figure 3 and table 8 of arXiv:2006.10540: finite attention networks, trained on small images. A 3 x 3
// convolution with ReLU, one layer of 1/sqrt(width) attention with positional encodings and softmax, ReLU or
// identity weights, without a norm, with one in each head or one after the attention; Adam, batches of 64.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <widelimit/finite/training.hpp>
#include <widelimit/gp/metrics.hpp>
#include <widelimit/layers/activations.hpp>
#include <widelimit/layers/attention.hpp>
#include <widelimit/layers/convolution.hpp>
#include <widelimit/layers/dense.hpp>
#include <widelimit/layers/layer_norm.hpp>
#include <widelimit/layers/pooling.hpp>

#include "attention_networks.hpp"
#include "example_support.hpp"

using namespace examples;
namespace networks = widelimit::finite;

namespace {

constexpr std::array weight_kinds{"softmax", "relu", "identity"};
constexpr std::array norms{"none", "head", "output"};

Network network(const std::string& weights, const std::string& norm) {
  layers::AttentionOptions attention = sqrt_attention(weights);
  // As many channels of encodings as of the input: half of the variance each.
  attention.positions = layers::PositionalEncodings{
      .covariance = layers::IdentityPositions{}, .input_weight = 0.5, .position_weight = 0.5};
  widelimit::Layers all{
      layers::conv({.filter = {3, 3}, .strides = {}, .weight_variance = 2, .bias_variance = 0.01}),
      layers::relu(), layers::attention(attention)};
  if (norm == "output") all.push_back(layers::layer_norm());
  all.push_back(layers::flatten());
  all.push_back(layers::dense());
  return {weights + ", norm: " + norm, all};
}

struct Run {
  double accuracy;
  double final_loss;
};

Run trained(const Network& architecture, networks::HeadNorm norm, Index width, const ImageTask& task,
            const networks::TrainingOptions& options, const Settings& settings) {
  const auto side = static_cast<Index>(task.train.x.shape(1));
  networks::FiniteNetwork<float> sample(
      architecture, {{side, side}, 3}, {.hidden = width, .outputs = 10, .layers = {}},
      {.count = 8, .key_width = 0, .value_width = 0, .norm = norm}, settings.seed, settings.threads);
  const Matrix<float> targets = (task.train.targets.array() + 0.1).matrix().cast<float>();
  const auto losses = networks::train<float>(sample, task.train.x, targets, options).losses;
  const Matrix<double> outputs = sample.forward(task.validation.x).cast<double>();
  return {widelimit::gp::accuracy(outputs, task.validation.targets),
          losses.back() / static_cast<double>(task.train.size())};
}

}  // namespace

int main(int argc, char** argv) {
  ArgumentList arguments{"Trained finite attention networks: weights and norms"};
  Settings settings;
  add_arguments(arguments, settings, "finite_attention");
  add_image_arguments(arguments, settings);
  std::optional<Index> epochs, width;
  double learning_rate = 0.02;
  arguments.number("--epochs", epochs, "Passes over the training images [20; --quick: 6]", 1, 10'000);
  arguments.number("--width", width, "Channels [64; --quick: 32]", 8, 4096);
  arguments.number("--learning-rate", learning_rate, "Of Adam", Sign::positive);
  return run_example(arguments, argc, argv, settings, [&] {
    const Sizes sizes = settings.sizes({.side = 8, .train = 3000, .validation = 1000, .test = 0},
                                       {.side = 8, .train = 500, .validation = 500, .test = 0});
    const ImageTask task = load_images(settings, sizes);
    fmt::print("{}\n{:<10} {:<8} {:>10} {:>14} {:>8}\n", task.description, "weights", "norm", "accuracy",
               "training loss", "seconds");
    networks::TrainingOptions options;
    options.loss = networks::Loss::cross_entropy;
    options.optimiser = networks::Adam{};
    options.learning_rate = learning_rate;
    options.batch = std::min<Index>(64, task.train.size());
    options.steps = epochs.value_or(settings.size<Index>(20, 6)) * (task.train.size() / options.batch);
    Csv table(settings, "finite_attention", "weights,norm,accuracy,training loss");
    for (const std::string weights : weight_kinds)
      for (const std::string norm : norms) {
        const Clock clock;
        const Run run = trained(network(weights, norm),
                                norm == "head" ? networks::HeadNorm::layer_norm : networks::HeadNorm::none,
                                width.value_or(settings.size<Index>(64, 32)), task, options, settings);
        table.row(weights, norm, run.accuracy, run.final_loss);
        fmt::print("{:<10} {:<8} {:>8.1f} % {:>14.3f} {:>8.1f}\n", weights, norm, 100 * run.accuracy,
                   run.final_loss, clock.seconds());
      }
    fmt::print("standard error of an accuracy: about {:.1f} percentage points\n",
               50 / std::sqrt(static_cast<double>(task.validation.size())));
    plot(settings, "finite_attention",
         "set style data histogram\nset style histogram clustered gap 1\nset style fill solid 0.6\n"
         "set ylabel 'validation accuracy'\nset yrange [0:*]\nset key top left\n"
         "plot for [weights in 'softmax relu identity'] \"< grep ^\".weights.\", finite_attention.csv\" "
         "using 3:xtic(2) title weights");
    return 0;
  });
}

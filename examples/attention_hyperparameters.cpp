// Random search over the hyperparameters of an attention layer after convolutions, as in appendix A.1 of
// arXiv:2006.10540: scaling, function of the logits, positional encodings, encodings in the values, rho, phi,
// alpha.
//
// Everything is chosen on validation images; the test images are read once, for the best setting. The
// published search is larger (2,000 training and 4,000 validation images of 32 x 32 pixels); without --quick
// the images are reduced to 8 x 8.

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <widelimit/gp/not_positive_definite.hpp>
#include <widelimit/numerics/random_stream.hpp>

#include "attention_networks.hpp"
#include "example_support.hpp"

using namespace examples;
using layers::AttentionScaling;

namespace {

struct Trial {
  AttentionScaling scaling;
  std::string weights;
  std::string encodings;
  layers::ValueEncodings values;
  double rho;  ///< Relative to the mean variance at the attention's input.
  double phi;  ///< 0 for identity encodings, which have none.
  double alpha;

  std::string scaling_name() const {
    return scaling == AttentionScaling::inverse_width ? "1/width" : "1/sqrt(width)";
  }
  std::string values_name() const { return values == layers::ValueEncodings::present ? "yes" : "no"; }
};

/// Every combination. The sampled softmax with 1/sqrt(width) is among them only if it may draw samples.
std::vector<Trial> grid(std::int64_t softmax_samples) {
  std::vector<std::pair<AttentionScaling, std::string>> functions{
      {AttentionScaling::inverse_width, "softmax"},   {AttentionScaling::inverse_width, "identity"},
      {AttentionScaling::inverse_width, "relu"},      {AttentionScaling::inverse_sqrt_width, "identity"},
      {AttentionScaling::inverse_sqrt_width, "relu"}, {AttentionScaling::inverse_sqrt_width, "abs"}};
  if (softmax_samples > 0) functions.emplace_back(AttentionScaling::inverse_sqrt_width, "softmax");
  std::vector<Trial> trials;
  for (const auto& [scaling, weights] : functions)
    for (const auto values : {layers::ValueEncodings::absent, layers::ValueEncodings::present})
      for (const double rho : {0.25, 1.0, 4.0})
        for (const double alpha : {0.25, 0.5, 0.75})
          for (const double phi : {0.0, 1.0, 4.0, 16.0, 64.0})
            trials.push_back(
                {scaling, weights, phi == 0 ? "identity" : "structured", values, rho, phi, alpha});
  return trials;
}

/// `count` different entries of the grid, in random order.
std::vector<Trial> draw_trials(std::vector<Trial> trials, std::size_t count, std::uint64_t seed) {
  widelimit::numerics::RandomStream random(seed);
  count = std::min(count, trials.size());
  for (std::size_t i = 0; i < count; ++i) std::swap(trials[i], trials[i + random.below(trials.size() - i)]);
  trials.resize(count);
  return trials;
}

Layers head_of(const Trial& trial, double variance, std::int64_t softmax_samples) {
  layers::PositionalEncodings positions;
  const double rho = trial.rho * variance;
  if (trial.encodings == "identity")
    positions.covariance = layers::IdentityPositions{.rho = rho};
  else
    positions.covariance = layers::StructuredPositions{.rho = rho, .phi = trial.phi};
  positions.input_weight = trial.alpha;
  positions.position_weight = 1 - trial.alpha;
  positions.values = trial.values;
  layers::AttentionOptions attention;
  attention.scaling = trial.scaling;
  attention.weights = weights_by_name(trial.weights);
  attention.query_key_std = query_key_std;
  attention.positions = positions;
  attention.samples = std::max<std::int64_t>(softmax_samples, 1);
  return {layers::attention(attention), layers::layer_norm(), layers::flatten()};
}

/// A trial with one kernel, and what the evaluation on test images needs.
struct Outcome {
  Trial trial;
  NamedKernel kernel;
  ValidationScore score;
};

class Search {
 public:
  Search(const Settings& settings, Index depth, std::int64_t softmax_samples, const Sizes& sizes)
      : settings_{settings},
        front_{convolutions(depth)},
        softmax_samples_{softmax_samples},
        task_{load_images(settings, sizes)},
        variance_{mean_variance(front_, task_.train, settings.gram_options())} {
    fmt::print("{}; {} convolutions, mean variance {:.3f} at the attention\n", task_.description, depth,
               variance_);
  }

  const ImageTask& task() const { return task_; }
  const std::vector<Outcome>& outcomes() const { return outcomes_; }

  void run(const std::vector<Trial>& trials) {
    Csv table(
        settings_, "attention_hyperparameters",
        "scaling,weights,encodings,values,rho,phi,alpha,kernel,validation accuracy,regulariser,seconds");
    for (std::size_t i = 0; i < trials.size(); ++i) {
      const Trial& trial = trials[i];
      const Clock clock;
      const auto train = gram(network(trial), task_.train.inputs(), settings_.gram_options());
      const auto cross =
          gram(network(trial), task_.validation.inputs(), task_.train.inputs(), settings_.gram_options());
      const double seconds = clock.seconds();
      for (const NamedKernel& kernel : kernels_of(settings_)) {
        const ValidationScore score = score_of(train.*kernel.matrix, cross.*kernel.matrix);
        outcomes_.push_back({trial, kernel, score});
        table.row(trial.scaling_name(), trial.weights, trial.encodings, trial.values_name(), trial.rho,
                  trial.phi, trial.alpha, kernel.name, score.accuracy, score.regulariser, seconds);
      }
      fmt::print(stderr, "\rsetting {} of {}, {:.1f} s ", i + 1, trials.size(), seconds);
    }
    fmt::print(stderr, "\n");
    std::stable_sort(outcomes_.begin(), outcomes_.end(), [](const Outcome& left, const Outcome& right) {
      return left.score.accuracy > right.score.accuracy;
    });
  }

  /// Accuracy on the test images, with the regulariser of the validation images.
  double test(const Outcome& outcome, const ImageSet& images) const {
    const auto train = gram(network(outcome.trial), task_.train.inputs(), settings_.gram_options());
    const auto cross =
        gram(network(outcome.trial), images.inputs(), task_.train.inputs(), settings_.gram_options());
    return accuracy_with(outcome.score.regulariser, train.*outcome.kernel.matrix,
                         cross.*outcome.kernel.matrix, task_, images, settings_.threads);
  }

 private:
  Network network(const Trial& trial) const {
    return with_readout("attention", front_, head_of(trial, variance_, softmax_samples_));
  }

  /// A Gram matrix of few samples may be too indefinite for every regulariser: accuracy 0, and a line that
  /// says so.
  ValidationScore score_of(const Matrix<float>& train, const Matrix<float>& cross) const {
    try {
      return validate(train, cross, task_, settings_.threads);
    } catch (const widelimit::gp::NotPositiveDefinite& error) {
      fmt::print(stderr, "\nnot usable: {}\n", error.what());
      return {.accuracy = 0, .regulariser = 0};
    }
  }

  const Settings& settings_;
  Layers front_;
  std::int64_t softmax_samples_;
  ImageTask task_;
  double variance_;
  std::vector<Outcome> outcomes_;
};

void print_best(const std::vector<Outcome>& outcomes, std::size_t count) {
  fmt::print("{:14} {:9} {:11} {:6} {:>5} {:>4} {:>6} {:>6} {:>10} {:>11}\n", "scaling", "weights",
             "encodings", "values", "rho", "phi", "alpha", "kernel", "validation", "regulariser");
  for (std::size_t i = 0; i < std::min(count, outcomes.size()); ++i) {
    const auto& [trial, kernel, score] = outcomes[i];
    fmt::print("{:14} {:9} {:11} {:6} {:>5} {:>4} {:>6} {:>6} {:>8.2f} % {:>11.0e}\n", trial.scaling_name(),
               trial.weights, trial.encodings, trial.values_name(), trial.rho, trial.phi, trial.alpha,
               kernel.name, 100 * score.accuracy, score.regulariser);
  }
}

/// Accuracies of all settings, with a column for each scaling and function.
void draw(const Settings& settings) {
  std::string commands =
      "set ylabel 'validation accuracy'\nset key outside\nset xrange [-0.6:6.6]\n"
      "names = '1/width:softmax 1/width:identity 1/width:relu 1/sqrt(width):identity 1/sqrt(width):relu "
      "1/sqrt(width):abs 1/sqrt(width):softmax'\n"
      "column_of(s) = int(sum [k=1:7] (word(names, k) eq s ? k - 1 : 0))\n"
      "set for [k=1:7] xtics (word(names, 1) 0)\nset for [k=2:7] xtics add (word(names, k) k-1)\n"
      "set xtics rotate by -20\nplot ";
  int shift = 0;
  for (const char* encodings : {"identity", "structured"})
    for (const char* values : {"no", "yes"}) {
      commands += fmt::format(
          "'attention_hyperparameters.csv' every ::1 using (strcol(3) eq '{0}' && strcol(4) eq '{1}' ? "
          "column_of(strcol(1).':'.strcol(2)) + {2} : NaN):9 with points pt 7 ps 1.2 title '{0}{3}', ",
          encodings, values, 0.12 * shift - 0.18, std::string(values) == "yes" ? ", in values too" : "");
      ++shift;
    }
  plot(settings, "attention_hyperparameters", commands);
}

int study(const Settings& settings, Index depth, std::size_t trial_count, std::int64_t softmax_samples) {
  const Sizes sizes = settings.sizes({.side = 8, .train = 2000, .validation = 4000, .test = 2000},
                                     {.side = 8, .train = 100, .validation = 200, .test = 200});
  const std::vector<Trial> all = grid(softmax_samples);
  Search search(settings, depth, softmax_samples, sizes);
  const std::vector<Trial> trials = draw_trials(all, trial_count, settings.seed);
  fmt::print("{} of {} settings{}\n", trials.size(), all.size(),
             softmax_samples > 0 ? "" : "; softmax with 1/sqrt(width) left out, see --softmax-samples");
  search.run(trials);
  print_best(search.outcomes(), 10);
  const Outcome& best = search.outcomes().front();
  fmt::print("best setting on {} test images: {:.2f} %\n", sizes.test,
             100 * search.test(best, load_test_images(settings, sizes)));
  draw(settings);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ArgumentList arguments{"Random search over the hyperparameters of attention after convolutions"};
  Settings settings;
  add_arguments(arguments, settings, "attention_hyperparameters");
  add_image_arguments(arguments, settings);
  std::optional<Index> depth;
  std::optional<std::size_t> trials;
  std::int64_t softmax_samples = 0;
  arguments.number("--depth", depth, "Convolutions before the attention [8; --quick: 3]", 0, 100);
  arguments.number("--trials", trials, "Settings to try [100; --quick: 30]", Sign::positive);
  arguments.number("--softmax-samples", softmax_samples,
                   "Samples of softmax with 1/sqrt(width), whose cost grows as samples x positions^3 a pair; "
                   "0: leave it out",
                   0, 1 << 20);
  return run_example(arguments, argc, argv, settings, [&] {
    return study(settings, depth.value_or(settings.size<Index>(8, 3)),
                 trials.value_or(settings.size<std::size_t>(100, 30)), softmax_samples);
  });
}

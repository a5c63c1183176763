// Four families of networks on film reviews, as in tables 3 and 4 of arXiv:2006.10540: pooled words (GAP),
// followed by dense layers (GAP-FCN), preceded by convolutions (CNN-GAP), attention with structured positions
// (Struct), and both of the last together; NNGP and NTK each.
//
// Hyperparameters and regularisers are chosen on validation reviews, on a part of the data where a network is
// costly; the test reviews are looked at once, with what was chosen. Without --data the reviews are
// generated.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <widelimit/data/imdb.hpp>
#include <widelimit/data/synthetic_reviews.hpp>
#include <widelimit/data/word_sequences.hpp>
#include <widelimit/error.hpp>
#include <widelimit/gp/metrics.hpp>
#include <widelimit/gp/regression.hpp>
#include <widelimit/gp/targets.hpp>
#include <widelimit/models/named_networks.hpp>

#include "example_support.hpp"

using namespace examples;
namespace data = widelimit::data;
namespace gp = widelimit::gp;
namespace models = widelimit::models;

namespace {

struct Arguments {
  Settings settings;
  std::filesystem::path vectors;
  std::optional<std::size_t> dimensions;
  std::size_t max_length = 1000;
  std::vector<std::string> families{"gap", "gap-fcn", "struct", "cnn-gap", "struct-cnn"};
  std::optional<std::size_t> search, convolution_share;
};

struct TextSet {
  std::vector<xt::xarray<float>> x;  ///< Each [length, dimension].
  std::vector<int> labels;

  std::size_t size() const { return x.size(); }
  Inputs<float> inputs() const { return x; }
  Matrix<double> targets() const { return gp::binary_targets(labels); }
  /// The first `count`: reviews are in random order.
  TextSet first(std::size_t count) const {
    const auto n = static_cast<std::ptrdiff_t>(std::min(count, size()));
    return {.x = {x.begin(), x.begin() + n}, .labels = {labels.begin(), labels.begin() + n}};
  }
};

struct Task {
  TextSet train;
  TextSet validation;
  TextSet test;

  /// The first reviews of each set, the same share of each as of `train`.
  Task share(std::size_t train_count) const {
    const auto part = [&](const TextSet& set) {
      return set.first(std::max<std::size_t>(1, set.size() * train_count / train.size()));
    };
    return {.train = train.first(train_count), .validation = part(validation), .test = part(test)};
  }
};

TextSet embedded(const data::LabelledTexts& texts, const data::WordVectors& vectors,
                 const Arguments& arguments) {
  auto sequences = data::embed(texts, vectors, {.max_length = arguments.max_length});
  fmt::print("  {}\n", to_string(sequences.statistics));
  return {.x = std::move(sequences.inputs), .labels = std::move(sequences.labels)};
}

data::LabelledTexts generated(std::size_t count, std::uint64_t seed) {
  return data::generate_synthetic_reviews(count, seed);
}

Task load(const Arguments& arguments, const Sizes& sizes) {
  const Settings& settings = arguments.settings;
  data::ReviewSets texts;
  auto vectors = data::synthetic_review_vectors();
  if (settings.data.empty()) {
    texts = {.train = generated(sizes.train, 3 * settings.seed),
             .validation = generated(sizes.validation, 3 * settings.seed + 1),
             .test = generated(sizes.test, 3 * settings.seed + 2)};
  } else {
    texts = data::read_imdb(settings.data,
                            {.train = sizes.train, .validation = sizes.validation, .test = sizes.test},
                            data::ClassBalance::equal, settings.seed);
    vectors = data::read_word_vectors(arguments.vectors).vectors;
  }
  if (arguments.dimensions) vectors = vectors.leading(*arguments.dimensions);
  fmt::print("{}, vectors of {} numbers, seed {}; training, validation, test:\n",
             settings.data.empty() ? "generated reviews" : "IMDb reviews", vectors.dimension(),
             settings.seed);
  return {.train = embedded(texts.train, vectors, arguments),
          .validation = embedded(texts.validation, vectors, arguments),
          .test = embedded(texts.test, vectors, arguments)};
}

/// A named network with settings.
struct Candidate {
  std::string network;
  models::NetworkSettings settings;

  Network build() const { return models::named_network(network, settings); }
  /// The network in the form of `widelimit gp --network`, with blanks instead of commas.
  std::string text() const {
    std::string result = network;
    char separator = ':';
    for (const auto& [name, value] : settings) {
      result += fmt::format("{}{}={}", separator, name, value);
      separator = ' ';
    }
    return result;
  }
};

struct Family {
  std::string name;
  std::vector<Candidate> candidates;
  bool convolves;  ///< The cost of a pair grows with the product of the lengths.
};

/// All combinations of the options' values.
std::vector<Candidate> product(const std::string& network,
                               const std::map<std::string, std::vector<double>>& options) {
  std::vector<Candidate> candidates{{network, {}}};
  for (const auto& [name, values] : options) {
    std::vector<Candidate> longer;
    for (const Candidate& candidate : candidates)
      for (const double value : values) {
        longer.push_back(candidate);
        longer.back().settings[name] = value;
      }
    candidates = std::move(longer);
  }
  return candidates;
}

std::vector<Family> all_families(bool quick) {
  const auto some = [quick](std::vector<double> values) {
    if (quick) values.resize(1);
    return values;
  };
  return {
      {"gap", product("imdb-gap", {{"norm", {0, 1}}}), false},
      {"gap-fcn", product("imdb-gap-fcn", {{"depth", {1, 2}}, {"norm", {0, 1}}, {"erf", some({0, 1})}}),
       false},
      {"struct",
       product("imdb-struct", {{"attentions", some({1, 2})},
                               {"norm", {0, 1}},
                               {"dense", some({0, 1})},
                               {"alpha", some({0.75, 0.5})},
                               {"phi", some({2.5, 100})}}),
       false},
      {"cnn-gap", product("imdb-cnn-gap", {{"depth", some({1, 2, 4})}, {"erf", some({0, 1})}}), true},
      {"struct-cnn",
       product(
           "imdb-struct",
           {{"depth", {1}}, {"attentions", {1}}, {"alpha", some({0.75, 0.5})}, {"phi", some({2.5, 100})}}),
       true}};
}

struct Choice {
  double accuracy;     ///< Accuracy on validation reviews.
  double regulariser;  ///< Relative to the mean diagonal.
};

Choice choose(const Matrix<float>& train, const Matrix<float>& cross, const Task& task, int threads) {
  const auto selection = gp::select_regulariser(train, task.train.targets(), cross, task.validation.targets(),
                                                gp::regulariser_grid(), gp::Criterion::accuracy, threads);
  for (const auto& score : selection.scores)
    if (score.relative_regulariser == selection.best.value())
      return {.accuracy = score.accuracy, .regulariser = score.relative_regulariser};
  return {.accuracy = 0, .regulariser = selection.best.value()};
}

/// Gram matrices of training reviews and of validation with training reviews.
struct Grams {
  GramResult<float> train;
  GramResult<float> validation;
  double seconds;
};

class Table {
 public:
  explicit Table(const Arguments& arguments)
      : arguments_{arguments},
        settings_{arguments.settings},
        search_(settings_, "imdb_search",
                "family,network,kernel,train,validation,accuracy,regulariser,seconds"),
        table_(settings_, "imdb_table",
               "family,network,kernel,train,validation,test,validation accuracy,test accuracy,regulariser,"
               "Gram seconds") {}

  void run(const Task& task) {
    fmt::print("{:<11} {:<6} {:>6} {:>10} {:>7} {:>8}  {}\n", "family", "kernel", "train", "validation",
               "test", "Gram s", "network");
    for (const Family& family : all_families(settings_.quick))
      if (std::count(arguments_.families.begin(), arguments_.families.end(), family.name) > 0)
        run(family, task);
  }

 private:
  void run(const Family& family, const Task& all) {
    const Task task = family.convolves ? all.share(arguments_.convolution_share.value_or(all.train.size()))
                                       : all.share(all.train.size());
    const auto best = search(family, task.share(std::min(search_size(), task.train.size())));
    for (const auto& [kernel, candidate] : best) {
      // Both kernels come from one run if they share their network.
      if (kernel.name == "ntk" && best.size() == 2 && best[0].second->text() == candidate->text()) continue;
      const Grams grams = kernels_between(*candidate, task);
      const Clock clock;
      const auto cross =
          gram(candidate->build(), task.test.inputs(), task.train.inputs(), settings_.gram_options());
      const double seconds = grams.seconds + clock.seconds();
      for (const auto& [other, others_candidate] : best)
        if (others_candidate->text() == candidate->text())
          report(family, *candidate, other, task, grams, cross, seconds);
    }
  }

  std::size_t search_size() const { return arguments_.search.value_or(settings_.size<std::size_t>(800, 40)); }

  using Best = std::vector<std::pair<NamedKernel, const Candidate*>>;

  /// The candidate with the best validation accuracy for each kernel, the first of equals.
  Best search(const Family& family, const Task& task) {
    Best best;
    std::vector<double> accuracies;
    for (const NamedKernel& kernel : kernels_of(settings_)) {
      best.emplace_back(kernel, &family.candidates.front());
      accuracies.push_back(-1);
    }
    if (family.candidates.size() == 1) return best;
    for (const Candidate& candidate : family.candidates) {
      const Grams grams = kernels_between(candidate, task);
      for (std::size_t i = 0; i < best.size(); ++i) {
        const NamedKernel& kernel = best[i].first;
        const Choice choice =
            choose(grams.train.*kernel.matrix, grams.validation.*kernel.matrix, task, settings_.threads);
        search_.row(family.name, candidate.text(), kernel.name, task.train.size(), task.validation.size(),
                    choice.accuracy, choice.regulariser, grams.seconds);
        if (choice.accuracy <= accuracies[i]) continue;
        accuracies[i] = choice.accuracy;
        best[i].second = &candidate;
      }
    }
    return best;
  }

  Grams kernels_between(const Candidate& candidate, const Task& task) const {
    const Clock clock;
    Grams grams;
    const Network network = candidate.build();
    grams.train = gram(network, task.train.inputs(), settings_.gram_options());
    grams.validation = gram(network, task.validation.inputs(), task.train.inputs(), settings_.gram_options());
    grams.seconds = clock.seconds();
    return grams;
  }

  void report(const Family& family, const Candidate& candidate, const NamedKernel& kernel, const Task& task,
              const Grams& grams, const GramResult<float>& cross, double seconds) {
    const Choice choice =
        choose(grams.train.*kernel.matrix, grams.validation.*kernel.matrix, task, settings_.threads);
    const auto regression =
        gp::Regression::fit(grams.train.*kernel.matrix, task.train.targets(),
                            gp::RelativeRegulariser(choice.regulariser), settings_.threads);
    const double accuracy = gp::accuracy(regression.mean(cross.*kernel.matrix), task.test.targets());
    table_.row(family.name, candidate.text(), kernel.name, task.train.size(), task.validation.size(),
               task.test.size(), choice.accuracy, accuracy, choice.regulariser, seconds);
    fmt::print("{:<11} {:<6} {:>6} {:>8.2f} % {:>5.2f} % {:>8.1f}  {}\n", family.name, kernel.name,
               task.train.size(), 100 * choice.accuracy, 100 * accuracy, seconds, candidate.text());
    std::fflush(stdout);
  }

  const Arguments& arguments_;
  const Settings& settings_;
  Csv search_, table_;
};

int study(const Arguments& arguments) {
  if (!arguments.settings.data.empty() && arguments.vectors.empty())
    throw widelimit::ArgumentError("--data needs --vectors FILE");
  const Sizes sizes = arguments.settings.sizes({.side = 0, .train = 3200, .validation = 1600, .test = 1600},
                                               {.side = 0, .train = 200, .validation = 100, .test = 100});
  Table(arguments).run(load(arguments, sizes));
  return 0;
}

void add_text_arguments(ArgumentList& list, Arguments& arguments) {
  Settings& settings = arguments.settings;
  list.existing_folder("--data", settings.data, "Folder aclImdb; left out: generated reviews");
  list.existing_file("--vectors", arguments.vectors, "Word vectors in GloVe's text format");
  list.number("--dimensions", arguments.dimensions, "Leading numbers of each word vector to use [all]",
              Sign::positive);
  list.number("--max-length", arguments.max_length, "Known words of a review, the last ones", Sign::positive);
  list.number("--train", settings.train, "Training reviews", Sign::positive);
  list.number("--validation", settings.validation, "Validation reviews", Sign::positive);
  list.number("--test", settings.test, "Test reviews", Sign::positive);
  list.number("--search", arguments.search,
              "Training reviews of the search over hyperparameters, the other sets in proportion [800; "
              "--quick: 40]",
              Sign::positive);
  list.number("--convolution-train", arguments.convolution_share,
              "Training reviews for networks with convolutions, the other sets in proportion [all]",
              Sign::positive);
  list.choices("--families", arguments.families, "gap, gap-fcn, struct, cnn-gap, struct-cnn",
               {"gap", "gap-fcn", "struct", "cnn-gap", "struct-cnn"});
  list.number("--seed", settings.seed, "Seed of the choice of reviews");
}

}  // namespace

int main(int argc, char** argv) {
  ArgumentList list{"Reviews: pooled words, convolutions and attention"};
  Arguments arguments;
  add_arguments(list, arguments.settings, "imdb_table");
  add_text_arguments(list, arguments);
  return run_example(list, argc, argv, arguments.settings, [&] { return study(arguments); });
}

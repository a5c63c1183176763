#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "cli/tasks/gp_task.hpp"
#include "cli/tasks/text_inputs.hpp"
#include "widelimit/data/synthetic_reviews.hpp"
#include "widelimit/data/word_sequences.hpp"
#include "widelimit/gp/targets.hpp"

namespace widelimit::cli {
namespace {

using data::WordSequences;

/// The sequences in the precision of the kernels, their memory taken over where it is float.
template <typename Scalar>
std::vector<xt::xarray<Scalar>> converted(std::vector<xt::xarray<float>> sequences) {
  if constexpr (std::is_same_v<Scalar, float>) {
    return sequences;
  } else {
    std::vector<xt::xarray<Scalar>> result;
    result.reserve(sequences.size());
    for (xt::xarray<float>& sequence : sequences)
      result.emplace_back(xt::cast<Scalar>(std::exchange(sequence, {})));
    return result;
  }
}

template <typename Scalar>
GpSet<Scalar> prepared(WordSequences sequences) {
  return {.x = {},
          .sequences = converted<Scalar>(std::move(sequences.inputs)),
          .targets = gp::binary_targets(sequences.labels),
          .names = std::move(sequences.names)};
}

std::size_t longest(std::initializer_list<const WordSequences*> sets) {
  std::size_t length = 0;
  for (const WordSequences* set : sets)
    for (const auto& sequence : set->inputs) length = std::max(length, sequence.shape(0));
  return length;
}

/// The texts of these names, which come in the order of the texts; some were left out.
std::vector<std::string> texts_of(const std::vector<std::string>& names, const data::LabelledTexts& texts) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < texts.size() && result.size() < names.size(); ++i)
    if (texts.names[i] == names[result.size()]) result.push_back(texts.texts[i]);
  return result;
}

template <typename Scalar>
GpTask<Scalar> text_task(const std::string& name, const TextChoice& choice, const data::ReviewSets& texts,
                         const data::WordVectors& vectors) {
  const data::SequenceOptions options{.max_length = choice.max_length};
  auto train = embed(texts.train, vectors, options), validation = embed(texts.validation, vectors, options),
       test = embed(texts.test, vectors, options);
  GpTask<Scalar> task;
  task.description = fmt::format(
      "{}: {} training, {} validation, {} test reviews of up to {} words x {}, 2 classes, seed {}", name,
      train.size(), validation.size(), test.size(), longest({&train, &validation, &test}),
      vectors.dimension(), choice.seed);
  task.class_names = texts.train.class_names;
  task.test_faces.texts = texts_of(test.names, texts.test);
  task.notes.push_back("training: " + to_string(train.statistics));
  if (texts.validation.size() > 0) task.notes.push_back("validation: " + to_string(validation.statistics));
  task.notes.push_back("test: " + to_string(test.statistics));
  task.train = prepared<Scalar>(std::move(train));
  if (texts.validation.size() > 0) task.validation = prepared<Scalar>(std::move(validation));
  task.test = prepared<Scalar>(std::move(test));
  task.preparation = {{"word_vectors", name},
                      {"max_length", choice.max_length},
                      {"dimensions", vectors.dimension()},
                      {"skip_bad_lines", choice.bad_lines == data::BadLines::skip},
                      {"vectors_sha256", vectors_sha256(vectors)}};
  return task;
}

/// Reviews first .. first + count - 1 of a set.
data::LabelledTexts piece(const data::LabelledTexts& all, std::size_t first, std::size_t count) {
  data::LabelledTexts result;
  result.classes = all.classes;
  result.class_names = all.class_names;
  for (std::size_t i = first; i < first + count; ++i) {
    result.texts.push_back(all.texts[i]);
    result.names.push_back(all.names[i]);
    result.labels.push_back(all.labels[i]);
  }
  return result;
}

std::string bad_lines_note(const std::filesystem::path& file, const std::vector<data::BadLine>& lines) {
  constexpr std::size_t shown = 5;
  std::string note = fmt::format("{}: {} lines left out", file.string(), lines.size());
  for (std::size_t i = 0; i < std::min(shown, lines.size()); ++i)
    note += fmt::format("; line {}: {}", lines[i].line, lines[i].reason);
  return note + (lines.size() > shown ? "; ..." : "");
}

}  // namespace

template <typename Scalar>
GpTask<Scalar> reviews_task(const TextChoice& choice) {
  const auto [train, validation, test] = choice.counts;
  // Test reviews come first, so that they stay the same whatever the sizes of the other sets.
  const auto all = data::generate_synthetic_reviews(test + train + validation, choice.seed);
  return text_task<Scalar>("reviews", choice,
                           {.train = piece(all, test, train),
                            .validation = piece(all, test + train, validation),
                            .test = piece(all, 0, test)},
                           data::synthetic_review_vectors());
}

template <typename Scalar>
GpTask<Scalar> imdb_task(const std::filesystem::path& folder, const std::filesystem::path& vectors,
                         const TextChoice& choice) {
  const auto texts = data::read_imdb(folder, choice.counts, data::ClassBalance::equal, choice.seed);
  const auto file = data::read_word_vectors(vectors, choice.bad_lines);
  auto task = text_task<Scalar>("imdb", choice, texts,
                                choice.dimensions ? file.vectors.leading(*choice.dimensions) : file.vectors);
  if (!file.bad_lines.empty()) task.notes.push_back(bad_lines_note(vectors, file.bad_lines));
  return task;
}

template GpTask<float> reviews_task(const TextChoice&);
template GpTask<double> reviews_task(const TextChoice&);
template GpTask<float> imdb_task(const std::filesystem::path&, const std::filesystem::path&,
                                 const TextChoice&);
template GpTask<double> imdb_task(const std::filesystem::path&, const std::filesystem::path&,
                                  const TextChoice&);

}  // namespace widelimit::cli

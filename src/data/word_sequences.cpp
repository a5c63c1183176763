#include "widelimit/data/word_sequences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "widelimit/data/tokenizer.hpp"
#include "widelimit/error.hpp"

namespace widelimit::data {
namespace {

using WordIndices = std::vector<std::size_t>;

std::vector<std::string> words_of(const LabelledTexts& texts, std::size_t i) {
  try {
    return tokenize(texts.texts[i]);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", texts.names[i], error.what()));
  }
}

void truncate(WordIndices& known, const SequenceOptions& options, SequenceStatistics& statistics) {
  if (known.size() <= options.max_length) return;
  const std::size_t surplus = known.size() - options.max_length;
  ++statistics.truncated_texts;
  statistics.truncated_words += surplus;
  if (options.truncation == Truncation::keep_last)
    known.erase(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(surplus));
  else
    known.resize(options.max_length);
}

xt::xarray<float> sequence(const WordIndices& known, const WordVectors& vectors) {
  xt::xarray<float> values = xt::xarray<float>::from_shape({known.size(), vectors.dimension()});
  float* target = values.data();
  for (const std::size_t index : known)
    target = std::copy(vectors[index].begin(), vectors[index].end(), target);
  return values;
}

void check(const LabelledTexts& texts, const SequenceOptions& options) {
  if (options.max_length == 0) throw ArgumentError("embed: the maximum length must be positive, got 0");
  if (texts.names.size() != texts.size() || texts.labels.size() != texts.size()) {
    throw ArgumentError(fmt::format("embed: there are {} texts but {} names and {} labels", texts.size(),
                                    texts.names.size(), texts.labels.size()));
  }
}

double percent(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/// "2 texts without words left out (a, b)": the first few by name.
std::string left_out(const std::vector<std::string>& names, const char* what) {
  constexpr std::size_t shown = 3;
  if (names.empty()) return "";
  std::string list;
  for (std::size_t i = 0; i < std::min(shown, names.size()); ++i) list += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > shown) list += ", ...";
  return fmt::format("; {} without {} left out ({})", names.size(), what, list);
}

}  // namespace

WordSequences embed(const LabelledTexts& texts, const WordVectors& vectors, const SequenceOptions& options) {
  check(texts, options);
  WordSequences result;
  result.classes = texts.classes;
  SequenceStatistics& statistics = result.statistics;
  statistics.texts = texts.size();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto words = words_of(texts, i);
    WordIndices known;
    for (const std::string& word : words)
      if (const auto index = vectors.find(word)) known.push_back(*index);
    statistics.words += words.size();
    statistics.unknown_words += words.size() - known.size();
    if (known.empty()) {
      (words.empty() ? statistics.without_words : statistics.without_known_words).push_back(texts.names[i]);
      continue;
    }
    truncate(known, options, statistics);
    result.inputs.push_back(sequence(known, vectors));
    result.labels.push_back(texts.labels[i]);
    result.names.push_back(texts.names[i]);
  }
  if (texts.size() > 0 && result.size() == 0) {
    throw DataError(
        fmt::format("embed: none of {} texts has a word with a vector (the first is {}); are the "
                    "vectors of the language of the texts, with words in lower case?",
                    texts.size(), texts.names.front()));
  }
  return result;
}

std::string to_string(const SequenceStatistics& statistics) {
  return fmt::format(
      "{} texts, {} words, {:.2f} % of them without a vector and dropped; {} texts cut, {} words{}{}",
      statistics.texts, statistics.words, percent(statistics.unknown_words, statistics.words),
      statistics.truncated_texts, statistics.truncated_words, left_out(statistics.without_words, "words"),
      left_out(statistics.without_known_words, "known words"));
}

PaddedSequences padded(const std::vector<xt::xarray<float>>& sequences, std::size_t length) {
  if (sequences.empty()) throw ArgumentError("padded: expected at least one sequence, got none");
  const std::size_t dimension = sequences.front().shape(1);
  std::size_t longest = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].dimension() != 2 || sequences[i].shape(1) != dimension) {
      throw ArgumentError(
          fmt::format("padded: sequence {} must be [length, {}] as the first one is", i, dimension));
    }
    longest = std::max(longest, sequences[i].shape(0));
  }
  if (length != 0 && length < longest)
    throw ArgumentError(
        fmt::format("padded: the longest sequence has {} words, got length {}", longest, length));
  PaddedSequences result;
  result.values = xt::zeros<float>({sequences.size(), length == 0 ? longest : length, dimension});
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    std::copy(sequences[i].begin(), sequences[i].end(), &result.values(i, 0, 0));
    result.lengths.push_back(static_cast<std::int64_t>(sequences[i].shape(0)));
  }
  return result;
}

}  // namespace widelimit::data

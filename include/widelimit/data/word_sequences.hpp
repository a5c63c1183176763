#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>

#include "widelimit/data/labelled_texts.hpp"
#include "widelimit/data/word_vectors.hpp"

/// Texts as sequences of word vectors, the inputs of networks with positions.
namespace widelimit::data {

/// Which words of a text that is too long are kept.
enum class Truncation {
  keep_last,  ///< As Keras does by default.
  keep_first,
};

/// How long sequences may be.
struct SequenceOptions {
  std::size_t max_length = 1000;  ///< Words with a vector, at least 1.
  Truncation truncation = Truncation::keep_last;
};

/// Statistics about the conversion of the texts.
struct SequenceStatistics {
  std::size_t texts = 0;                   ///< Given.
  std::size_t words = 0;                   ///< In all texts.
  std::size_t unknown_words = 0;           ///< Without a vector: dropped.
  std::size_t truncated_texts = 0;         ///< Longer than max_length.
  std::size_t truncated_words = 0;         ///< Known words cut off these.
  std::vector<std::string> without_words;  ///< Names of texts without any word: left out.
  /// Names of texts none of whose words has a vector: left out.
  std::vector<std::string> without_known_words;
};

/// Sequences of different lengths with one class label each.
struct WordSequences {
  std::vector<xt::xarray<float>> inputs;  ///< Each [length, dimension], length >= 1.
  std::vector<int> labels;
  std::vector<std::string> names;
  std::size_t classes = 0;
  SequenceStatistics statistics;

  std::size_t size() const { return inputs.size(); }
};

/// The vectors of a text's words (see tokenize) in their order. Words without a vector are dropped, as if they were not
/// there; the remaining words are cut to max_length; a text without remaining words is left out. All this is counted.
///
/// Errors  ArgumentError if max_length is 0 or the texts' names or labels are not as many as the texts; DataError if a
///         text is not UTF-8 or all texts are left out.
/// Memory  4 bytes x dimension for each remaining word.
WordSequences embed(const LabelledTexts& texts, const WordVectors& vectors,
                    const SequenceOptions& options = {});

/// One line for people: "3200 texts, 745392 words, 1.20 % without a vector dropped, ...".
std::string to_string(const SequenceStatistics& statistics);

/// The same sequences in one array, for programs that do not accept lists.
struct PaddedSequences {
  xt::xtensor<float, 3> values;       ///< [n, length, dimension], zeros after the end of each sequence.
  std::vector<std::int64_t> lengths;  ///< [n]
};

/// Pads to `length`, or to the longest sequence if it is 0. ArgumentError if a sequence is longer or there is
/// none.
PaddedSequences padded(const std::vector<xt::xarray<float>>& sequences, std::size_t length = 0);

}  // namespace widelimit::data

#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace widelimit::data {

/// Words with a vector each, all of one dimension.
class WordVectors {
 public:
  /// No words yet. ArgumentError if the dimension is 0.
  explicit WordVectors(std::size_t dimension);

  /// Adds a word after the others. False, and nothing is added, if it is there already. ArgumentError if the
  /// vector has another dimension or an entry that is not finite.
  bool add(std::string_view word, std::span<const float> vector);

  [[nodiscard]] std::size_t size() const { return words_.size(); }
  [[nodiscard]] std::size_t dimension() const { return dimension_; }

  /// The index of a word, nothing if it is unknown. Words are compared byte by byte.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view word) const;

  /// Word and vector number `index`, in the order in which they were added; index < size().
  [[nodiscard]] const std::string& word(std::size_t index) const { return words_[index]; }
  [[nodiscard]] std::span<const float> operator[](std::size_t index) const {
    return std::span(values_).subspan(index * dimension_, dimension_);
  }

  /// The same words with the first `count` numbers of their vectors: weaker vectors. ArgumentError unless
  /// 1 <= count <= dimension().
  [[nodiscard]] WordVectors leading(std::size_t count) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };

  std::size_t dimension_;
  std::vector<std::string> words_;
  std::vector<float> values_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> indices_;
};

/// What to do with a line of a word-vector file that cannot be used.
enum class BadLines {
  reject,  ///< DataError naming the line.
  skip,    ///< Leave it out and report it.
};

/// A line that was left out, and why.
struct BadLine {
  std::size_t line;  ///< From 1.
  std::string reason;
};

/// The result of read_word_vectors().
struct WordVectorFile {
  WordVectors vectors;
  std::vector<BadLine> bad_lines;  ///< Empty where bad lines are rejected.
};

/// Reads a text file of word vectors in the GloVe format, "WORD v1 v2 ... vD" on every line, separated by spaces or
/// tabs, in what read_text() reads; lines may end in a carriage return. A first line of two integers is the header
/// "WORDS DIMENSION" of word2vec if most of the next 100 lines have as many numbers as one another, and more than one,
/// or DIMENSION. The dimension is that of most of the first 100 lines.
///
/// Binary files of word2vec are read too, plain or packed by gzip: the header, then words, each with a blank and
/// float32 numbers; their words count as the lines behind it.
///
/// A line is bad if it has another count of numbers, a field that is not a finite number, a word that came before (the
/// first one is kept), bytes that are not UTF-8, or is empty; so is a header with counts that are not the actual ones.
///
/// Errors  DataError "FILE: line N: expected ..., found ..." for a bad line (see BadLines), more than a million of
///         them, a line with a zero byte, a missing or empty file and one without any usable line; and as read_text().
///         ArgumentError for words that take more memory than there is.
/// Cost    about two seconds for 400,000 words of 100 dimensions; 4 bytes a number.
WordVectorFile read_word_vectors(const std::filesystem::path& path, BadLines bad_lines = BadLines::reject);

}  // namespace widelimit::data

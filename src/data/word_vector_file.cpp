#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "data/text_lines.hpp"
#include "text/utf8.hpp"
#include "widelimit/data/word_vectors.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::data {
namespace {

constexpr std::string_view blanks = " \t";

/// Takes the next field off the front of `line`; empty after the last.
std::string_view take_field(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  const std::string_view field = line.substr(0, std::min(line.find_first_of(blanks), line.size()));
  line.remove_prefix(field.size());
  return field;
}

std::optional<std::size_t> integer(std::string_view field) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return value;
}

/// The numbers of a header line "WORDS DIMENSION", if the line can be one.
struct Header {
  std::size_t words;
  std::size_t dimension;
};

std::optional<Header> header_in(std::string_view line) {
  const auto words = integer(take_field(line)), dimension = integer(take_field(line));
  if (!words || !dimension || !take_field(line).empty()) return std::nullopt;
  return Header{*words, *dimension};
}

/// How many numbers a line has after its word.
std::size_t count_numbers(std::string_view line) {
  std::size_t fields = 0;
  while (!take_field(line).empty()) ++fields;
  return fields == 0 ? 0 : fields - 1;
}

class Reader {
 public:
  Reader(const std::filesystem::path& path, BadLines policy) : path_{path}, lines_{path}, policy_{policy} {}

  WordVectorFile read() {
    read_first_lines();
    // The first lines have been added by read_first_lines().
    while (const auto line = lines_.next()) add(lines_.line(), *line);
    // At the end of the file, line() is the number of its lines.
    check_header_count();
    if (vectors_->size() == 0) throw DataError(fmt::format("{}: no line is usable", path_.string()));
    return {.vectors = std::move(*vectors_), .bad_lines = std::move(bad_lines_)};
  }

 private:
  void check_header_count() {
    const std::size_t follow = lines_.line() - 1;
    if (!header_ || header_->words == follow) return;
    bad(1,
        header_->words < follow
            ? fmt::format("expected the number of lines that follow, {}, found {}", follow, header_->words)
            : fmt::format("it promises {} words, and {} lines follow: the file was cut, as head or a broken "
                          "download does; if the others are not wanted, make it '{} {}'",
                          header_->words, follow, follow, vectors_->dimension()));
  }

  void bad(std::size_t line, std::string reason) {
    if (policy_ == BadLines::reject) {
      throw DataError(fmt::format("{}: line {}: {}; repair the file, or leave such lines out", path_.string(),
                                  line, reason));
    }
    // Each takes memory, and packed files may have any number.
    constexpr std::size_t most = 1'000'000;
    if (bad_lines_.size() == most)
      throw DataError(
          fmt::format("{}: line {}: {}; more than {} lines cannot be used: are these word vectors?",
                      path_.string(), line, reason, most));
    bad_lines_.push_back({.line = line, .reason = std::move(reason)});
  }

  /// Finds out the dimension and whether there is a header. No single line, which may be a bad one, says how many
  /// numbers there are: most of the first lines do.
  void read_first_lines() {
    constexpr std::size_t looked_at = 100;
    std::vector<std::string> first;
    while (first.size() < looked_at) {
      const auto line = lines_.next();
      if (!line) break;
      first.emplace_back(*line);
    }
    const auto header = first.empty() ? std::nullopt : header_in(first[0]);
    const std::size_t behind = header ? usual_numbers(std::span(first).subspan(1)) : 0;
    // A line of two integers may as well be a word, written in digits, with a vector of one number. It is a header if
    // the lines after it have as many numbers as it says, or have more than one.
    if (header && behind > 0 && (behind == header->dimension || behind > 1)) {
      header_ = header;
      if (behind != header->dimension)
        bad(1, fmt::format("expected the dimension of most lines that follow, {}, found {}", behind,
                           header->dimension));
    }
    const std::size_t dimension = header_ ? behind : usual_numbers(first);
    if (dimension == 0)
      throw DataError(fmt::format("{}: line 1: expected a word and its numbers, found none", path_.string()));
    vectors_.emplace(dimension);
    for (std::size_t i = header_ ? 1 : 0; i < first.size(); ++i) add(i + 1, first[i]);
  }

  /// How many numbers most of the lines have that have any; of several such counts the one that comes first.
  static std::size_t usual_numbers(std::span<const std::string> lines) {
    std::map<std::size_t, std::size_t> occurrences;
    for (const std::string& line : lines) ++occurrences[count_numbers(line)];
    std::size_t usual = 0, most = 0;
    for (const std::string& line : lines)
      if (const std::size_t count = count_numbers(line); count > 0 && occurrences[count] > most) {
        usual = count;
        most = occurrences[count];
      }
    return usual;
  }

  void add(std::size_t number, std::string_view line) {
    values_.clear();
    const std::string_view word = take_field(line);
    if (word.empty()) return bad(number, "expected a word and its numbers, found an empty line");
    if (const auto invalid = first_invalid_utf8(word))
      return bad(number, fmt::format("expected UTF-8, found {}", byte_text(word[*invalid])));
    for (auto field = take_field(line); !field.empty(); field = take_field(line))
      if (!add_number(number, field)) return;
    if (values_.size() != vectors_->dimension()) {
      return bad(number, fmt::format("expected {} numbers after '{}', found {}", vectors_->dimension(), word,
                                     values_.size()));
    }
    if (vectors_->add(word, values_)) {
      line_of_.push_back(number);
      require_memory_for_words();
    } else {
      bad(number, fmt::format("expected a new word, found '{}' of line {} again", word,
                              line_of_[*vectors_->find(word)]));
    }
  }

  /// Asked when words are one, two, four ...
  void require_memory_for_words() const {
    const std::size_t words = vectors_->size();
    if ((words & (words - 1)) != 0) return;
    constexpr double bytes_of_a_word = 200;
    numerics::require_memory(
        path_.string(), fmt::format("{} or more words with {} numbers each", words, vectors_->dimension()),
        2.0 * static_cast<double>(words) *
            (bytes_of_a_word + sizeof(float) * static_cast<double>(vectors_->dimension())),
        "take fewer words");
  }

  bool add_number(std::size_t number, std::string_view field) {
    // std::from_chars() takes no plus sign.
    const std::string_view digits = field.starts_with('+') ? field.substr(1) : field;
    float value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    // std::from_chars() reports numbers that are too close to 0 for a float like those that are
    // too large. They count as 0 if a double can hold them.
    if (error == std::errc::result_out_of_range && is_tiny(digits)) {
      value = 0;
    } else if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) {
      bad(number,
          fmt::format("expected a finite number as field {}, found '{}'", values_.size() + 2, shown(field)));
      return false;
    }
    values_.push_back(value);
    return true;
  }

  static bool is_tiny(std::string_view digits) {
    double value = 1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && std::abs(value) < 1;
  }

  /// A field for a message, even if it is long or no text.
  static std::string shown(std::string_view field) {
    if (first_invalid_utf8(field)) return "bytes that are not UTF-8";
    return field.size() <= 40 ? std::string(field) : fmt::format("{} bytes", field.size());
  }

  const std::filesystem::path& path_;
  TextLines lines_;
  BadLines policy_;
  std::optional<Header> header_;
  std::optional<WordVectors> vectors_;
  std::vector<BadLine> bad_lines_;
  std::vector<std::size_t> line_of_;  ///< Where each word stands.
  std::vector<float> values_;         ///< The numbers of the line at hand.
};

}  // namespace

WordVectorFile read_word_vectors(const std::filesystem::path& path, BadLines bad_lines) {
  return Reader(path, bad_lines).read();
}

}  // namespace widelimit::data

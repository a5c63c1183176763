#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "data/gzip.hpp"
#include "data/input_file.hpp"
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

/// Asked when words are one, two, four ...
void require_memory_for_words(const std::filesystem::path& path, const WordVectors& vectors) {
  const std::size_t words = vectors.size();
  if ((words & (words - 1)) != 0) return;
  constexpr double bytes_of_a_word = 200;
  numerics::require_memory(path.string(),
                           fmt::format("{} or more words with {} numbers each", words, vectors.dimension()),
                           2.0 * static_cast<double>(words) *
                               (bytes_of_a_word + sizeof(float) * static_cast<double>(vectors.dimension())),
                           "take fewer words");
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
      require_memory_for_words(path_, *vectors_);
    } else {
      bad(number, fmt::format("expected a new word, found '{}' of line {} again", word,
                              line_of_[*vectors_->find(word)]));
    }
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

/// The bytes of a file, unpacked if gzip packed them, one after another.
class Bytes {
 public:
  explicit Bytes(const std::filesystem::path& path) : file_{path} {
    std::array<std::uint8_t, 2> start{};
    if (file_.size() >= start.size()) file_.read(0, start.data(), start.size(), "word vectors");
    if (is_gzip(start)) packed_.emplace(file_);
  }

  /// Bytes that come next, fewer at the end; how many.
  std::size_t read(char* to, std::size_t count) {
    std::size_t done = 0;
    while (done < count && (at_ < block_.size() || fill())) {
      const std::size_t some = std::min(count - done, block_.size() - at_);
      std::copy_n(block_.data() + at_, some, to + done);
      at_ += some;
      done += some;
    }
    passed_ += done;
    return done;
  }
  /// Up to `end`, which is taken too and no part of it; nothing if more than `most` bytes come before, or the file
  /// ends.
  std::optional<std::string> until(char end, std::size_t most) {
    std::string text;
    char next = 0;
    while (text.size() <= most && read(&next, 1) == 1) {
      if (next == end) return text;
      text += next;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::uint64_t passed() const { return passed_; }

 private:
  bool fill() {
    constexpr std::size_t block_bytes = std::size_t{1} << 18;
    at_ = 0;
    if (packed_) {
      block_.resize(block_bytes);
      block_.resize(packed_->read({reinterpret_cast<std::uint8_t*>(block_.data()), block_.size()}));
    } else {
      block_.resize(std::min<std::uint64_t>(block_bytes, file_.size() - filled_));
      file_.read(filled_, block_.data(), block_.size(), "word vectors");
    }
    filled_ += block_.size();
    return !block_.empty();
  }

  InputFile file_;
  std::optional<GzipReader> packed_;
  std::string block_;
  std::size_t at_ = 0;
  std::uint64_t filled_ = 0, passed_ = 0;
};

constexpr std::size_t longest_binary_word = 10'000;

/// The header of a binary file: behind "WORDS DIMENSION", a word and a blank are control characters, which no text has.
std::optional<Header> binary_header(const std::filesystem::path& path) {
  constexpr std::size_t longest_header = 60, least = 256, most = 4096;
  Bytes bytes(path);
  const auto line = bytes.until('\n', longest_header);
  const auto header = line ? header_in(*line) : std::nullopt;
  if (!header || header->dimension == 0 || !bytes.until(' ', longest_binary_word)) return std::nullopt;
  std::string numbers(std::clamp(std::min(header->dimension, most) * sizeof(float), least, most), '\0');
  numbers.resize(bytes.read(numbers.data(), numbers.size()));
  const bool is_text = std::ranges::none_of(
      numbers, [](unsigned char c) { return c < 0x20 && c != '\t' && c != '\n' && c != '\r'; });
  return is_text ? std::nullopt : header;
}

/// word2vec's binary files: after the header words, each with a blank and its numbers as they are in memory, float32,
/// and perhaps an end of line.
class BinaryReader {
 public:
  BinaryReader(const std::filesystem::path& path, Header header, BadLines policy)
      : path_{path}, bytes_{path}, header_{header}, policy_{policy}, vectors_{dimension_of(path, header)} {}

  WordVectorFile read() {
    static_cast<void>(bytes_.until('\n', longest_binary_word));
    std::vector<float> numbers(header_.dimension);
    for (std::size_t k = 1; k <= header_.words; ++k) {
      auto word = bytes_.until(' ', longest_binary_word);
      if (!word) cut(k, "a word and a blank");
      word->erase(0, word->find_first_not_of('\n'));  // The end of the line before.
      const std::size_t wanted = numbers.size() * sizeof(float);
      if (bytes_.read(reinterpret_cast<char*>(numbers.data()), wanted) != wanted)
        cut(k, fmt::format("{} numbers of 4 bytes", numbers.size()));
      add(k, *word, numbers);
    }
    char rest = '\n';
    while (rest == '\n' && bytes_.read(&rest, 1) == 1) continue;
    if (rest != '\n')
      fail_at(path_, bytes_.passed() - 1,
              fmt::format("the end behind {} words, as line 1 says", header_.words), "more bytes");
    if (vectors_.size() == 0) throw DataError(fmt::format("{}: no word is usable", path_.string()));
    return {.vectors = std::move(vectors_), .bad_lines = std::move(bad_)};
  }

 private:
  static std::size_t dimension_of(const std::filesystem::path& path, const Header& header) {
    constexpr std::size_t most = 1'000'000;
    if (header.dimension > most)
      throw DataError(fmt::format("{}: line 1: expected a dimension of at most {}, found {}", path.string(),
                                  most, header.dimension));
    return header.dimension;
  }

  [[noreturn]] void cut(std::size_t k, std::string_view expected) const {
    fail_at(path_, bytes_.passed(), fmt::format("{} as word {} of {}", expected, k, header_.words),
            "the end of the file (it is truncated), or other bytes");
  }

  void add(std::size_t k, const std::string& word, std::span<const float> numbers) {
    if (word.empty()) return bad(k, "expected a word, found none");
    if (const auto invalid = first_invalid_utf8(word))
      return bad(k, fmt::format("expected UTF-8, found {}", byte_text(word[*invalid])));
    if (!std::ranges::all_of(numbers, [](float value) { return std::isfinite(value); }))
      return bad(k, fmt::format("expected finite numbers of '{}'", word));
    if (!vectors_.add(word, numbers))
      return bad(k, fmt::format("expected a new word, found '{}' again", word));
    require_memory_for_words(path_, vectors_);
  }

  /// Words count as lines behind the header.
  void bad(std::size_t k, std::string reason) {
    constexpr std::size_t most = 1'000'000;
    if (policy_ == BadLines::reject || bad_.size() == most)
      throw DataError(fmt::format("{}: word {}: {}; repair the file, or leave such words out", path_.string(),
                                  k, reason));
    bad_.push_back({.line = k + 1, .reason = std::move(reason)});
  }

  const std::filesystem::path& path_;
  Bytes bytes_;
  Header header_;
  BadLines policy_;
  WordVectors vectors_;
  std::vector<BadLine> bad_;
};

}  // namespace

WordVectorFile read_word_vectors(const std::filesystem::path& path, BadLines bad_lines) {
  if (const auto header = binary_header(path)) return BinaryReader(path, *header, bad_lines).read();
  return Reader(path, bad_lines).read();
}

}  // namespace widelimit::data

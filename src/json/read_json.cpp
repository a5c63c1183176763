#include "widelimit/json/read_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <system_error>
#include <vector>

#include "json/json_value.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/regular_file.hpp"

namespace widelimit {
namespace {

using nlohmann::json;

constexpr std::size_t largest_file = std::size_t{256} << 20;
/// A list or object takes some hundred bytes of memory, however short it is in the file.
constexpr std::size_t most_lists_and_objects = 1'000'000;
constexpr std::size_t longest_text = std::size_t{1} << 20;

/// Builds a document from the parser's events and refuses what JSON allows but no file of ours can mean.
class StrictBuilder final : public json::json_sax_t {
 public:
  StrictBuilder(std::string_view text, const std::string& name) : text_{text}, name_{name} {}

  json take() { return std::move(document_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override {
    require_short(value);
    return put(std::move(value));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    require_short(key);
    if (open_.back().value.contains(key))
      fail(fmt::format("{}: expected every key once, found {} again", path(), shown_json(key)));
    open_.back().key = std::move(key);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token, const json::exception& error) override {
    constexpr int number_overflow = 406;
    if (error.id == number_overflow)
      fail(fmt::format("{}: expected a number within the range of double, got {}", path(), cut_text(token)));
    fail_at(position, reason(error));
  }

  /// A byte of value 0 at this place.
  [[noreturn]] void refuse_zero(std::size_t place) const {
    fail_at(place + 1, "a byte of value 0, which no text holds: the file is damaged, or not in UTF-8");
  }

 private:
  /// A list or object whose end has not come, and the key of what comes next in it.
  struct Frame {
    json value;
    std::string key;
  };

  [[noreturn]] void fail(const std::string& message) const {
    throw DataError(fmt::format("{}: {}", name_, message));
  }

  /// `position`: bytes that were read.
  [[noreturn]] void fail_at(std::size_t position, const std::string& what) const {
    const std::string_view read = text_.substr(0, std::min(position, text_.size()));
    const auto line = 1 + std::count(read.begin(), read.end(), '\n');
    const std::size_t newline = read.rfind('\n');
    const std::size_t column = newline == std::string_view::npos ? read.size() : read.size() - newline - 1;
    fail(fmt::format("not JSON at line {}, column {}: {}", line, column, what));
  }

  /// Where the value that comes next stands, for errors.
  std::string path() const {
    std::string path;
    for (const Frame& frame : open_) {
      if (frame.value.is_array()) path += fmt::format("[{}]", frame.value.size());
      if (frame.value.is_object() && !frame.key.empty())
        path += fmt::format("{}{}", path.empty() ? "" : ".", cut_text(frame.key));
    }
    return path.empty() ? "document" : path;
  }

  /// The library's message after its codes and positions.
  static std::string reason(const json::exception& error) {
    const std::string_view text = error.what();
    const std::size_t column = text.find(", column ");
    const std::size_t colon = column == std::string_view::npos ? column : text.find(": ", column);
    return cut_text(colon == std::string_view::npos ? text : text.substr(colon + 2), 160);
  }

  void require_short(const string_t& text) const {
    if (text.size() > longest_text)
      fail(fmt::format("{}: expected texts of at most {} bytes, found {}: {}", cut_text(path(), 160),
                       longest_text, text.size(), cut_text(text)));
  }

  bool open(json value) {
    if (++opened_ > most_lists_and_objects)
      fail(fmt::format("{}: expected at most {} lists and objects in all, found more", cut_text(path(), 160),
                       most_lists_and_objects));
    if (open_.size() == deepest_json)
      fail(fmt::format("{}: expected at most {} lists and objects within one another, found more",
                       cut_text(path(), 160), deepest_json));
    open_.push_back({std::move(value), ""});
    return true;
  }

  bool close() {
    json value = std::move(open_.back().value);
    open_.pop_back();
    return put(std::move(value));
  }

  bool put(json value) {
    if (open_.empty()) {
      document_ = std::move(value);
    } else if (Frame& frame = open_.back(); frame.value.is_array()) {
      frame.value.push_back(std::move(value));
    } else {
      frame.value[frame.key] = std::move(value);
      frame.key.clear();
    }
    return true;
  }

  std::string_view text_;
  const std::string& name_;
  json document_;
  std::vector<Frame> open_;
  std::size_t opened_ = 0;
};

[[noreturn]] void refuse_size(const std::filesystem::path& file) {
  throw DataError(fmt::format("{}: expected a JSON file of at most {} MiB, found more", file.string(),
                              largest_file >> 20));
}

/// A device or pipe, which is read to its end.
std::string text_of_stream(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (stream && text.size() <= largest_file) {
    stream.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (text.size() > largest_file) refuse_size(file);
  if (!stream.eof())
    throw DataError(
        fmt::format("{}: cannot be read: {}", file.string(), std::generic_category().message(errno)));
  return text;
}

std::string text_of(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status))
    throw DataError(fmt::format("{}: expected a JSON file, found none", file.string()));
  if (std::filesystem::is_directory(status))
    throw DataError(fmt::format("{}: expected a JSON file, found a folder", file.string()));
  if (!std::filesystem::is_regular_file(status) && !files::pipes_are_refused()) return text_of_stream(file);
  const files::RegularFile regular(file);
  if (regular.size() > largest_file) refuse_size(file);
  std::string text(regular.size(), '\0');
  text.resize(regular.read(0, text.data(), text.size()));
  return text;
}

template <typename Error>
[[noreturn]] void throw_named(const std::string& name, const Error& error) {
  const std::string_view message = error.what();
  if (message.starts_with(name + ":")) throw;
  throw Error(fmt::format("{}: {}", name, message));
}

}  // namespace

json parse_json(std::string_view text, const std::string& name) {
  StrictBuilder builder(text, name);
  // The parser would take it for the end.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) builder.refuse_zero(zero);
  json::sax_parse(text, &builder);
  return builder.take();
}

json read_json(const std::filesystem::path& file) { return parse_json(text_of(file), file.string()); }

void rethrow_named(const std::string& name) {
  try {
    throw;
  } catch (const NetworkError& error) {
    throw_named(name, error);
  } catch (const ArgumentError& error) {
    throw_named(name, error);
  } catch (const DataError& error) {
    throw_named(name, error);
  } catch (const NumericalError& error) {
    throw_named(name, error);
  } catch (const json::exception& error) {
    throw DataError(fmt::format("{}: {}", name, error.what()));
  }
}

}  // namespace widelimit

#include "data/text_lines.hpp"

#include <fmt/format.h>

#include "widelimit/error.hpp"

namespace widelimit::data {
namespace {

constexpr std::size_t longest_line = std::size_t{1} << 24;

}  // namespace

bool TextLines::read_block() {
  buffer_.erase(0, position_);
  position_ = 0;
  return source_.append_block(buffer_);
}

std::string_view TextLines::bare(std::string_view line) {
  ++line_;
  if (line.find('\0') != std::string_view::npos)
    throw DataError(
        fmt::format("{}: line {}: expected text, found {}", source_.path().string(), line_, zero_byte_found));
  if (line.ends_with('\r')) line.remove_suffix(1);
  // Files that were put together have a mark at the beginning of each.
  while (line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
  return line;
}

std::optional<std::string_view> TextLines::next() {
  // When a block is added, what has been searched is not searched again.
  std::size_t searched = 0;
  while (true) {
    const std::string_view rest = std::string_view(buffer_).substr(position_);
    const std::size_t length = rest.find('\n', searched);
    if (length != std::string_view::npos) {
      position_ += length + 1;
      return bare(rest.substr(0, length));
    }
    if (rest.size() > longest_line) {
      throw DataError(fmt::format("{}: line {}: expected text, found {} bytes without a newline",
                                  source_.path().string(), line_ + 1, rest.size()));
    }
    searched = rest.size();
    if (read_block()) continue;
    // The last line may lack a newline. The block that was asked for has moved it.
    if (buffer_.empty()) return std::nullopt;
    position_ = buffer_.size();
    return bare(buffer_);
  }
}

}  // namespace widelimit::data

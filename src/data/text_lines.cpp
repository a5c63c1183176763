#include "data/text_lines.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "widelimit/error.hpp"

namespace widelimit::data {
namespace {

constexpr std::size_t block_size = std::size_t{1} << 20, longest_line = std::size_t{1} << 24;

std::string_view without_carriage_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

bool TextLines::read_block() {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(block_size, file_.size() - offset_));
  if (count == 0) return false;
  buffer_.erase(0, position_);
  position_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + count);
  file_.read(offset_, buffer_.data() + kept, count, "lines");
  offset_ += count;
  return true;
}

std::optional<std::string_view> TextLines::next() {
  // When a block is added, what has been searched is not searched again.
  std::size_t searched = 0;
  while (true) {
    const std::string_view rest = std::string_view(buffer_).substr(position_);
    const std::size_t length = rest.find('\n', searched);
    if (length != std::string_view::npos) {
      position_ += length + 1;
      ++line_;
      return without_carriage_return(rest.substr(0, length));
    }
    if (rest.size() > longest_line) {
      throw DataError(fmt::format("{}: line {}: expected text, found {} bytes without a newline",
                                  file_.path().string(), line_ + 1, rest.size()));
    }
    searched = rest.size();
    if (read_block()) continue;
    // The last line may lack a newline.
    if (rest.empty()) return std::nullopt;
    position_ = buffer_.size();
    ++line_;
    return without_carriage_return(rest);
  }
}

}  // namespace widelimit::data

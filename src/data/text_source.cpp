#include "data/text_source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "data/file_kind.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::data {
namespace {

constexpr std::size_t block_size = std::size_t{1} << 20;
/// Of what was packed and has no other limit, at once in memory.
constexpr std::uint64_t most_unpacked = std::uint64_t{1} << 30;

}  // namespace

TextSource::TextSource(const std::filesystem::path& path, TextContent content) : file_{path} {
  std::uint8_t two[2] = {};
  const std::size_t count = std::min<std::uint64_t>(sizeof two, file_.size());
  file_.read(0, two, count, "text");
  if (is_gzip(std::span(two).first(count))) gzip_.emplace(file_);
  const std::string_view start = bytes();
  if (const auto kind = binary_file_kind(start)) fail_as(*kind);
  if (has_utf16_mark(start)) utf16_.emplace();
  add(first_, start);
  for (; first_.starts_with(byte_order_mark); mark_bytes_ += byte_order_mark.size())
    first_.erase(0, byte_order_mark.size());
  if (content == TextContent::lines)
    if (const auto kind = marked_up_file_kind(first_)) fail_as(*kind);
}

void TextSource::fail_as(const FileKind& kind) const {
  throw DataError(fmt::format("{}: expected text, found {}{}; {}", path().string(), kind.what,
                              gzip_ ? ", packed by gzip" : "", kind.advice));
}

std::optional<std::uint64_t> TextSource::known_size() const {
  return gzip_ || utf16_ ? std::nullopt : std::optional(file_.size());
}

std::string_view TextSource::bytes() {
  // Small files, of which there are many, take small blocks.
  constexpr std::uint64_t least = 4096, growth = 64;
  std::size_t count = std::min<std::uint64_t>(block_size, file_.size() - offset_);
  if (gzip_) {
    block_.resize(std::min<std::uint64_t>(block_size, std::max(least, growth * file_.size())));
    count = gzip_->read({reinterpret_cast<std::uint8_t*>(block_.data()), block_.size()});
  } else {
    block_.resize(count);
    file_.read(offset_, block_.data(), count, "text");
    offset_ += count;
  }
  is_at_end_ = count == 0;
  return std::string_view(block_).substr(0, count);
}

void TextSource::add(std::string& text, std::string_view bytes) {
  if (!utf16_) {
    text += bytes;
    return;
  }
  try {
    utf16_->append(text, bytes);
    if (is_at_end_) utf16_->finish();
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}{}", path().string(), gzip_ ? "unpacked, " : "", error.what()));
  }
}

bool TextSource::append_block(std::string& text) {
  const std::size_t before = text.size();
  text += first_;
  first_.clear();
  while (text.size() == before && !is_at_end_) add(text, bytes());
  return text.size() > before;
}

std::string TextSource::all(std::uint64_t most, std::string_view what) {
  const auto require_at_most = [&](std::uint64_t size, std::string_view found) {
    if (size > most)
      throw DataError(
          fmt::format("{}: expected {} of at most {} bytes, found {}", path().string(), what, most, found));
  };
  const auto require_memory = [&](double size) {
    numerics::require_memory(path().string(), "the content of the file", size, "is it the right file?");
  };
  if (const auto size = known_size()) {
    require_at_most(*size, std::to_string(*size));
    require_memory(static_cast<double>(*size));
  }
  std::string text;
  std::size_t expected = 0;
  for (std::size_t before = 0; append_block(text); before = text.size()) {
    require_at_most(text.size(), "more");
    if (gzip_ && text.size() > most_unpacked)
      throw DataError(
          fmt::format("{}: expected {} of at most {} bytes when unpacked, found more; if that is right, "
                      "unpack it (gunzip)",
                      path().string(), what, most_unpacked));
    // No text: whoever asked says where it stands.
    if (text.find('\0', before) != std::string::npos) break;
    if (known_size() || text.size() <= expected) continue;
    // What is packed may be a thousand times as long.
    expected = 2 * text.size();
    require_memory(static_cast<double>(expected));
  }
  return text;
}

}  // namespace widelimit::data

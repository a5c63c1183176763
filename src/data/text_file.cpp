#include "widelimit/data/text_file.hpp"

#include "data/text_source.hpp"
#include "text/utf8.hpp"

namespace widelimit::data {

std::string read_text(const std::filesystem::path& path, std::uint64_t most, std::string_view what) {
  TextSource source(path, TextContent::free);
  std::string text = source.all(most, what);
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos)
    fail_at(path, zero + source.mark_bytes(), "text", zero_byte_found);
  if (const auto invalid = first_invalid_utf8(text))
    fail_at(path, *invalid + source.mark_bytes(), "UTF-8", byte_text(text[*invalid]));
  return text;
}

}  // namespace widelimit::data

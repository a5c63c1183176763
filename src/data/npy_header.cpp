#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <string_view>

#include "data/array_bytes.hpp"
#include "data/file_kind.hpp"
#include "data/gzip.hpp"
#include "data/npy_elements.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"

namespace widelimit::data {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they stand in the file");

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::string_view supported =
    "bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32 or float64";
/// By which other files are recognised.
constexpr std::size_t longest_start = 4096;
constexpr std::size_t most_axes = 64;  // NumPy's limit.
/// Version 1 of the format allows as much. NumPy itself refuses more than 10,000 bytes.
constexpr std::size_t longest_header = 65'535;

/// The element's code with its byte order, as NumPy writes it; a single byte has no order.
std::string full_code(NpyType type, bool big_endian = false) {
  const NpyElement& element = element_of(type);
  return fmt::format("{}{}", element.bytes == 1 ? '|' : big_endian ? '>' : '<', element.code);
}

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const bool plain = c >= 0x20 && c < 0x7f;
    shown += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return shown;
}

/// A type's code as an error shows it, with what it stands for if that is known: "'<U1' (texts)".
std::string shown_type(std::string_view code) {
  const std::size_t letter = code.find_first_not_of("<>=|");
  const char kind = letter == std::string_view::npos ? '\0' : code[letter];
  const char* what = kind == 'U' || kind == 'S' || kind == 'a' ? " (texts; give numbers, of classes integers)"
                     : kind == 'M' || kind == 'm'              ? " (dates or durations; give numbers)"
                     : kind == 'c'                             ? " (complex numbers)"
                     : kind == 'V'                             ? " (bytes of no type)"
                                                               : "";
  return fmt::format("'{}'{}", printable(code.substr(0, 24)), what);
}

std::string shape_text(std::span<const std::size_t> shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

/// Reads the header's Python dictionary literal; positions in errors are offsets in the file.
class HeaderParser {
 public:
  HeaderParser(const std::filesystem::path& path, std::string_view text, std::uint64_t offset)
      : path_{path}, text_{text}, offset_{offset} {}

  NpyHeader parse() {
    expect('{', "a dictionary beginning with '{'");
    while (!accept('}')) {
      entry();
      if (accept('}')) break;
      expect(',', "',' or '}' after an entry of the dictionary");
    }
    skip_blanks();
    if (at_ < text_.size()) fail("blanks up to the end of the header");
    if (!type_ || !fortran_order_ || !shape_) {
      fail_at(path_, offset_, "a dictionary with the keys 'descr', 'fortran_order' and 'shape'",
              fmt::format("'{}'", printable(text_)));
    }
    return {*type_, *shape_, offset_ + text_.size(), big_endian_, *fortran_order_};
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    const auto rest = text_.substr(at_, 24);
    fail_at(path_, offset_ + at_, expected,
            rest.empty() ? "the end of the header" : fmt::format("'{}'", printable(rest)));
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }

  bool accept(char wanted) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted, std::string_view expected) {
    if (!accept(wanted)) fail(expected);
  }

  std::string_view quoted(std::string_view expected) {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const std::size_t end =
        quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail(expected);
    const auto inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }

  void entry() {
    skip_blanks();
    const std::size_t start = at_;
    const auto key = quoted("a quoted key");
    expect(':', "':' after a key");
    skip_blanks();
    if (key == "descr" && !type_) {
      type_ = type();
    } else if (key == "fortran_order" && !fortran_order_) {
      fortran_order_ = fortran_order();
    } else if (key == "shape" && !shape_) {
      shape_ = shape();
    } else {
      at_ = start;
      fail("each of the keys 'descr', 'fortran_order' and 'shape' once and no other");
    }
  }

  NpyType type() {
    const std::size_t start = at_;
    if (start < text_.size() && (text_[start] == '[' || text_[start] == '('))
      fail_at(path_, offset_ + start, fmt::format("the element type {}", supported),
              "a structured type; save its fields one by one, as columns of one array");
    auto code = quoted(fmt::format("the element type {}", supported));
    const std::string shown = shown_type(code);
    const char order = code.empty() ? '\0' : code.front();
    // '<' is little-endian, '>' big-endian, '=' the order of this machine and '|' that of
    // single bytes, which have none.
    if (order == '<' || order == '>' || order == '=' || order == '|') code.remove_prefix(1);
    for (const NpyElement& element : npy_elements) {
      // ml_dtypes gives bfloat16 an order; bytes of no type, "|V2", have none.
      if (element.type == NpyType::bfloat16 && order != '<' && order != '>' && order != '=') continue;
      if (code != element.code || (order == '|' && element.bytes > 1)) continue;
      big_endian_ = order == '>' && element.bytes > 1;
      return element.type;
    }
    const bool pickled = code.find('O') != std::string_view::npos;
    fail_at(path_, offset_ + start,
            fmt::format("the element type {}{}", supported,
                        pickled ? " (pickled Python objects are not read)" : ""),
            shown);
  }

  bool fortran_order() {
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail("False or True");
  }

  std::vector<std::size_t> shape() {
    std::vector<std::size_t> extents;
    expect('(', "a shape beginning with '('");
    bool comma = true;
    while (!accept(')')) {
      if (!comma) fail("',' or ')' after an extent");
      if (extents.size() == most_axes) fail(fmt::format("at most {} axes", most_axes));
      extents.push_back(extent());
      comma = accept(',');
    }
    // "(3)" is no tuple but the number 3.
    if (extents.size() == 1 && !comma) fail("',' before the ')' of a shape with one extent");
    return extents;
  }

  std::size_t extent() {
    skip_blanks();
    const std::size_t start = at_;
    std::size_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      const auto digit = static_cast<std::size_t>(text_[at_] - '0');
      if (value > (std::numeric_limits<std::size_t>::max() - digit) / 10) {
        at_ = start;
        fail("an extent below 2^64");
      }
      value = 10 * value + digit;
      ++at_;
    }
    if (at_ == start) fail("a whole number as an extent of the shape");
    // Python 2 wrote long integers with an L at the end.
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  const std::filesystem::path& path_;
  std::string_view text_;
  std::uint64_t offset_;
  std::size_t at_ = 0;
  std::optional<NpyType> type_;
  std::optional<std::vector<std::size_t>> shape_;
  std::optional<bool> fortran_order_;
  bool big_endian_ = false;
};

/// Bytes of all values, or nothing if they are too many for 63 bits. An extent of 0 leaves no values, but the product
/// of the other extents must still fit into an index.
std::optional<std::uint64_t> value_bytes(const NpyHeader& header) {
  std::uint64_t bytes = size_of(header.type);
  bool empty = false;
  for (const std::size_t extent : header.shape) {
    if (extent == 0) {
      empty = true;
    } else if (extent >= (std::uint64_t{1} << 63) / bytes) {
      return std::nullopt;
    } else {
      bytes *= extent;
    }
  }
  return empty ? 0 : bytes;
}

void check_length(const ArrayBytes& file, const NpyHeader& header) {
  const auto wanted = value_bytes(header);
  const std::uint64_t held = file.size() - header.data_offset;
  if (wanted == held) return;
  const std::string bytes = wanted ? fmt::format("{} bytes", *wanted) : std::string("more than 2^63 bytes");
  const bool longer = wanted && held > *wanted;
  fail_at(file.path(), longer ? header.data_offset + *wanted : file.size(),
          fmt::format("{} of values for shape {} of '{}' from offset {}", bytes, shape_text(header.shape),
                      full_code(header.type, header.big_endian), header.data_offset),
          fmt::format("{} (the file is {})", held, longer ? "longer than its header says" : "truncated"));
}

}  // namespace

std::size_t size_of(NpyType type) { return element_of(type).bytes; }

bool is_floating_point(NpyType type) {
  return type == NpyType::float16 || type == NpyType::bfloat16 || type == NpyType::float32 ||
         type == NpyType::float64;
}

std::size_t NpyHeader::size() const {
  std::size_t product = 1;
  for (const std::size_t extent : shape) product *= extent;
  return product;
}

NpyHeader read_npy_header(const std::filesystem::path& path) {
  ArrayBytes file(path);
  if (file.tensor()) return *file.tensor();
  std::array<char, 12> start{};
  file.read(0, start.data(), 8, "magic and version of a .npy file");
  const std::string_view found_magic(start.data(), magic.size());
  if (found_magic != magic) {
    std::string beginning(std::min<std::uint64_t>(longest_start, file.size()), '\0');
    file.read(0, beginning.data(), beginning.size(), "content");
    const std::array<std::uint8_t, 2> two{static_cast<std::uint8_t>(beginning[0]),
                                          static_cast<std::uint8_t>(beginning[1])};
    const std::optional<FileKind> kind =
        is_gzip(two) ? FileKind{"gzip data", "unpack it (gunzip)"} : binary_file_kind(beginning);
    fail_at(file.path(), 0, "the magic bytes '\\x93NUMPY' of a .npy file",
            fmt::format("'{}'{}", printable(found_magic),
                        kind ? fmt::format(": {}; {}", kind->what, kind->advice) : ""));
  }
  const int major = static_cast<unsigned char>(start[6]);
  const int minor = static_cast<unsigned char>(start[7]);
  if (major < 1 || major > 3 || minor != 0) {
    fail_at(file.path(), 6, "format version 1.0, 2.0 or 3.0", fmt::format("{}.{}", major, minor));
  }
  // Version 1 has two bytes for the length of the header, later versions have four; the lowest byte comes first.
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  file.read(8, start.data() + 8, length_bytes, "header length");
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(start[8 + i]);
  }
  const std::uint64_t offset = 8 + length_bytes;
  if (length > longest_header)
    fail_at(file.path(), 8, fmt::format("a header of at most {} bytes", longest_header),
            fmt::format("{}", length));
  if (length > file.size() - offset) {
    fail_at(file.path(), offset, fmt::format("{} bytes of header", length),
            fmt::format("{} before the end of the file", file.size() - offset));
  }
  std::string text(length, '\0');
  file.read(offset, text.data(), length, "header");
  NpyHeader header = HeaderParser(file.path(), text, offset).parse();
  check_length(file, header);
  return header;
}

std::string npy_header_bytes(NpyType type, std::span<const std::size_t> shape) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", full_code(type),
                                 shape_text(shape));
  // Blanks and a newline fill the header up to a multiple of 64 bytes, as the format asks.
  // Six bytes of magic, two of version and two of the header's length.
  constexpr std::size_t fixed = 10;
  const std::size_t total = (fixed + text.size() + 1 + 63) / 64 * 64;
  text.resize(total - fixed - 1, ' ');
  text += '\n';
  if (text.size() > longest_header) {
    throw ArgumentError(
        fmt::format("npy header: a shape with {} extents needs {} bytes of header, at most 65535 fit",
                    shape.size(), text.size()));
  }
  std::string bytes(magic);
  bytes += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return bytes + text;
}

}  // namespace widelimit::data

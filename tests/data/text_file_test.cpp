#include "widelimit/data/text_file.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "data/encoded.hpp"
#include "support/error_message.hpp"
#include "widelimit/data/csv.hpp"
#include "widelimit/data/word_vectors.hpp"
#include "widelimit/error.hpp"

using namespace widelimit::data;
using namespace std::literals;
using widelimit::DataError;

namespace {

constexpr std::uint64_t longest = 1 << 20;

std::string text_in(const std::string& bytes) {
  const TemporaryFolder folder;
  return read_text(folder.write("t", bytes), longest, "a text");
}

/// The message behind "FILE: " of what reading the bytes throws; empty if it throws nothing.
template <typename Read>
std::string message_of(const std::string& bytes, const Read& read) {
  const TemporaryFolder folder;
  const auto path = folder.write("t", bytes);
  try {
    read(path);
  } catch (const DataError& error) {
    const std::string message = error.what(), prefix = path.string() + ": ";
    REQUIRE(message.starts_with(prefix));
    return message.substr(prefix.size());
  }
  return "";
}

std::string text_error(const std::string& bytes) {
  return message_of(bytes, [](const auto& path) { static_cast<void>(read_text(path, longest, "a text")); });
}

const std::u16string all_planes = u"first w\u00f6rd \u20ac \U0001f600\n";
const std::string in_utf8 = "first w\u00f6rd \u20ac \U0001f600\n";

}  // namespace

TEST_CASE("text file: one text in every encoding, plain and packed") {
  const std::string mark(byte_order_mark);
  for (const std::string& bytes :
       {in_utf8, mark + in_utf8, mark + mark + in_utf8, utf16_bytes(u"\ufeff" + all_planes, true),
        utf16_bytes(u"\ufeff" + all_planes, false)}) {
    CHECK(text_in(bytes) == in_utf8);
    CHECK(text_in(packed(bytes)) == in_utf8);
    // Members of gzip follow each other, wherever they are cut.
    CHECK(text_in(packed(bytes.substr(0, 3)) + packed(bytes.substr(3))) == in_utf8);
  }
  for (const std::string& bytes : {""s, mark, "\xff\xfe"s, "\xfe\xff"s, packed(""), packed(mark)})
    CHECK(text_in(bytes).empty());
}

TEST_CASE("text file: units and pairs of UTF-16 across the blocks in which files are read") {
  for (std::size_t shift = 0; shift < 3; ++shift) {
    std::u16string text = u"\ufeff" + std::u16string(shift, u'a');
    std::string expected(shift, 'a');
    while (text.size() < 600'000) {
      text += u"\U0001f600";
      expected += "\U0001f600";
    }
    const TemporaryFolder folder;
    CHECK(read_text(folder.write("t", utf16_bytes(text, true)), 4 * longest, "a text") == expected);
  }
}

TEST_CASE("text file: what is damaged is named with its place") {
  CHECK(text_error("caf\xe9") == "offset 3: expected UTF-8, found byte 0xE9");
  CHECK(text_error("\xef\xbb\xbf"
                   "caf\xe9") == "offset 6: expected UTF-8, found byte 0xE9");
  CHECK(text_error("a\0b"s).starts_with(
      "offset 1: expected text, found a zero byte; is it binary, or UTF-16 without"));
  CHECK(text_error(utf16_bytes(u"without a mark", true))
            .starts_with("offset 1: expected text, found a zero byte"));
  CHECK(text_error("\xff\xfe"
                   "a\0b"s) ==
        "expected UTF-16 as its byte order mark says, found half a unit at offset 4 of the file");
  CHECK(text_error(packed("\xff\xfe"
                          "a\0b"s)) ==
        "unpacked, expected UTF-16 as its byte order mark says, found half a unit at offset 4 of the file");
  const std::string gzip = packed(in_utf8);
  CHECK(text_error(gzip.substr(0, gzip.size() - 9)).find("expected more gzip data") != std::string::npos);
  CHECK(text_error(gzip + "x").find("expected the end of the file or another gzip member") !=
        std::string::npos);
}

TEST_CASE("text file: more than is wanted is refused before it fills the memory") {
  CHECK(text_error(std::string(longest + 1, 'a')) ==
        "expected a text of at most 1048576 bytes, found 1048577");
  const std::string bomb = packed(std::string(std::size_t{1} << 30, 'a'));
  CHECK(bomb.size() < 2'000'000);
  CHECK(text_error(bomb) == "expected a text of at most 1048576 bytes, found more");
}

TEST_CASE("text file: what is no text is named, with what to do, by every reader, packed or not") {
  struct Case {
    std::string bytes, what;
  };
  const std::string matlab = std::string(124, ' ') + "\0\x01IM"s;
  std::string tar(257, '\0');
  tar += "ustar";
  for (const Case& file : std::vector<Case>{
           {"PK\x03\x04\x14\0\x06\0[Content_Types].xml"s, "an Excel workbook or another Office file"},
           {"PK\x03\x04\x14\0mimetypeapplication/vnd.oasis.opendocument.spreadsheet"s,
            "an OpenDocument file"},
           {"PK\x03\x04\x14\0x.npy"s, "a NumPy archive (.npz)"},
           {"PK\x03\x04\x14\0glove.6B.50d.txt"s, "a zip archive"},
           {"PAR1\x15\x04", "a Parquet file"},
           {"ARROW1\0\0"s, "an Arrow or Feather file"},
           {"FEA1\0\0"s, "a Feather file"},
           {"\xff\xff\xff\xff\x10", "a stream of Arrow"},
           {"\x89HDF\r\n\x1a\n", "an HDF5 file"},
           {"X\n\0\0\0\x03"s, "an R object (.rds)"},
           {"RDX3\nX\n", "an R workspace (.RData)"},
           {"BZh91AY&SY\x01", "bzip2 data"},
           {"BZh9\x17\x72\x45\x38\x50\x90", "bzip2 data"},
           {"\xfd"
            "7zXZ\0"s,
            "xz data"},
           {"\x28\xb5\x2f\xfd", "Zstandard data"},
           {"SQLite format 3\0"s, "an SQLite database"},
           {"\x80\x04\x95", "a pickle of Python"},
           {"\x93NUMPY\x01", "an array of NumPy (.npy)"},
           {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel or Word file (.xls, .doc)"},
           {"\xff\xfe\0\0a\0\0\0"s, "UTF-32"},
           {matlab, "a file of MATLAB"},
           {tar, "a tar archive"}}) {
    CAPTURE(file.what);
    for (const bool is_packed : {false, true}) {
      const std::string bytes = is_packed ? packed(file.bytes) : file.bytes;
      const std::string expected =
          "expected text, found " + file.what + (is_packed ? ", packed by gzip; " : "; ");
      CHECK(text_error(bytes).starts_with(expected));
      CHECK(message_of(bytes, [](const auto& path) {
              static_cast<void>(read_csv(path));
            }).starts_with(expected));
      CHECK(message_of(bytes, [](const auto& path) {
              static_cast<void>(read_word_vectors(path, BadLines::skip));
            }).starts_with(expected));
    }
  }
}

TEST_CASE("text file: marked-up files are no tables, but people may write about them") {
  for (const char* text :
       {"% title\n\n@RELATION iris\n", "<!DOCTYPE html>\n<html>", "<html>", "<?xml version=\"1.0\"?>",
        "version https://git-lfs.github.com/spec/v1\n", "%PDF-1.4"}) {
    CAPTURE(text);
    CHECK(text_in(text) == text);
    CHECK(message_of(text, [](const auto& path) {
            static_cast<void>(read_csv(path));
          }).starts_with("expected text, found "));
  }
  for (const char* text :
       {"PAR1 was a format", "BZh9 and more", "PK", "FEA1", "RDX3", "Obj", "A\n2", "X\n", "]"})
    CHECK(text_in(text) == text);
}

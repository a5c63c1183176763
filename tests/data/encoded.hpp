#pragma once

#include <doctest/doctest.h>
#include <zlib.h>

#include <string>
#include <string_view>

#include "data/temporary_folder.hpp"

/// What gzip makes of bytes.
inline std::string packed(const std::string& bytes) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "packed";
  gzFile file = gzopen(path.c_str(), "wb");
  const auto size = static_cast<unsigned>(bytes.size());
  REQUIRE(gzwrite(file, bytes.data(), size) == static_cast<int>(size));
  REQUIRE(gzclose(file) == Z_OK);
  return read_bytes(path);
}

/// The bytes of UTF-16 in either order; `text` begins with the mark if the file is to have it.
inline std::string utf16_bytes(std::u16string_view text, bool little) {
  std::string bytes;
  for (const char16_t unit : text)
    for (const int shift : {little ? 0 : 8, little ? 8 : 0}) bytes += static_cast<char>(unit >> shift & 0xff);
  return bytes;
}

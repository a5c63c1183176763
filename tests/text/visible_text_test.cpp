#include "widelimit/text/visible_text.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "text/utf8.hpp"

using widelimit::append_utf8;
using widelimit::first_invalid_utf8;
using widelimit::visible_json;
using widelimit::visible_lines;
using widelimit::visible_text;

namespace {

bool is_clean(const std::string& text, const std::string& allowed = "") {
  const auto is_bad = [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 || byte == 0x7F) && allowed.find(c) == std::string::npos;
  };
  return std::none_of(text.begin(), text.end(), is_bad) && !first_invalid_utf8(text);
}

}  // namespace

TEST_CASE("visible text: escapes take the place of what is obeyed") {
  CHECK(visible_text("two\nlines\r\tend") == R"(two\nlines\r\tend)");
  CHECK(visible_text("\x1b[31mred\x07\x7f") == R"(\x1b[31mred\x07\x7f)");
  CHECK(visible_text(std::string("zero\0", 5)) == R"(zero\x00)");
  // Some terminals take U+009B for ESC [.
  CHECK(visible_text("\u009b2J") == R"(\u009b2J)");
  CHECK(visible_text("\u2028\u2029\u202e\u2066") == R"(\u2028\u2029\u202e\u2066)");
  CHECK(visible_text("\u200eleft \u200fright \u061carabic \ufeffmark") ==
        R"(\u200eleft \u200fright \u061carabic \ufeffmark)");
  CHECK(visible_text("caf\xe9 \xc3") == R"(caf\xe9 \xc3)");
  CHECK(visible_text("K\u00e4se \u20ac \U0001F600 \\n 'a' \"b\" `c` $(d) \u05d0") ==
        "K\u00e4se \u20ac \U0001F600 \\n 'a' \"b\" `c` $(d) \u05d0");
  CHECK(visible_text("").empty());
}

TEST_CASE("visible lines: breaks and tabs stay, nothing else") {
  CHECK(visible_lines("a\tb\nc\r\x1b[0m\u0085") == "a\tb\nc\\r\\x1b[0m\\u0085");
}

TEST_CASE(
    "visible text: every byte and every pair of bytes comes out clean, and stays as it is the second time") {
  for (int first = 0; first < 256; ++first)
    for (int second = 0; second < 256; ++second) {
      const std::string pair{static_cast<char>(first), static_cast<char>(second)};
      const std::string shown = visible_text(pair);
      REQUIRE(is_clean(shown));
      REQUIRE(is_clean(visible_lines(pair), "\n\t"));
      REQUIRE(visible_text(shown) == shown);
    }
}

TEST_CASE("visible text: every character that is drawn stays") {
  int escaped = 0;
  for (char32_t c = 1; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    if (visible_text(text) != text) ++escaped;
  }
  // 31 controls but NUL, 33 from U+007F to U+009F, 2 separators, 3 + 5 + 4 of direction, the byte order mark.
  CHECK(escaped == 31 + 33 + 2 + 3 + 5 + 4 + 1);
}

TEST_CASE("visible JSON: the same document without a character that a terminal obeys") {
  nlohmann::json document;
  for (char32_t c = 0; c < 0x2100; ++c) {
    std::string name = "name ", value = "a";
    append_utf8(name, c);
    append_utf8(value, c);
    document[name] = {value, static_cast<int>(c)};
  }
  for (const int indent : {-1, 1}) {
    const std::string shown = visible_json(document.dump(indent));
    CHECK(is_clean(shown, "\n"));
    CHECK(shown.find("\u009b") == std::string::npos);
    CHECK(shown.find("\u202e") == std::string::npos);
    CHECK(nlohmann::json::parse(shown) == document);
  }
}

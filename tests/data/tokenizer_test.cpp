#include "widelimit/data/tokenizer.hpp"

#include <doctest/doctest.h>

#include <string>

#include "widelimit/error.hpp"

using widelimit::DataError;
using widelimit::data::tokenize;
using Words = std::vector<std::string>;

TEST_CASE(
    "tokenizer: each of Keras' filter characters, tab and newline separates; nothing else of ASCII does") {
  const std::string separators = " !\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n";
  for (int byte = 1; byte < 128; ++byte) {
    CAPTURE(byte);
    const auto c = static_cast<char>(byte);
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    const Words expected =
        separators.find(c) != std::string::npos ? Words{"a", "b"} : Words{std::string("a") + lower + "b"};
    CHECK(tokenize(std::string("a") + c + "b") == expected);
  }
  CHECK(tokenize(std::string("a\0b", 3)) == Words{std::string("a\0b", 3)});
}

TEST_CASE("tokenizer: sentences as Keras splits them") {
  CHECK(tokenize("") == Words{});
  CHECK(tokenize(" \t\n-- ...") == Words{});
  CHECK(tokenize("I DON'T like it... (really!)<br /><br />8/10") ==
        Words{"i", "don't", "like", "it", "really", "br", "br", "8", "10"});
  CHECK(tokenize("'quoted' well-known\r\nend") == Words{"'quoted'", "well", "known\r", "end"});
  CHECK(tokenize("semi_colon~tilde`tick") == Words{"semi", "colon", "tilde", "tick"});
}

// Expected values by Python 3.11 (Unicode 14): text.lower().translate(...).split(' ').
TEST_CASE("tokenizer: lower case beyond ASCII") {
  CHECK(tokenize("Ünlü ÉCLAIR ÀÖØÞ×÷ ß") == Words{"ünlü", "éclair", "àöøþ×÷", "ß"});
  CHECK(tokenize("Ÿ Ĳ Ŀ Ǆ ǅ ẞ") == Words{"ÿ", "ĳ", "ŀ", "ǆ", "ǆ", "ß"});
  CHECK(tokenize("ЖЁ ԵՒ ΆΏ Ⅷ Ⓐ Ａ Ꭰ") == Words{"жё", "եւ", "άώ", "ⅷ", "ⓐ", "ａ", "ꭰ"});
  CHECK(tokenize("İstanbul") == Words{"i\u0307stanbul"});
  CHECK(tokenize("ΟΔΟΣ ΣΑΣ Σ ΣΙΓΜΑ ΑΣ.") == Words{"οδος", "σας", "σ", "σιγμα", "ας"});
  CHECK(tokenize("\U00010400\U0001F600 \U0001E900") == Words{"\U00010428\U0001F600", "\U0001E922"});
  // Blanks outside ASCII stay in their word.
  CHECK(tokenize("one\u00A0two\u0085three\u3000four") == Words{"one\u00A0two\u0085three\u3000four"});
}

TEST_CASE("tokenizer: the first byte that is not UTF-8 is named") {
  const auto check = [](const std::string& text, const std::string& message) {
    CHECK_THROWS_WITH_AS(tokenize(text), ("text: offset " + message).c_str(), DataError);
  };
  check("caf\xE9 noir", "3: expected UTF-8, found byte 0xE9");
  check("\x80", "0: expected UTF-8, found byte 0x80");
  check("ab\xC3", "2: expected UTF-8, found byte 0xC3");            // cut short
  check("\xC0\xAF", "0: expected UTF-8, found byte 0xC0");          // overlong, two bytes
  check("a\xE0\x9F\xBF", "1: expected UTF-8, found byte 0xE0");     // overlong, three
  check("\xF0\x8F\xBF\xBF", "0: expected UTF-8, found byte 0xF0");  // overlong, four
  check("\xED\xA0\x80", "0: expected UTF-8, found byte 0xED");      // surrogate
  check("\xF4\x90\x80\x80", "0: expected UTF-8, found byte 0xF4");  // beyond U+10FFFF
  check("\xF5\x80\x80\x80", "0: expected UTF-8, found byte 0xF5");
  check("\xE2\x82 x", "0: expected UTF-8, found byte 0xE2");
  // The neighbours of these are well-formed.
  CHECK(
      tokenize("\xC2\x80 \xE0\xA0\x80 \xF0\x90\x80\x80 \xED\x9F\xBF \xEE\x80\x80 \xF4\x8F\xBF\xBF").size() ==
      6);
}

#include "widelimit/json/shown_text.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace widelimit::testing {
namespace {

TEST_CASE("long and unprintable values are cut") {
  CHECK(shown_json(std::string(1000, 'x')).size() == 63);
  CHECK(shown_json("\xff") == "\"\\ufffd\"");
  CHECK(shown_json({{"a", {1, 2.5}}}) == "{\"a\":[1,2.5]}");
  CHECK(cut_text("a\nb") == "a?b");
  CHECK(cut_text("abcdef", 3) == "abc...");
  CHECK(cut_text("abc", 3) == "abc");
}

TEST_CASE("characters beyond ASCII are shown, and never cut in two") {
  CHECK(cut_text("gr\u00fcn") == "gr\u00fcn");
  CHECK(cut_text("\u7dd1\u7dd1", 5) == "\u7dd1...");
  CHECK(cut_text("gr\xfcn") == "gr?n");
  CHECK(cut_text("a\u202eb") == "a\\u202eb");
}

}  // namespace
}  // namespace widelimit::testing

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

}  // namespace
}  // namespace widelimit::testing

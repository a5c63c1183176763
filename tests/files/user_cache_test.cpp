#include "widelimit/files/user_cache.hpp"

#include <doctest/doctest.h>

#include "support/environment_variable.hpp"

namespace widelimit::testing {

TEST_CASE("a user's cache: XDG_CACHE_HOME, else .cache of HOME, else nothing; an empty variable is none") {
  const EnvironmentVariable home("HOME", "/home/somebody");
  {
    const EnvironmentVariable caches("XDG_CACHE_HOME", "/caches");
    const auto found = files::user_cache("widelimit/forms");
    REQUIRE(found);
    CHECK(found->folder == "/caches/widelimit/forms");
    CHECK(found->variable == "XDG_CACHE_HOME");
  }
  for (const std::optional<std::string>& value :
       {std::optional<std::string>{}, std::optional<std::string>{""}}) {
    const EnvironmentVariable caches("XDG_CACHE_HOME", value);
    const auto found = files::user_cache("widelimit");
    REQUIRE(found);
    CHECK(found->folder == "/home/somebody/.cache/widelimit");
    CHECK(found->variable == "HOME");
    const EnvironmentVariable nowhere("HOME", value);
    CHECK_FALSE(files::user_cache("widelimit"));
  }
}

}  // namespace widelimit::testing

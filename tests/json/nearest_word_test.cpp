// The word that was probably meant.
#include "json/nearest_word.hpp"

#include <doctest/doctest.h>

namespace widelimit::testing {

TEST_CASE("nearest_word: few letters inserted, removed or replaced, or none") {
  const std::vector<std::string> words{"softmax", "softmax1", "relu", "erf", "identity"};
  CHECK(nearest_word("sofmax", words) == "softmax");
  CHECK(nearest_word("softmaxx", words) == "softmax");
  CHECK(nearest_word("softmax2", words) == "softmax");
  CHECK(nearest_word("relu6", words) == "relu");
  CHECK(nearest_word("idntity", words) == "identity");
  CHECK(nearest_word("gelu", words) == "relu");
  CHECK(nearest_word("xyz", words).empty());
  CHECK(nearest_word("", words).empty());
  CHECK(nearest_word("softmax", {}).empty());
  CHECK(nearest_word(std::string(100000, 's'), words).empty());
}

}  // namespace widelimit::testing

#include "widelimit/store/sha256.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace widelimit::store {
namespace {

TEST_CASE("sha256: the test vectors of FIPS 180, in any pieces") {
  const auto digest_of = [](const std::vector<std::string>& pieces) {
    Sha256 sum;
    for (const std::string& piece : pieces) sum.add(piece.data(), piece.size());
    return sum.digest();
  };
  CHECK(digest_of({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const char* const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  CHECK(digest_of({"abc"}) == abc);
  CHECK(digest_of({"a", "", "bc"}) == abc);
  CHECK(sha256_of("abc", 3) == abc);
}

}  // namespace
}  // namespace widelimit::store

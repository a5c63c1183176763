// Checksums against the vectors of their standards.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "store/crc32c.hpp"
#include "store/sha256.hpp"

namespace widelimit::store {
namespace {

TEST_CASE("crc32c: the test vectors of RFC 3720, appendix B.4") {
  const auto both = [](const std::vector<unsigned char>& bytes) {
    CHECK(crc32c(bytes.data(), bytes.size()) == crc32c_by_tables(bytes.data(), bytes.size()));
    return crc32c(bytes.data(), bytes.size());
  };
  CHECK(both(std::vector<unsigned char>(32, 0)) == 0x8a9136aa);
  CHECK(both(std::vector<unsigned char>(32, 0xff)) == 0x62a8ab43);
  std::vector<unsigned char> rising(32);
  std::iota(rising.begin(), rising.end(), static_cast<unsigned char>(0));
  CHECK(both(rising) == 0x46dd794e);
  std::reverse(rising.begin(), rising.end());
  CHECK(both(rising) == 0x113fdb5c);
  const std::string digits = "123456789";
  CHECK(both({digits.begin(), digits.end()}) == 0xe3069283);
  CHECK(both({}) == 0);
  for (std::size_t count = 0; count < 40; ++count) both(std::vector<unsigned char>(count, 0x5a));
}

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
}

}  // namespace
}  // namespace widelimit::store

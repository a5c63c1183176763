// The checksum of chunks against the vectors of its standard.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "store/crc32c.hpp"

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

}  // namespace
}  // namespace widelimit::store

#include "numerics/large_pages.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace widelimit::numerics {
namespace {

TEST_CASE("large pages: what lies in the memory, and beside it, stays, wherever it begins") {
  constexpr std::size_t beside = 5000, size = std::size_t{9} << 20;
  for (const std::size_t begin : {std::size_t{0}, std::size_t{1}, beside}) {
    std::vector<unsigned char> memory(size + 2 * beside, 7);
    advise_large_pages(memory.data() + begin, size);
    CHECK(std::all_of(memory.begin(), memory.end(), [](unsigned char byte) { return byte == 7; }));
    std::fill(memory.begin(), memory.end(), static_cast<unsigned char>(9));
    CHECK(std::all_of(memory.begin(), memory.end(), [](unsigned char byte) { return byte == 9; }));
  }
}

TEST_CASE("large pages: nothing is asked for nothing, and for little") {
  advise_large_pages(nullptr, 0);
  int little = 3;
  advise_large_pages(&little, sizeof(little));
  CHECK(little == 3);
}

}  // namespace
}  // namespace widelimit::numerics

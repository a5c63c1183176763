#include "numerics/large_pages.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "support/large_pages_asked.hpp"

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

TEST_CASE("large pages: they are asked for where memory is large") {
  constexpr std::size_t large = std::size_t{64} << 20;
  for (const std::size_t size : {large, large / 16}) {
    CAPTURE(size);
    // A mapping of its own: what malloc() gives may lie beside memory for which large pages were asked before.
    void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    advise_large_pages(memory, size);
    const auto asked = testing::large_pages_asked(static_cast<unsigned char*>(memory) + size / 2);
    if (asked)
      CHECK(*asked == serves_large_pages(size));
    else
      MESSAGE("skipped: /proc/self/smaps is missing");
    munmap(memory, size);
  }
}

}  // namespace
}  // namespace widelimit::numerics

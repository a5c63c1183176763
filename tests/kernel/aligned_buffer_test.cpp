// Numbers of a buffer are zero and aligned, those of a large one to large pages, which it asks for.
#include "kernel/aligned_buffer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "support/large_pages_asked.hpp"

using namespace widelimit;

namespace {

std::uintptr_t place_of(AlignedBuffer<float>& buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer.data());
}

}  // namespace

TEST_CASE("aligned buffers: zeros at a cache line, also where memory is used again") {
  for (int turn = 0; turn < 3; ++turn) {
    AlignedBuffer<float> buffer(1000);
    CHECK(place_of(buffer) % 64 == 0);
    CHECK(std::all_of(buffer.data(), buffer.data() + buffer.size(), [](float x) { return x == 0; }));
    std::fill_n(buffer.data(), buffer.size(), 7.0F);
  }
}

TEST_CASE("aligned buffers: large ones begin at a large page and ask for such pages") {
  AlignedBuffer<float> buffer;
  buffer.grow(Index{10} << 20);
  CHECK(place_of(buffer) % numerics::large_page == 0);
  CHECK(std::all_of(buffer.data(), buffer.data() + buffer.size(), [](float x) { return x == 0; }));
  // The last numbers are the buffer's own, too.
  std::fill_n(buffer.data(), buffer.size(), 7.0F);
  const auto asked = testing::large_pages_asked(buffer.data());
  if (asked)
    CHECK(*asked);
  else
    MESSAGE("skipped: /proc/self/smaps is missing");
}

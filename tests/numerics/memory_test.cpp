#include "numerics/memory.hpp"

#include <doctest/doctest.h>

#include "widelimit/error.hpp"

namespace widelimit::testing {
namespace {

TEST_CASE("memory: what is more than the machine has is refused with both figures") {
  CHECK(numerics::available_memory() > 1e7);
  CHECK_NOTHROW(numerics::require_memory("gram", "the result", 1e6, "take fewer inputs"));
  const std::string expected = "gram: the result takes 8 EiB of memory, " +
                               numerics::memory_text(numerics::available_memory()) +
                               " are available; take fewer inputs";
  CHECK_THROWS_WITH_AS(numerics::require_memory("gram", "the result", 0x1p63, "take fewer inputs"),
                       expected.c_str(), ArgumentError);
}

TEST_CASE("memory: figures with three digits and a unit") {
  CHECK(numerics::memory_text(512) == "512 B");
  CHECK(numerics::memory_text(1536) == "1.5 KiB");
  CHECK(numerics::memory_text(0x1p30) == "1 GiB");
  CHECK(numerics::memory_text(1e30) == "8.67e+11 EiB");
}

}  // namespace
}  // namespace widelimit::testing

#include "widelimit/numerics/memory.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>

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

/// Lets a limit of the address space stand for as long as it lives.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;
  ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("memory: a limit of the address space counts, and what is mapped of it is no room for matrices") {
  const double free = numerics::memory_limits().least();
  // Below the 20 TiB that the address sanitizer maps, nothing could be allocated in its builds.
  constexpr rlim_t bytes = rlim_t{1} << 46;
  {
    const AddressSpaceLimit limit(bytes);
    CHECK(numerics::memory_limits().address_space == static_cast<double>(bytes));
    CHECK(numerics::available_memory() == free);
    CHECK(numerics::room_for_matrices(1) <= free);
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  constexpr rlim_t tight = rlim_t{3'000'000} << 10;  // ulimit -v 3000000
  const AddressSpaceLimit limit(tight);
  CHECK(numerics::available_memory() == std::min(free, static_cast<double>(tight)));
  const double one = numerics::room_for_matrices(1), two = numerics::room_for_matrices(2);
  // Buffers that BLAS took for other tests are kept, and mapped.
  const double more = numerics::thread_reserve(2) - numerics::thread_reserve(1);
  CHECK(more >= 0);
  CHECK(more <= 0x1p28 + 0x1p27 + 0x1p24);
  CHECK(one < static_cast<double>(tight));
  if (free > static_cast<double>(tight)) CHECK(one - two == doctest::Approx(more));
  CHECK_NOTHROW(numerics::require_room_for_threads(1));
  CHECK_THROWS_WITH_AS(numerics::require_room_for_threads(1000),
                       doctest::Contains("out of address space: BLAS and the C library reserve "),
                       ArgumentError);
  CHECK(numerics::room_for_matrices(1000) == 0);
#endif
}

TEST_CASE("memory: figures with three digits and a unit") {
  CHECK(numerics::memory_text(512) == "512 B");
  CHECK(numerics::memory_text(1536) == "1.5 KiB");
  CHECK(numerics::memory_text(0x1p30) == "1 GiB");
  CHECK(numerics::memory_text(1e30) == "8.67e+11 EiB");
}

}  // namespace
}  // namespace widelimit::testing

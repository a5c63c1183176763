#include <cstddef>

#include "targets.hpp"

/// libFuzzer's entry; WIDELIMIT_FUZZ_TARGET is the function that it fuzzes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  widelimit::fuzz::WIDELIMIT_FUZZ_TARGET({data, size});
  return 0;
}

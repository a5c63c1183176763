#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "targets.hpp"

namespace widelimit::testing {
namespace {

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST_CASE("every file of the fuzzers' corpora, what they once found included, is read or refused") {
  for (const fuzz::Target& target : fuzz::targets) {
    CAPTURE(target.name);
    int files = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(WIDELIMIT_FUZZ_CORPUS) / target.name)) {
      CAPTURE(entry.path().string());
      CHECK_NOTHROW(target.run(bytes_of(entry.path())));
      ++files;
    }
    CHECK(files >= 3);
  }
}

}  // namespace
}  // namespace widelimit::testing

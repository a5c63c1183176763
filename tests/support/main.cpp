#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <hwy/targets.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace {

constexpr std::array<std::pair<const char*, std::int64_t>, 4> instruction_sets{
    {{"SSSE3", HWY_SSSE3}, {"SSE4", HWY_SSE4}, {"AVX2", HWY_AVX2}, {"AVX3", HWY_AVX3}}};

/// Lets row kernels use the named instruction set instead of the best. False if this machine lacks it.
bool choose_instruction_set(const char* name) {
  for (const auto& [known, target] : instruction_sets) {
    if (std::strcmp(name, known) != 0) continue;
    if ((hwy::SupportedTargets() & target) == 0) return false;
    hwy::SetSupportedTargetsForTest(target);
    return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const char* name = std::getenv("WIDELIMIT_TEST_INSTRUCTION_SET");
  if (name != nullptr && !choose_instruction_set(name)) {
    std::printf("skipped: this machine has no instruction set %s\n", name);
    return 0;
  }
  return doctest::Context(argc, argv).run();
}

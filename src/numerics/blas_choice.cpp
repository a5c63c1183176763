#include "numerics/blas_choice.hpp"

#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

// OpenBLAS exports what chooses its kernels when it is loaded, though no header declares it. The declarations are weak:
// a build for one kind of processor has no choice.
extern "C" {
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();
}

namespace widelimit::numerics {
namespace {

constexpr const char* variable = "OPENBLAS_CORETYPE";

/// Kernels in the order of the instructions they use; those of one row use the same. What is in no row (AMD's
/// processors between 2011 and 2016, what later versions add) was meant for its processor and stays.
///
/// A function's own table: kernels are chosen while the library is loaded, maybe before this file's constants are made.
const std::array<std::vector<std::string_view>, 4>& generations() {
  static const std::array<std::vector<std::string_view>, 4> all{
      {{"Katmai", "Coppermine", "Northwood", "Prescott", "Banias", "Atom", "Core2", "Penryn", "Dunnington",
        "Nehalem", "Athlon", "Opteron", "Opteron_SSE3", "Barcelona", "Bobcat", "Nano"},
       {"Sandybridge"},
       {"Haswell", "Zen"},
       {"SkylakeX", "Cooperlake", "SapphireRapids"}}};
  return all;
}

std::optional<std::size_t> generation_of(std::string_view kernels) {
  const auto& all = generations();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (std::find(all[i].begin(), all[i].end(), kernels) != all[i].end()) return i;
  return std::nullopt;
}

/// Has OpenBLAS choose again, as when it was loaded.
void use(const std::string& kernels) {
  setenv(variable, kernels.c_str(), 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  // Other OpenBLAS libraries of this process, and other programs that it starts, choose for themselves.
  unsetenv(variable);
}

std::string in_use() { return openblas_get_corename(); }

}  // namespace

BlasKernels choose_blas_kernels(const BlasChoice& choice) {
  BlasKernels kernels{in_use(), in_use()};
  const auto wanted = generation_of(choice.wanted), found = generation_of(kernels.used);
  if (!wanted || !found || *found >= *wanted) return kernels;
  const auto older = [&](std::string_view why) {
    kernels.warning = fmt::format(
        "OpenBLAS computes with its kernels for {}, though this processor can run those for {}: {}",
        kernels.used, choice.wanted, why);
    return kernels;
  };
  if (const char* value = std::getenv(variable); value != nullptr && *value != '\0')
    return older(fmt::format("{}={} is set", variable, value));
  if (gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr)
    return older("this build of OpenBLAS has no others");
  if (!choice.obstacle.empty()) return older(choice.obstacle);
  std::string wrong;
  bool chosen = false;
  for (std::size_t i = *wanted; i > *found && !chosen; --i) {
    const std::string candidate(generations()[i].front());
    use(candidate);
    // A build that lacks these kernels takes its oldest ones in their place.
    if (in_use() != candidate) continue;
    chosen = choice.are_right();
    if (!chosen) wrong += (wrong.empty() ? "" : " and ") + candidate;
  }
  if (!chosen) use(kernels.by_model);
  kernels.used = in_use();
  if (!wrong.empty()) return older(fmt::format("products made with those for {} are wrong here", wrong));
  if (generation_of(kernels.used) < wanted) return older("this build of OpenBLAS lacks them");
  return kernels;
}

}  // namespace widelimit::numerics

#pragma once

#include <vector>

#include "widelimit/index.hpp"

namespace widelimit::propagation {

/// ln |M^k|_F^2 and ln |P M^k|_F^2 for k = 0 .. depth: M the averages over earlier tokens, M_ij = 1 / i for j <= i, and
/// P = 1 - 1 1^T / n, which leaves differences between tokens.
struct AveragePowers {
  std::vector<double> all, differences;
};

/// Most tokens that average_powers() takes.
inline constexpr Index most_averaged_tokens = 10'000'000;

/// Sums over columns, every one of the first 32 and 16 of every octave of the others, whose norms are smooth in their
/// place (section 8 of docs/theory/signal-propagation.md): to 1e-10 relative. The last answer of a thread is
/// remembered, because scans ask for one number of tokens and blocks at every point.
/// Cost: 16 n log2(n) depth multiply-adds, and memory of the depth alone. Errors: ArgumentError for more than
/// most_averaged_tokens.
[[nodiscard]] const AveragePowers& average_powers(Index tokens, Index depth);

}  // namespace widelimit::propagation

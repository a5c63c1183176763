#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

namespace widelimit {

/// How a computation runs, which does not affect its results.
struct RunControl {
  int threads = 0;            ///< 0: as many as the caller's oneTBB arena has.
  std::stop_token stop = {};  ///< Cancelled is thrown once a stop is requested.
  /// Called now and then with the steps done and the total, from one thread at a time.
  std::function<void(std::ptrdiff_t, std::ptrdiff_t)> progress = {};
};

}  // namespace widelimit

#pragma once

#include <optional>

namespace widelimit {

/// How fast a computation is whose parts are computed by several threads at once.
///
/// What comes before the first parts (plans, states of inputs) says nothing of the parts, and the first of them to end
/// says little: the others are nearly done. So time counts from when as many parts as threads have ended until as many,
/// or a multiple of them, have followed.
class Pace {
 public:
  explicit Pace(int threads) : threads_{threads} {}

  /// A part ended: so much is done, after so many seconds.
  void take(double done, double seconds) {
    ++parts_;
    if (parts_ == threads_) first_ = {done, seconds};
    if (parts_ % threads_ == 0) last_ = {done, seconds};
  }

  /// What is done in a second, if that is known.
  [[nodiscard]] std::optional<double> rate() const {
    if (parts_ < 2 * threads_ || last_.seconds <= first_.seconds) return std::nullopt;
    return (last_.done - first_.done) / (last_.seconds - first_.seconds);
  }

 private:
  struct Reading {
    double done = 0;
    double seconds = 0;
  };

  int threads_;
  int parts_ = 0;
  Reading first_;  ///< When every thread could have ended a part.
  Reading last_;   ///< When every thread could have ended another one.
};

}  // namespace widelimit

#pragma once

#include <stop_token>

#include "widelimit/error.hpp"

namespace widelimit {

/// Whether a computation was asked to stop: long computations call check() every few milliseconds. It costs about
/// a nanosecond.
class StopRequest {
 public:
  /// Never requests a stop.
  StopRequest() = default;

  /// `token` must outlive this object and its copies.
  explicit StopRequest(const std::stop_token& token) : token_{&token} {}

  /// Throws Cancelled once a stop is requested.
  void check() const {
    if (token_ != nullptr && token_->stop_requested()) throw Cancelled("stopped on request");
  }

 private:
  const std::stop_token* token_ = nullptr;
};

}  // namespace widelimit

#pragma once

#include <stop_token>

#include "widelimit/error.hpp"

namespace widelimit {

/// Whether a computation was asked to stop: what takes long calls check() every few milliseconds. Costs about
/// a nanosecond.
class StopRequest {
 public:
  /// Never asks.
  StopRequest() = default;

  /// `token` must outlive this object and its copies.
  explicit StopRequest(const std::stop_token& token) : token_{&token} {}

  /// Throws Cancelled once a stop was asked for.
  void check() const {
    if (token_ != nullptr && token_->stop_requested()) throw Cancelled("stopped on request");
  }

 private:
  const std::stop_token* token_ = nullptr;
};

}  // namespace widelimit

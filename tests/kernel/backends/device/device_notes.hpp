#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "widelimit/kernel/devices.hpp"

namespace widelimit::testing {

/// While it lives, notices of devices are kept here.
class DeviceNotes {
 public:
  DeviceNotes() {
    report_device_notices([this](const std::string& notice) {
      const std::scoped_lock lock(mutex_);
      all_.push_back(notice);
    });
  }
  ~DeviceNotes() { report_device_notices({}); }
  DeviceNotes(const DeviceNotes&) = delete;
  DeviceNotes& operator=(const DeviceNotes&) = delete;

  /// Those since the last call.
  std::vector<std::string> taken() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(all_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
};

}  // namespace widelimit::testing

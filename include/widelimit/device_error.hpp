#pragma once

#include "widelimit/error.hpp"

namespace widelimit {

/// A device (widelimit/kernel/devices.hpp) is not there, or failed. The message says which, and what to do.
class DeviceError : public Error {
 public:
  using Error::Error;
};

}  // namespace widelimit

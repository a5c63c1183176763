#pragma once

#include <string>
#include <vector>

#include "kernel/plan/program.hpp"
#include "opencl/devices.hpp"
#include "widelimit/numerics/formula/symbol.hpp"

namespace widelimit {

/// A layer that devices cannot compute yet.
struct DeviceGap {
  std::string layer;   ///< Its path.
  std::string reason;  ///< What it is, in words that follow "has".
};

/// The layers of a program that keep it on the CPU; none if a device can compute everything before the readouts. What
/// comes after these, one number for each pair, is computed on the CPU anyway.
std::vector<DeviceGap> device_gaps(const Program& program);

/// Throws DeviceError, naming the layers, if there are any.
void require_no_gaps(const std::vector<DeviceGap>& gaps, const std::string& device);

/// Throws DeviceError for double precision on a device that has none.
void require_precision(const opencl::Device& device, numerics::formula::Precision precision);

/// "layer (reason), ..." of the first few.
std::string to_string(const std::vector<DeviceGap>& gaps);

}  // namespace widelimit

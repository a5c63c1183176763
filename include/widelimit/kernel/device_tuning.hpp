#pragma once

#include <string>
#include <vector>

#include "widelimit/device_error.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit {

/// A form in which a device evaluates the planes of a network, as WIDELIMIT_DEVICE_FORM takes it, and what it takes.
struct TimedForm {
  std::string form;
  double seconds;  ///< A pair; infinite where the device refuses the form.
};

/// How a device is tuned for a network.
struct DeviceTuning {
  std::string device;
  std::string form;              ///< The fastest; empty if the network has one form only.
  std::vector<TimedForm> forms;  ///< In the order in which they were timed, the usual one first.
  std::string kept_in;           ///< The file that later runs find it by; empty if it could not be written.
};

/// Measures the forms of gram<Scalar>(network, x, options) on options.device anew, for inputs of a shape with some
/// channels, whatever is forced or remembered, and keeps the fastest for runs with such inputs, kernels, type, network
/// up to constants, device, driver and version of the library. Results are the same in all forms.
///
/// Throws     what gram() throws; DeviceError if the options name the CPU; ArgumentError for channels < 1.
/// Cost       a compilation for each form, up to twelve, and 36 runs of some hundredths of a second or of one pair.
template <typename Scalar>
[[nodiscard]] DeviceTuning tune_device(const Network& network, const Shape& input, Index channels,
                                       const GramOptions& options);

}  // namespace widelimit

#include "devices.hpp"

#include <nanobind/stl/string.h>

#include "thread_warning.hpp"
#include "widelimit/kernel/devices.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

std::string chosen_device() {
  return nb::cast<std::string>(nb::module_::import_("widelimit._device").attr("chosen")());
}

void bind_devices(nb::module_& module) {
  report_device_notices(warn_from_thread);
  module.def("devices", [] {
    nb::list all;
    for (const DeviceDescription& device : devices())
      all.append(nb::make_tuple(device.name, device.platform, device.driver, device.is_gpu,
                                device.is_available, device.has_double, device.memory_bytes));
    return all;
  });
  module.def("device_in_full", &device_in_full, "choice"_a);
}

}  // namespace widelimit::python

#include <nanobind/nanobind.h>

#include "batches.hpp"
#include "errors.hpp"
#include "finite.hpp"
#include "inference.hpp"
#include "kernels.hpp"
#include "models.hpp"
#include "networks.hpp"
#include "positions.hpp"
#include "widelimit/version.hpp"

NB_MODULE(_core, module) {
  // A network may hold a Python function whose globals hold the network: such cycles live as long as the process.
  nanobind::set_leak_warnings(false);
  module.doc() = "The compiled half of widelimit; use the functions of the package instead.";
  module.attr("__version__") = widelimit::version;
  widelimit::python::bind_errors(module);
  widelimit::python::bind_batches(module);
  widelimit::python::bind_networks(module);
  widelimit::python::bind_kernels(module);
  widelimit::python::bind_positions(module);
  widelimit::python::bind_inference(module);
  widelimit::python::bind_models(module);
  widelimit::python::bind_finite(module);
}

#include <nanobind/nanobind.h>

#include "batches.hpp"
#include "calibration.hpp"
#include "derivatives.hpp"
#include "devices.hpp"
#include "errors.hpp"
#include "finite.hpp"
#include "formulas.hpp"
#include "head_times.hpp"
#include "heads.hpp"
#include "inference.hpp"
#include "kernels.hpp"
#include "kinds.hpp"
#include "model_options.hpp"
#include "models.hpp"
#include "networks.hpp"
#include "positions.hpp"
#include "propagation.hpp"
#include "saved_functions.hpp"
#include "sde.hpp"
#include "shared_function.hpp"
#include "widelimit/version.hpp"

NB_MODULE(_core, module) {
  // What a thread left at Ctrl-C uses is kept until the process ends.
  nanobind::set_leak_warnings(false);
  module.doc() = "The compiled half of widelimit; use the functions of the package instead.";
  module.attr("__version__") = widelimit::version;
  widelimit::python::bind_errors(module);
  widelimit::python::bind_batches(module);
  widelimit::python::bind_functions(module);
  widelimit::python::bind_networks(module);
  widelimit::python::bind_kinds(module);
  widelimit::python::bind_formulas(module);
  widelimit::python::bind_devices(module);
  widelimit::python::bind_kernels(module);
  widelimit::python::bind_derivatives(module);
  widelimit::python::bind_positions(module);
  widelimit::python::bind_inference(module);
  widelimit::python::bind_calibration(module);
  widelimit::python::bind_model_options(module);
  widelimit::python::bind_models(module);
  widelimit::python::bind_saved_functions(module);
  widelimit::python::bind_finite(module);
  widelimit::python::bind_propagation(module);
  widelimit::python::bind_repeated_blocks(module);
  widelimit::python::bind_heads(module);
  widelimit::python::bind_head_times(module);
  widelimit::python::bind_sde(module);
}

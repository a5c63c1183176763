#include "shared_function.hpp"

namespace widelimit::python {

nanobind::object as_double_array(const nanobind::object& value) {
  return nanobind::module_::import_("numpy").attr("ascontiguousarray")(value,
                                                                       nanobind::arg("dtype") = "float64");
}

}  // namespace widelimit::python

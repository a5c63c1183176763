#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "arrays.hpp"
#include "interruptible.hpp"
#include "widelimit/gp/leave_one_out.hpp"

namespace widelimit::python {

/// The named tuple of widelimit.models; the caller holds the lock. (The stub learns it from stub_patterns.nb.)
template <typename LeftOut>
nanobind::tuple object_of(LeftOut left_out) {
  const double density = left_out.negative_log_predictive_density(), error = left_out.mean_squared_error();
  return nanobind::borrow<nanobind::tuple>(nanobind::module_::import_("widelimit.models")
                                               .attr("LeaveOneOut")(array_of(std::move(left_out.residuals)),
                                                                    array_of(std::move(left_out.variances)),
                                                                    density, error));
}

/// Of a posterior, a flow or a model. ArgumentError and NumericalError as theirs.
template <typename Self>
nanobind::tuple left_out_of(const Self& self) {
  return object_of(run_or_leave([model = &self](std::stop_token) { return model->leave_one_out(); },
                                {nanobind::find(self)}));
}

}  // namespace widelimit::python

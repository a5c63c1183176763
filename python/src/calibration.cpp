#include "calibration.hpp"

#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "arrays.hpp"
#include "interruptible.hpp"
#include "widelimit/gp/calibration.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

DoubleArrayObject probabilities_of(const Array<double>& mean, const Array<double>& variances) {
  const Vector<double> spread =
      Eigen::Map<const Vector<double>>(variances.data(), static_cast<Index>(variances.size()));
  return array_of(run_or_leave(
      [mean = matrix_of(mean), spread](std::stop_token) { return gp::class_probabilities(mean, spread); }));
}

/// (scale, shifts, log loss)
nb::tuple fitted_calibration(const Array<double>& mean, const Array<double>& variances,
                             const std::vector<int>& labels) {
  const Vector<double> spread =
      Eigen::Map<const Vector<double>>(variances.data(), static_cast<Index>(variances.size()));
  gp::ClassCalibrationFit fit = run_or_leave([mean = matrix_of(mean), spread, labels](std::stop_token) {
    return gp::fit_class_calibration(mean, spread, labels);
  });
  return nb::make_tuple(fit.calibration.scale, array_of(std::move(fit.calibration.shifts)), fit.log_loss);
}

DoubleArrayObject calibrated_probabilities(const Array<double>& mean, const Array<double>& variances,
                                           double scale, const Array<double>& shifts) {
  const auto vector_of = [](const Array<double>& array) {
    return Vector<double>(Eigen::Map<const Vector<double>>(array.data(), static_cast<Index>(array.size())));
  };
  const gp::ClassCalibration calibration{scale, vector_of(shifts)};
  return array_of(run_or_leave([calibration, mean = matrix_of(mean), spread = vector_of(variances)](
                                   std::stop_token) { return calibration.probabilities(mean, spread); }));
}

/// (bins: lower, upper, count, mean confidence, accuracy; expected error).
nb::tuple calibrated(const Array<double>& probabilities, const std::vector<int>& labels, int bins) {
  const gp::Calibration result = gp::calibration(matrix_of(probabilities), labels, bins);
  nb::list rows;
  for (const gp::CalibrationBin& bin : result.bins)
    rows.append(nb::make_tuple(bin.lower, bin.upper, bin.count, bin.mean_confidence, bin.accuracy));
  return nb::make_tuple(rows, result.expected_error);
}

}  // namespace

void bind_calibration(nb::module_& module) {
  module.def("class_probabilities", &probabilities_of, "mean"_a, "variances"_a);
  module.def("fit_class_calibration", &fitted_calibration, "mean"_a, "variances"_a, "labels"_a);
  module.def("calibrated_probabilities", &calibrated_probabilities, "mean"_a, "variances"_a, "scale"_a,
             "shifts"_a);
  module.def("calibration", &calibrated, "probabilities"_a, "labels"_a, "bins"_a);
}

}  // namespace widelimit::python

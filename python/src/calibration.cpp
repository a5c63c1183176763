#include "calibration.hpp"

#include <nanobind/stl/vector.h>

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

double scale_of(const Array<double>& mean, const Array<double>& variances, const std::vector<int>& labels) {
  const Vector<double> spread =
      Eigen::Map<const Vector<double>>(variances.data(), static_cast<Index>(variances.size()));
  return run_or_leave([mean = matrix_of(mean), spread, labels](std::stop_token) {
    return gp::probability_scale(mean, spread, labels);
  });
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
  module.def("probability_scale", &scale_of, "mean"_a, "variances"_a, "labels"_a);
  module.def("calibration", &calibrated, "probabilities"_a, "labels"_a, "bins"_a);
}

}  // namespace widelimit::python

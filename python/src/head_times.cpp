#include "head_times.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "arrays.hpp"
#include "interruptible.hpp"
#include "named_results.hpp"
#include "run_control.hpp"
#include "widelimit/specialization/experiments.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using specialization::ImageTask;

/// results_of(fields, control) of an experiment by the arguments of a function; progress counts its runs, or else the
/// steps of its parts.
template <typename ResultsOf>
nb::dict computed(const std::string& function, const char* experiment, const nb::dict& given, int threads,
                  const ProgressFunction& progress, bool counts_runs, const ResultsOf& results_of) {
  const ConfigFields& rows = specialization::experiment_fields(experiment);
  return dict_of(run_interruptibly([&, object = json_of_arguments(given, rows)](std::stop_token stop) {
    results::Control control;
    static_cast<RunControl&>(control) = run_control_of(threads, progress, std::move(stop));
    if (counts_runs) control.runs_done = std::exchange(control.progress, {});
    return read_object(function, object, rows,
                       [&](ConfigReader& fields) { return results_of(fields, control); });
  }));
}

/// Flows from random starts in D dimensions, or SGD in Gram form.
nb::dict timed_heads(const specialization::Prior& prior, const nb::dict& given, bool features, int threads,
                     const ProgressFunction& progress) {
  return computed("specialisation_times", features ? "feature-times" : "phase-transition", given, threads,
                  progress, true, [&](ConfigReader& fields, const results::Control& control) {
                    return features ? specialization::feature_times_results(fields, prior, control)
                                    : specialization::phase_transition_results(fields, prior, control);
                  });
}

nb::dict timed_images(const ImageTask& task, const nb::dict& given, int threads,
                      const ProgressFunction& progress) {
  return computed("digit_times", "digit-times", given, threads, progress, true,
                  [&](ConfigReader& fields, const results::Control& control) {
                    return specialization::digit_times_results(fields, task, control);
                  });
}

nb::dict trained_on_images(const ImageTask& task, const nb::dict& given, int threads,
                           const ProgressFunction& progress) {
  return computed("digits", "digits", given, threads, progress, false,
                  [&](ConfigReader& fields, const results::Control& control) {
                    return specialization::digits_results(fields, task, control);
                  });
}

/// An amplitude by its row.
void make_image_task(ImageTask* self, const ArrayLikeObject& pixels, std::vector<int> labels,
                     const nb::dict& given) {
  const double amplitude = read_arguments("ImageTask", given, specialization::experiment_fields("digits"),
                                          [](ConfigReader& fields) { return fields.number("amplitude"); });
  new (self) ImageTask(matrix_of(pixels, "images"), std::move(labels), amplitude);
}

}  // namespace

void bind_head_times(nb::module_& module) {
  module.def("timed_heads", &timed_heads, "prior"_a, "given"_a, "features"_a, "threads"_a,
             "progress"_a.none());
  nb::class_<ImageTask>(module, "HeadImageTask")
      .def("__init__", &make_image_task, "pixels"_a, "labels"_a, "given"_a)
      .def_prop_ro("amplitude", &ImageTask::amplitude)
      .def_prop_ro("dimension", &ImageTask::dimension)
      .def("class_means", [](const ImageTask& task) { return array_of(Matrix<double>(task.class_means())); });
  module.def("head_digits", &trained_on_images, "task"_a, "given"_a, "threads"_a, "progress"_a.none());
  module.def("timed_images", &timed_images, "task"_a, "given"_a, "threads"_a, "progress"_a.none());
}

}  // namespace widelimit::python

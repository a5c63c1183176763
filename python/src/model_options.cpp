#include "model_options.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "devices.hpp"
#include "run_control.hpp"
#include "thread_warning.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/fit_fields.hpp"
#include "widelimit/gp/model.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;
using gp::ModelOptions;

namespace {

/// Has a model's kernels computed into stores in a folder; what they report is a warning, at once.
void set_store(gp::ModelOptions& options, const std::filesystem::path& folder) {
  options.store_folder = folder;
  options.store.report = warn_from_thread;
}

/// (argument, sentence with values and default) of every row of the table of fitting that Model.fit has.
std::vector<std::pair<std::string, std::string>> fit_arguments() {
  constexpr gp::Door here = gp::Door::python;
  std::vector<std::pair<std::string, std::string>> arguments;
  for (const gp::FitField& field : gp::fit_fields())
    if (*field.argument != '\0')
      arguments.emplace_back(field.argument, gp::in_words_of(here, field.meaning) + "; " +
                                                 field.values.text() + " [" +
                                                 gp::in_words_of(here, field.default_value) + "]");
  return arguments;
}

/// Refuses what ModelOptions cannot hold together.
void require_fit(bool regulariser, bool noise, bool relevance, bool features, bool diagonal) {
  gp::FitRequest request;
  request.gives_regulariser = regulariser;
  request.gives_noise = noise;
  request.relevance = relevance;
  request.features = features;
  request.diagonal = diagonal;
  gp::require_fit(request, gp::Door::python);
}

}  // namespace

void bind_model_options(nb::module_& module) {
  nb::class_<ModelOptions>(module, "ModelOptions")
      .def("__init__",
           [](ModelOptions* self) {
             new (self) ModelOptions();
             self->door = gp::Door::python;
           })
      .def_rw("class_names", &ModelOptions::class_names)
      .def_rw("row_groups", &ModelOptions::groups)
      .def_rw("preprocessing", &ModelOptions::preprocessing)
      .def_rw("preparation", &ModelOptions::preparation)
      .def(
          "set",
          [](ModelOptions& self, const std::string& argument, const std::string& value) {
            for (const gp::FitField& field : gp::fit_fields())
              if (field.argument == argument)
                return gp::set_fit_field(field, nlohmann::json::parse(value), gp::Door::python, self);
            throw ArgumentError(argument + ": no argument of fitting");
          },
          "argument"_a, "value"_a, "A row of the table of fitting, as JSON.")
      .def("set_groups",
           [](ModelOptions& self, const std::vector<Index>& groups) { self.learning.groups = groups; })
      .def(
          "leave_out",
          [](ModelOptions& self, const std::vector<Index>& left_out, Index channels) {
            self.input_map = gp::FeatureMap::without(left_out, channels);
          },
          "left_out"_a, "channels"_a)
      .def("set_noise_variance",
           [](ModelOptions& self, double variance) { self.noise = gp::AbsoluteNoise(variance); })
      .def("set_rows",
           [](ModelOptions& self, const std::string& name, const ArrayLikeObject& numbers) {
             (name == "weights" ? self.weights : self.noise_variances) = vector_of(numbers, name.c_str());
           })
      .def("set_store", &set_store)
      .def("set_progress",
           [](ModelOptions& self, const ProgressFunction& progress) {
             self.gram.progress = [call = locked(progress)](const GramProgress& now) {
               call(now.done, now.total);
             };
           })
      .def("set_exact_attention", [](ModelOptions& self, bool exact) { self.gram.exact_attention = exact; })
      .def("set_threads", [](ModelOptions& self, int threads) { self.gram.threads = threads; })
      .def("set_device", [](ModelOptions& self) { self.gram.device = chosen_device(); });
  module.def("fit_arguments", &fit_arguments);
  module.def("require_fit", &require_fit, "regulariser"_a = false, "noise"_a = false, "relevance"_a = false,
             "features"_a = false, "diagonal"_a = false);
}

}  // namespace widelimit::python

#include "saved_functions.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <nlohmann/json.hpp>
#include <string>

#include "devices.hpp"
#include "interruptible.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/network/field_reader.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

constexpr const char* kind = "python";

thread_local nb::handle layer_maker;

/// The digest of the function is made again.
Layer read_layer_by_name(FieldReader& fields) {
  static_cast<void>(fields.text("formula", ""));
  const std::string text = fields.value(kind).dump();
  if (!layer_maker.is_valid())
    fields.fail(kind, "calls functions of Python: expected functions=... where it is read");
  const nb::gil_scoped_acquire locked;
  const nb::object made = layer_maker(nb::str(text.c_str(), text.size()));
  if (nb::isinstance<nb::str>(made)) fields.fail(kind, nb::cast<std::string>(made));
  return nb::cast<Layer>(made);
}

/// The model is read on another thread.
gp::Model load_model(const std::filesystem::path& folder, int threads, const nb::object& maker) {
  return run_or_leave(
      [folder, threads, device = chosen_device(), maker = nb::handle(maker)](std::stop_token stop) {
        const LayersByName scope(maker);
        GramOptions run;
        run.threads = threads;
        run.device = device;
        run.stop = std::move(stop);
        return gp::Model::load(folder, run);
      },
      {maker});
}

}  // namespace

LayersByName::LayersByName(nb::handle maker) : before_{layer_maker} { layer_maker = maker; }

LayersByName::~LayersByName() { layer_maker = before_; }

void bind_saved_functions(nb::module_& module) {
  register_layer_kind(kind, read_layer_by_name);
  module.def("load_model", &load_model, "folder"_a, "threads"_a, "maker"_a);
}

}  // namespace widelimit::python

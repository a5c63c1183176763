#pragma once

#include <nanobind/nanobind.h>

#include "kept_layers.hpp"

namespace widelimit::python {

/// While one lives, layers of files that name functions of Python are made on this thread by `maker`:
/// maker(text of the field "python") gives the layer, or the text that says why there is none. Without one they are an
/// error: a file by itself brings no code to run.
class LayersByName {
 public:
  explicit LayersByName(nanobind::handle maker);
  ~LayersByName();
  LayersByName(const LayersByName&) = delete;
  LayersByName& operator=(const LayersByName&) = delete;

 private:
  nanobind::handle before_;
};

/// read() by the functions that a caller gives, which what is read then holds (Maker of widelimit._saved_functions).
template <typename Read>
nanobind::object read_by_functions(const nanobind::object& functions, const Read& read) {
  const nanobind::object maker =
      nanobind::module_::import_("widelimit._saved_functions").attr("Maker")(functions);
  const LayersByName scope(maker);
  const nanobind::object found = nanobind::cast(read());
  keep(found, nanobind::tuple(maker.attr("held")));
  return found;
}

/// The reader of such layers, and load_model().
void bind_saved_functions(nanobind::module_& module);

}  // namespace widelimit::python

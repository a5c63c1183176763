#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "widelimit/network/layer.hpp"

namespace widelimit::python {

/// The name of the attribute of Python's layers and networks that holds the HeldFunctions which they call: a tuple.
inline constexpr const char* functions_attribute = "_functions";

/// Layers as a Python function gets them, and the functions that they call.
struct KeptLayers {
  Layers layers;
  nanobind::tuple functions;
};

/// What a layer or a network of Python holds; () where it calls none.
inline nanobind::tuple functions_of(nanobind::handle owner) {
  return nanobind::borrow<nanobind::tuple>(nanobind::getattr(owner, functions_attribute, nanobind::tuple()));
}

/// Makes a layer or a network hold functions.
inline void keep(nanobind::handle owner, const nanobind::tuple& functions) {
  if (functions.size() > 0) nanobind::setattr(owner, functions_attribute, functions);
}

}  // namespace widelimit::python

namespace nanobind::detail {

template <>
struct type_caster<widelimit::python::KeptLayers> {
  NB_TYPE_CASTER(widelimit::python::KeptLayers, make_caster<widelimit::Layers>::Name)

  bool from_python(handle source, std::uint8_t flags, cleanup_list* cleanup) noexcept {
    make_caster<widelimit::Layers> layers;
    if (!layers.from_python(source, flags, cleanup)) return false;
    try {
      ::nanobind::object functions = ::nanobind::tuple();
      for (const handle layer : iter(source)) functions += widelimit::python::functions_of(layer);
      value.functions = borrow<::nanobind::tuple>(functions);
    } catch (python_error& error) {
      error.discard_as_unraisable("widelimit: the functions of layers");
      return false;
    }
    value.layers = std::move(layers.value);
    return true;
  }
};

}  // namespace nanobind::detail

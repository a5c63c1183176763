#include "errors.hpp"

#include <string>

#include "widelimit/error.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::python {

namespace nb = nanobind;

namespace {

/// The Python types, made once with the module and never freed: translators outlive it.
struct ErrorTypes {
  PyObject* error = nullptr;
  PyObject* argument = nullptr;
  PyObject* network = nullptr;
  PyObject* data = nullptr;
  PyObject* numerical = nullptr;
  PyObject* cancelled = nullptr;
};

ErrorTypes types;

PyObject* add_type(nb::module_& module, const char* name, const char* description, nb::handle base,
                   PyObject* second_base = nullptr) {
  const std::string full_name = std::string("widelimit.") + name;
  const nb::tuple bases =
      second_base == nullptr ? nb::make_tuple(base) : nb::make_tuple(base, nb::handle(second_base));
  PyObject* type = PyErr_NewExceptionWithDoc(full_name.c_str(), description, bases.ptr(), nullptr);
  if (type == nullptr) throw nb::python_error();
  module.attr(name) = nb::handle(type);
  return type;
}

PyObject* type_of(const Error& error) {
  if (dynamic_cast<const ArgumentError*>(&error) != nullptr) return types.argument;
  if (dynamic_cast<const NetworkError*>(&error) != nullptr) return types.network;
  if (dynamic_cast<const DataError*>(&error) != nullptr) return types.data;
  if (dynamic_cast<const NumericalError*>(&error) != nullptr) return types.numerical;
  if (dynamic_cast<const Cancelled*>(&error) != nullptr) return types.cancelled;
  return types.error;
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    PyErr_SetString(type_of(error), visible_text(error.what()).c_str());
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  types.error = add_type(module, "Error", "Base of all errors of widelimit.", nb::handle(PyExc_RuntimeError));
  const nb::handle base(types.error);
  types.argument = add_type(module, "ArgumentError",
                            "An argument is out of range, or two arguments do not fit each other.", base,
                            PyExc_ValueError);
  types.network = add_type(module, "NetworkError",
                           "A network cannot be built, or not be applied to such inputs; names the layer.",
                           base, PyExc_ValueError);
  types.data = add_type(module, "DataError", "A file is missing, malformed or of an unsupported form.", base,
                        PyExc_ValueError);
  types.numerical =
      add_type(module, "NumericalError", "A computation could not be carried out in floating point.", base,
               PyExc_ArithmeticError);
  types.cancelled = add_type(module, "Cancelled", "A long computation was asked to stop.", base);
  nb::register_exception_translator(translate);
}

}  // namespace widelimit::python

#include "shared_function.hpp"

#include "widelimit/error.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<HeldFunction>(self)->function().ptr());
  return 0;
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<HeldFunction>(self)->clear();
  return 0;
}

}  // namespace

nb::object SharedFunction::held() const {
  if (*place_ == nullptr)
    throw Error("a layer's Python function is gone: expected the layers or the network that it was made for");
  return nb::borrow(*place_);
}

nb::object as_double_array(const nb::object& value) {
  return nb::module_::import_("numpy").attr("asarray")(value, nb::arg("dtype") = "float64",
                                                       nb::arg("order") = "C");
}

void bind_functions(nb::module_& module) {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear)},
                                {0, nullptr}};
  nb::class_<HeldFunction>(module, "HeldFunction", nb::type_slots(slots),
                           "A Python function that layers call.")
      .def(nb::init<nb::callable>(), "function"_a);
}

}  // namespace widelimit::python

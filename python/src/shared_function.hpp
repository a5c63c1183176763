#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

namespace widelimit::python {

/// A Python function that layers call, owned by a Python object, into which the garbage collector sees. Layers and
/// networks of Python hold these objects (KeptLayers); what C++ copies of them, SharedFunction, does not own the
/// function. So cycles of a network, its function and what the function refers to are freed.
class HeldFunction {
 public:
  explicit HeldFunction(nanobind::callable function)
      : function_{std::move(function)}, place_{std::make_shared<PyObject*>(function_.ptr())} {}
  ~HeldFunction() { clear(); }
  HeldFunction(const HeldFunction&) = delete;
  HeldFunction& operator=(const HeldFunction&) = delete;

  [[nodiscard]] nanobind::handle function() const { return function_; }

  /// Lets go of the function: nothing that could call it is left but in what is freed with it.
  void clear() {
    *place_ = nullptr;
    function_.reset();
  }

 private:
  friend class SharedFunction;

  nanobind::object function_;
  std::shared_ptr<PyObject*> place_;
};

/// A held function that threads of the library may copy and call, each call under the interpreter's lock.
class SharedFunction {
 public:
  explicit SharedFunction(const HeldFunction& held) : place_{held.place_} {}

  /// The caller holds the lock. Error where the function's holder is gone.
  template <typename... Arguments>
  [[nodiscard]] nanobind::object operator()(Arguments&&... arguments) const {
    return held()(std::forward<Arguments>(arguments)...);
  }

 private:
  [[nodiscard]] nanobind::object held() const;

  std::shared_ptr<PyObject* const> place_;
};

/// What a function returned as a row-major array of double. The caller holds the lock.
[[nodiscard]] nanobind::object as_double_array(const nanobind::object& value);

void bind_functions(nanobind::module_& module);

}  // namespace widelimit::python

#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

namespace widelimit::python {

/// A Python function that threads of the library may copy and call, each call under the interpreter's lock.
class SharedFunction {
 public:
  explicit SharedFunction(nanobind::callable function)
      : function_{new nanobind::callable(std::move(function)), [](nanobind::callable* pointer) {
                    const nanobind::gil_scoped_acquire locked;
                    delete pointer;
                  }} {}

  /// The caller holds the lock.
  template <typename... Arguments>
  [[nodiscard]] nanobind::object operator()(Arguments&&... arguments) const {
    return (*function_)(std::forward<Arguments>(arguments)...);
  }

 private:
  std::shared_ptr<nanobind::callable> function_;
};

/// What a function returned as a row-major array of double. The caller holds the lock.
[[nodiscard]] nanobind::object as_double_array(const nanobind::object& value);

}  // namespace widelimit::python

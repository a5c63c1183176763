#pragma once

#include <nanobind/nanobind.h>

#include <nlohmann/json.hpp>

#include "estimates.hpp"
#include "widelimit/propagation/results.hpp"

/// Results under the names that files have, as Python's objects.
namespace widelimit::python {

/// None, numbers, texts, lists and dictionaries; numbers that JSON's texts lack stay what they are.
inline nanobind::object object_of(const nlohmann::json& value) {
  namespace nb = nanobind;
  if (value.is_null()) return nb::none();
  if (value.is_boolean()) return nb::bool_(value.get<bool>());
  if (value.is_number_integer()) return nb::int_(value.get<std::int64_t>());
  if (value.is_number()) return nb::float_(value.get<double>());
  if (value.is_string()) return nb::str(value.get<std::string>().c_str());
  if (value.is_array()) {
    nb::list list;
    for (const auto& element : value) list.append(object_of(element));
    return list;
  }
  nb::dict object;
  for (const auto& [name, element] : value.items()) object[name.c_str()] = object_of(element);
  return object;
}

/// {name: array}.
inline nanobind::dict dict_of(const propagation::NamedColumns& columns) {
  nanobind::dict result;
  for (const auto& [name, values] : columns) result[name.c_str()] = array_of_values(values);
  return result;
}

}  // namespace widelimit::python

#pragma once

#include <nanobind/nanobind.h>

#include <nlohmann/json.hpp>

#include "estimates.hpp"
#include "widelimit/propagation/results.hpp"
#include "widelimit/results/results.hpp"

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

/// Rows of a column as an array of its shape.
inline DoubleArrayObject array_of(const results::Column& column, std::size_t rows) {
  std::vector<std::size_t> shape{rows};
  for (const Index extent : column.shape) shape.push_back(static_cast<std::size_t>(extent));
  auto* owned = new std::vector<double>(column.numbers);
  const nanobind::capsule owner(
      owned, [](void* pointer) noexcept { delete static_cast<std::vector<double>*>(pointer); });
  return nanobind::borrow<DoubleArrayObject>(
      nanobind::cast(NumpyArray<double>(owned->data(), shape.size(), shape.data(), owner)));
}

/// {column: array, or list of texts}.
inline nanobind::dict dict_of(const results::Table& table) {
  nanobind::dict result;
  for (const results::Column& column : table.columns()) {
    const nanobind::str name(column.name.c_str());
    if (column.texts.empty())
      result[name] = array_of(column, table.rows());
    else
      result[name] = object_of(column.texts);
  }
  return result;
}

/// {"summary", "table", and what is not in files by its name}.
inline nanobind::dict dict_of(const results::Results& results) {
  nanobind::dict result = nanobind::cast<nanobind::dict>(object_of(results.unwritten));
  result["summary"] = object_of(results.summary);
  result["table"] = dict_of(results.table);
  for (const auto& [name, table] : results.tables) result[name.c_str()] = dict_of(table);
  return result;
}

}  // namespace widelimit::python

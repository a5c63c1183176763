#include "arguments.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <limits>

#include "widelimit/json/read_json.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// Integers that no index holds are numbers that no row of integers takes.
json json_of_integer(nb::handle value) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (overflow == 0) return number;
  const double large = PyLong_AsDouble(value.ptr());
  if (PyErr_Occurred() == nullptr) return large;
  PyErr_Clear();  // Beyond double too.
  return overflow * std::numeric_limits<double>::infinity();
}

/// TypeError for texts that have no UTF-8.
std::string text_of(nb::handle value) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text != nullptr) return {text, static_cast<std::size_t>(size)};
  PyErr_Clear();
  throw nb::type_error("expected text, got characters without a UTF-8 form");
}

json json_of(nb::handle value, std::size_t depth);

json json_of_each(nb::handle values, std::size_t depth) {
  json list = json::array();
  for (nb::handle item : values) list.push_back(json_of(item, depth));
  return list;
}

json json_of_object(const nb::dict& members, std::size_t depth) {
  json object = json::object();
  for (const auto& [name, value] : members) {
    if (!nb::isinstance<nb::str>(name)) throw nb::type_error("expected texts as the keys of a dictionary");
    object[text_of(name)] = json_of(value, depth);
  }
  return object;
}

/// Numbers and arrays of NumPy and of those like it say what they hold by tolist().
json json_of(nb::handle value, std::size_t depth) {
  if (depth == deepest_json) throw nb::type_error("expected no lists this deep in each other");
  if (value.is_none()) return nullptr;
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) return json_of_integer(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value)) return text_of(value);
  if (nb::isinstance<nb::dict>(value)) return json_of_object(nb::borrow<nb::dict>(value), depth + 1);
  if (nb::hasattr(value, "tolist")) return json_of(value.attr("tolist")(), depth + 1);
  if (nb::hasattr(value, "__index__")) return json_of_integer(value.attr("__index__")());
  if (nb::hasattr(value, "__float__")) return nb::cast<double>(value.attr("__float__")());
  if (nb::hasattr(value, "__iter__") && !nb::isinstance<nb::bytes>(value))
    return json_of_each(value, depth + 1);
  throw nb::type_error(fmt::format("expected numbers, texts and lists of them, got a {}",
                                   nb::cast<std::string>(value.type().attr("__name__")))
                           .c_str());
}

}  // namespace

json json_of_arguments(const nb::dict& given, const ConfigFields& table) {
  json object = json::object();
  for (const auto& [key, value] : given) {
    if (value.is_none()) continue;
    const auto name = nb::cast<std::string>(key);
    json argument;
    try {
      argument = json_of(value, 0);
    } catch (const nb::builtin_exception& error) {
      throw nb::type_error(fmt::format("{}: {}", name, error.what()).c_str());
    }
    const ConfigField* row = find_field(table, name);
    // Not "!=", by which the JSON library says of NaN that it is no other number.
    if (row == nullptr || !(argument == row->default_json())) object[name] = std::move(argument);
  }
  return object;
}

std::string function_in_front(const std::string& function, const std::string& message) {
  const std::string path = function + ".";
  return message.starts_with(path) ? function + ": " + message.substr(path.size()) : message;
}

std::string rows_of_table(const ConfigFields& table) {
  ordered_json rows = ordered_json::array();
  for (const ConfigField& row : table)
    rows.push_back({{"name", row.name},
                    {"values", row.values.text()},
                    {"default", row.default_value},
                    {"meaning", row.meaning}});
  return rows.dump();
}

}  // namespace widelimit::python

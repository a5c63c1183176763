#pragma once

#include <nanobind/nanobind.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "widelimit/error.hpp"
#include "widelimit/fields/config_reader.hpp"

namespace widelimit::python {

/// Arguments of a function as the object that the table of their fields describes. An argument is left out where it is
/// None or its row's default, as it is where nobody gave it. TypeError for what JSON has no form for.
[[nodiscard]] nlohmann::json json_of_arguments(const nanobind::dict& given, const ConfigFields& table);

/// "max_step: expected ..., got ..." of "simulate.max_step: expected ..., got ...", after the function's name.
[[nodiscard]] std::string function_in_front(const std::string& function, const std::string& message);

/// read(fields) of such an object by the rows of their table: ranges, defaults and sentences are those of the program.
/// Errors are ArgumentErrors "FUNCTION: ARGUMENT: expected ..., got ...".
template <typename Read>
auto read_object(const std::string& function, const nlohmann::json& object, const ConfigFields& table,
                 const Read& read) {
  try {
    ConfigReader fields(object, table, function);
    auto result = read(fields);
    fields.finish(unused_field);
    return result;
  } catch (const NetworkError& error) {
    throw ArgumentError(function_in_front(function, error.what()));
  } catch (const ArgumentError& error) {
    throw ArgumentError(function_in_front(function, error.what()));
  }
}

/// The same of the arguments themselves.
template <typename Read>
auto read_arguments(const std::string& function, const nanobind::dict& given, const ConfigFields& table,
                    const Read& read) {
  return read_object(function, json_of_arguments(given, table), table, read);
}

/// The rows of a table, a JSON list of {"name", "values", "default", "meaning"}: what docstrings and tests are held to.
[[nodiscard]] std::string rows_of_table(const ConfigFields& table);

}  // namespace widelimit::python

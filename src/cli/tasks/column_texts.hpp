#pragma once

#include <optional>
#include <string>
#include <vector>

#include "widelimit/data/number_format.hpp"

/// Texts of columns that are no categories although no number can be read from them as it stands.
namespace widelimit::cli {

/// Whether a field is one of the words that other programs write where a number is missing: NA, N/A, NaN, null or ?,
/// in capitals or not.
[[nodiscard]] bool is_word_of_missing(const std::string& field);

/// Whether a field holds nothing but blanks.
[[nodiscard]] bool is_blank(const std::string& field);

/// true or false for a field that says so, in capitals or not; nothing for another.
[[nodiscard]] std::optional<bool> truth_value(const std::string& field);

/// What makes numbers of fields that are numbers in another notation: "--decimal ,", "--strip %". Decimal commas,
/// groups of thousands, currencies and units are known, if all fields have the same. Empty where some field is
/// something else, or there is none; fields that hold nothing, and those that are numbers, play no part.
[[nodiscard]] std::string remedy_of_numbers(const std::vector<std::string>& fields,
                                            const data::NumberFormat& format);

/// Whether all fields are dates in digits ("2024-01-31", "31.1.2024", "1/31/24"), perhaps with a time behind.
[[nodiscard]] bool are_dates(const std::vector<std::string>& fields);

}  // namespace widelimit::cli

#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>
#include <xtensor/xarray.hpp>

#include "cli/tasks/table_encoding.hpp"

/// What people should know of a table before they believe what comes of it.
namespace widelimit::cli {

/// "a, b, c", the first twenty of many.
[[nodiscard]] std::string short_list(const std::vector<std::string>& names);

/// "columns: numbers a, b; categories colour (2); names of rows plant; target kind", of TableEncoding::readings().
[[nodiscard]] std::string readings_text(const nlohmann::ordered_json& readings);

/// Columns that are no inputs as all training rows have the same in them: a line, or nothing.
[[nodiscard]] std::string constant_columns_text(const nlohmann::ordered_json& readings);

/// Texts of classes, or of the categories of a column, that are the same but for capitals and blanks around them: a
/// line, or nothing. `of`: whose they are, "classes".
[[nodiscard]] std::string alike_texts_text(const std::string& of, const std::vector<std::string>& texts);

/// Columns, of two or more, whose numbers are whole and different in all of ten or more training rows, as identifiers
/// are: a line, or nothing.
[[nodiscard]] std::string identifiers_text(const NamedTable& train, const nlohmann::ordered_json& readings,
                                           const data::NumberFormat& format);

/// Columns of inputs that hold the target in all of ten or more training rows: its number, or of classes a text of its
/// own for each: a line, or nothing.
[[nodiscard]] std::string copies_of_target_text(const NamedTable& train,
                                                const nlohmann::ordered_json& readings,
                                                const std::vector<std::string>& targets, bool classes,
                                                const data::NumberFormat& format);

/// Targets that --ignore names, which are no inputs without it: a line, or nothing.
[[nodiscard]] std::string ignored_targets_text(const std::vector<std::string>& targets,
                                               const std::set<std::string>& ignored);

/// Cells of these columns that hold something else, {"a": 3}, in a part of the data: a line, or nothing.
[[nodiscard]] std::string new_values_text(const nlohmann::ordered_json& cells, const std::string& part);

/// How many rows of another part have the inputs of some training row: a line, or nothing.
[[nodiscard]] std::string shared_rows_text(const xt::xarray<double>& train, const xt::xarray<double>& others,
                                           const std::string& part);

/// Of cells {"test": {"colour": 3}, "validation": {}}: "test rows 3 in 'colour'; validation rows none".
[[nodiscard]] std::string cells_by_part_text(const nlohmann::ordered_json& cells);

}  // namespace widelimit::cli

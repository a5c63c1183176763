#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include <xtensor/xarray.hpp>

#include "cli/tasks/table_encoding.hpp"

/// What people should know of a table before they believe what comes of it.
namespace widelimit::cli {

/// "columns: numbers a, b; categories colour (2); names of rows plant; target kind", of TableEncoding::readings().
[[nodiscard]] std::string readings_text(const nlohmann::ordered_json& readings);

/// Columns that are no inputs as all training rows have the same in them: a line, or nothing.
[[nodiscard]] std::string constant_columns_text(const nlohmann::ordered_json& readings);

/// Cells of these columns that hold something else, {"a": 3}, in a part of the data: a line, or nothing.
[[nodiscard]] std::string new_values_text(const nlohmann::ordered_json& cells, const std::string& part);

/// How many rows of another part have the inputs of some training row: a line, or nothing.
[[nodiscard]] std::string shared_rows_text(const xt::xarray<double>& train, const xt::xarray<double>& others,
                                           const std::string& part);

/// Of cells {"test": {"colour": 3}, "validation": {}}: "test rows 3 in 'colour'; validation rows none".
[[nodiscard]] std::string cells_by_part_text(const nlohmann::ordered_json& cells);

}  // namespace widelimit::cli

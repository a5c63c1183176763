#include "json/json_matrix.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace widelimit {

template <JsonReadable T>
std::string read_rows(const nlohmann::json& rows, std::size_t width, Matrix<T>& target) {
  if (!rows.is_array()) return "expected a list of rows, got " + shown_json(rows);
  target.resize(static_cast<Index>(rows.size()), static_cast<Index>(width));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const nlohmann::json& row = rows[i];
    if (!row.is_array() || row.size() != width)
      return fmt::format("expected {} rows of {} {}, got {} in row {}", rows.size(), width,
                         JsonKind<T>::several(),
                         row.is_array() ? std::to_string(row.size()) : shown_json(row), i);
    for (std::size_t j = 0; j < width; ++j)
      if (!JsonKind<T>::read(row[j], target(static_cast<Index>(i), static_cast<Index>(j))))
        return fmt::format("expected {} in row {}, got {}", JsonKind<T>::one(), i, shown_json(row[j]));
  }
  return {};
}

template <typename T>
nlohmann::ordered_json json_rows(const Matrix<T>& matrix) {
  auto rows = nlohmann::ordered_json::array();
  for (Index i = 0; i < matrix.rows(); ++i)
    rows.push_back(std::vector<T>(matrix.row(i).begin(), matrix.row(i).end()));
  return rows;
}

template std::string read_rows(const nlohmann::json&, std::size_t, Matrix<double>&);
template std::string read_rows(const nlohmann::json&, std::size_t, Matrix<bool>&);
template nlohmann::ordered_json json_rows(const Matrix<double>&);
template nlohmann::ordered_json json_rows(const Matrix<bool>&);

bool JsonKind<Matrix<double>>::read(const nlohmann::json& value, Matrix<double>& target) {
  const std::size_t width = value.is_array() && !value.empty() ? value.front().size() : 0;
  return read_rows(value, width, target).empty();
}

bool JsonKind<Vector<double>>::read(const nlohmann::json& value, Vector<double>& target) {
  std::vector<double> numbers(1);
  if (!JsonKind<double>::read(value, numbers.front())) {
    numbers.clear();
    if (!JsonKind<std::vector<double>>::read(value, numbers)) return false;
  }
  target = Eigen::Map<const Vector<double>>(numbers.data(), static_cast<Index>(numbers.size()));
  return true;
}

}  // namespace widelimit

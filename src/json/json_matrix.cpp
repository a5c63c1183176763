#include "json/json_matrix.hpp"

#include <algorithm>

namespace widelimit {

bool JsonKind<Matrix<double>>::read(const nlohmann::json& value, Matrix<double>& target) {
  std::vector<std::vector<double>> rows;
  if (!JsonKind<std::vector<std::vector<double>>>::read(value, rows)) return false;
  const std::size_t width = rows.empty() ? 0 : rows.front().size();
  if (std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.size() != width; }))
    return false;
  target.resize(static_cast<Index>(rows.size()), static_cast<Index>(width));
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), target.row(static_cast<Index>(i)).data());
  return true;
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

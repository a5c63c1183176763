#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace widelimit::specialization {

/// Times of one quantity over sizes of the start, several of each size one after the other.
class TimesOverScales {
 public:
  void add(double scale, std::optional<double> time);
  /// {"slope" over the sizes at which all starts reached it, "times": for each size median, least and greatest with
  /// what was not reached (null) as later than all, the number reached, mean and variance where that is all, and the
  /// values}.
  [[nodiscard]] nlohmann::json summary() const;

 private:
  std::vector<std::pair<double, std::vector<std::optional<double>>>> scales_;
};

}  // namespace widelimit::specialization

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/heads/heads_config.hpp"
#include "widelimit/specialization/first_times.hpp"

/// Times at which heads specialise, over sizes of the start.
namespace widelimit::cli {

/// The median of times of which NaN were not reached and so are later than all others; NaN where it is not reached.
[[nodiscard]] double censored_median(std::vector<double> times);

/// Times of one quantity over sizes and starts.
class TimesOverScales {
 public:
  void add(double scale, std::optional<double> time);
  /// {"slope" over the sizes at which all starts reached it, "times": for each size median, least and greatest with
  /// what was not reached (null) as later than all, the number reached, mean
  /// and variance where that is all, and the values}.
  [[nodiscard]] nlohmann::json summary() const;

 private:
  /// What is left out is late, and would flatten a slope.
  [[nodiscard]] std::vector<std::pair<double, double>> points_of_complete_scales() const;

  double last_scale_ = 0;
  std::vector<std::vector<std::optional<double>>> spreads_;
  std::vector<std::pair<double, double>> points_;
};

/// A table of times over dimensions, `etas` and `starts`, a row a start: eta, start, ln(sqrt(D) / eta), and each time
/// beside its ratio to that logarithm.
class TimesTable {
 public:
  /// `names` of the quantities follow "NAME_" in the columns unless they are empty. A first column tells the dimension
  /// where there are several.
  TimesTable(const std::string& quantity, const std::vector<std::string>& names,
             bool several_dimensions = false);

  /// Adds a row for each of the sizes and starts in one dimension: run(eta,
  /// seed) gives FirstTimes of some or all quantities.
  template <typename Run>
  void fill(ConfigReader& in, Index dimension, const Run& run) {
    const Index starts = in.integer("starts");
    for (const auto& [eta, scale] : scales_of(in, dimension))
      for (Index start = 0; start < starts; ++start)
        append(dimension, eta, start, scale, run(eta, read_seed(in) + static_cast<std::uint64_t>(start)));
  }

  [[nodiscard]] nlohmann::json summary_of(std::size_t quantity) const {
    return quantities_[quantity].summary();
  }
  /// Notes on the times that were not reached, once all are there.
  void note_times();
  /// How many runs ended because everything had specialised, at rest, or at tau.
  [[nodiscard]] nlohmann::json ends() const;

  ResultTable table;

 private:
  static std::vector<std::pair<double, double>> scales_of(ConfigReader& in, Index dimension);
  void append(Index dimension, double eta, Index start, double scale, const std::vector<FirstTimes>& runs);

  std::vector<TimesOverScales> quantities_;
  std::vector<RunEnd> ends_;
  bool several_dimensions_;
};

}  // namespace widelimit::cli

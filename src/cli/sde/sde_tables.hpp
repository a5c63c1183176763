#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/output_folder.hpp"
#include "cli/output/result_table.hpp"
#include "cli/sde/sde_lists.hpp"
#include "cli/sde/sde_output.hpp"
#include "widelimit/covariance_sde/configuration.hpp"
#include "widelimit/covariance_sde/ensemble.hpp"

/// Tables of the ensembles of `widelimit sde`, point by point of its lists.
namespace widelimit::cli {

/// Which times samples are written of.
enum class SampleTimes { last, all };

/// Files that EnsembleTables writes.
[[nodiscard]] std::vector<std::string> ensemble_file_names(SampleTimes times);

/// quantiles.csv (every time; apart for the paths that run and those that have stopped), means.csv and correlations.csv
/// (every time, of the paths that run), samples.csv (the last time), summary.json (counts), and for all times
/// trajectories.csv: path by path, a row a time. Of lists each row begins
/// with its point, and summary.json has a list of `points`.
class EnsembleTables {
 public:
  explicit EnsembleTables(SampleTimes times) : times_{times} {}

  void append(const SdePoint& point, const covariance_sde::CovarianceEnsemble& ensemble);
  void write(OutputFolder& folder, const Origin& origin) const;

  /// What summary.json holds.
  [[nodiscard]] nlohmann::json summary() const;

 private:
  SampleTimes times_;
  std::string quantiles_, means_, correlations_, samples_, trajectories_;
  std::vector<nlohmann::json> points_;
};

/// Number of paths, of each kind of end and of exits from the cone.
[[nodiscard]] nlohmann::json ensemble_counts(const covariance_sde::CovarianceEnsemble& ensemble);

/// Columns of rows of correlations(): "time,mean,mean_error,mean_abs,...".
[[nodiscard]] std::string correlation_columns();
/// A row a time: means over pairs of tokens and paths that run, and
/// quantiles over all of them; rows begin with `cells`.
[[nodiscard]] std::string correlation_rows(const std::string& cells,
                                           const covariance_sde::CovarianceEnsemble& ensemble);

/// Correlations against time, for pictures: means over pairs and paths with standard errors. No rows of one token, and
/// of times by which all have stopped.
[[nodiscard]] PointBars mean_correlations(const std::string& name,
                                          const covariance_sde::CovarianceEnsemble& ensemble);

}  // namespace widelimit::cli

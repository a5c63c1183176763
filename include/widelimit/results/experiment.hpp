#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "widelimit/fields/config_reader.hpp"
#include "widelimit/results/results.hpp"
#include "widelimit/run_control.hpp"

/// Experiments of a theory: one row says what an experiment is called, what it can be told, and how it runs. The
/// commands of the program, their help, pictures and scans, and what Python returns are made of these rows.
namespace widelimit::results {

/// How an experiment runs, which does not affect its results, and whom it tells what meanwhile. What is empty is not
/// told.
struct Control : RunControl {
  using Progress = std::function<void(std::ptrdiff_t, std::ptrdiff_t)>;
  using Tell = std::function<void(const std::string&)>;

  /// Called with the runs that are done and their number, where an experiment consists of such.
  Progress runs_done = {};
  /// The progress of a part of this name, in place of that of the whole.
  std::function<Progress(const std::string& part)> progress_of = {};
  Tell warn = {}, notice = {};
  /// Lines for people, once a part of the results is there; and such a part itself.
  Tell say = {};
  std::function<void(const nlohmann::json&)> show = {};
  std::string config_name = {};    ///< The file of the configuration, for warnings about it.
  bool with_trajectories = false;  ///< Also tables of every path at all times.

  /// The control of a part.
  [[nodiscard]] RunControl part(const std::string& name) const {
    return {.threads = threads, .stop = stop, .progress = progress_of ? progress_of(name) : progress};
  }
};

/// What the picture of a scan shows: a quantity over another one, or over a scanned field.
struct ScanPicture {
  std::string x, x_label;  ///< Empty: the first scanned field of several values.
  std::string y, y_label;
};

struct Experiment {
  std::string name;
  std::string sentence;        ///< For --help.
  const ConfigFields* fields;  ///< With a field "scan" where there are scans.
  /// Runs it. Fields are checked; errors name those that do not go together.
  Results (*run)(ConfigReader& fields, const Control& control);
  Picture (*picture)(const Results& results) = nullptr;  ///< None where there is nothing to draw.
  ScanPicture scan_picture = {};
  /// The rows of a point of a scan, where they are not those of its table.
  void (*tabulate_point)(Results& results) = nullptr;
  /// The fields of a configuration, where they hang on it.
  const ConfigFields& (*fields_of)(const nlohmann::json& config) = nullptr;
  std::string help = {};  ///< What --help says after the fields.
  /// Of experiments that write a folder: NAME.csv is the table of this name, NAME.json the summary.
  std::vector<std::string> files = {}, pictures = {};
  std::string trajectories = {};  ///< A file that is only written if it is asked for; what help says of it.
};

/// The experiments of one theory, in the order of --help.
struct Theory {
  std::string name;  ///< That of its command.
  std::vector<Experiment> experiments;

  /// ArgumentError, which lists all, for an unknown name.
  [[nodiscard]] const Experiment& experiment(std::string_view name) const;
  /// Runs an experiment on a configuration, an object of its fields; ArgumentError and NetworkError name missing,
  /// unknown and unfit fields. Others are those of the functions that do the work.
  [[nodiscard]] Results run(std::string_view name, const nlohmann::json& config,
                            const Control& control = {}) const;
};

/// Whether configurations of the experiment may have "scan".
[[nodiscard]] bool has_scans(const Experiment& experiment);
/// Whether the configuration asks for a scan, of an experiment that has them.
[[nodiscard]] bool is_scan(const Experiment& experiment, const nlohmann::json& config);

/// Runs an experiment at every point of the grid of "scan": {"heads": [1, 2, 4], "prior.nu": [1, 10]}, the last list
/// fastest. One table for all: its first columns are the scanned fields, then those of the points' rows, and the
/// summary has the list "points".
///
/// `kept`: a file that gets every point as soon as it is done, from which another call with the same configuration goes
/// on, and which is gone after the last; empty: none.
///
/// Progress counts points. Errors  as run(), with the point in front; NetworkError naming a list that is none, or a
/// field that is scanned and given too; DataError if `kept` belongs to another configuration or version.
[[nodiscard]] Results run_scan(const Theory& theory, std::string_view name, const nlohmann::json& config,
                               const Control& control, const std::filesystem::path& kept = {});

/// The picture of a scan: medians, a line a point of the lists that are not the x axis.
[[nodiscard]] Picture scan_picture(const Theory& theory, std::string_view name, const Results& results);

/// The median of values of which NaN are later than all others; NaN where it is one of them.
[[nodiscard]] double censored_median(std::vector<double> values);

}  // namespace widelimit::results

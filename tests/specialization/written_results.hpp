#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "widelimit/specialization/experiments.hpp"

namespace widelimit::specialization::testing {

/// What files hold of an experiment of heads.
struct WrittenResults {
  std::vector<std::string> columns = {};
  std::vector<std::vector<double>> rows = {};
  nlohmann::json summary = nlohmann::json::object();
  results::Origin origin = {};
  results::Table::Notes notes = {};
};

inline WrittenResults written(const results::Results& results) {
  return {results.table.names(), results.table.number_rows(), results.summary, results.origin, results.notes};
}

inline results::Results results_of(const WrittenResults& written) {
  return {.origin = written.origin,
          .summary = written.summary,
          .table = results::Table(written.columns, written.rows),
          .notes = written.notes};
}

inline results::Control control_of(const RunControl& run) {
  results::Control control;
  static_cast<RunControl&>(control) = run;
  return control;
}

inline WrittenResults run_experiment(std::string_view name, const nlohmann::json& config,
                                     const RunControl& run = {}) {
  return written(experiments().run(name, config, control_of(run)));
}

inline WrittenResults run_scan(std::string_view name, const nlohmann::json& config, const RunControl& run,
                               const std::filesystem::path& kept = {}) {
  return written(results::run_scan(experiments(), name, config, control_of(run), kept));
}

inline void note_missing(WrittenResults& written) {
  results::Results results = results_of(written);
  static_cast<void>(results::note_missing(results));
  written.summary = results.summary;
  written.notes = results.notes;
}

/// The script of an experiment's picture.
inline std::string picture_script(std::string_view name, const WrittenResults& written) {
  return gnuplot_script(experiments().experiment(name).picture(results_of(written)));
}

/// The script of the picture of a scan.
inline std::string scan_script(std::string_view name, const WrittenResults& written) {
  return gnuplot_script(results::scan_picture(experiments(), name, results_of(written)));
}

inline std::string csv_rows(const WrittenResults& written) {
  return csv_text(results::Table(written.columns, written.rows));
}

}  // namespace widelimit::specialization::testing

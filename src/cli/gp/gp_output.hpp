#pragma once

#include <string>
#include <vector>

#include "cli/gp/gp_arguments.hpp"
#include "cli/gp/gp_files.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/output_options.hpp"
#include "cli/program/run_context.hpp"
#include "cli/report/page.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::cli {

/// Where the files of each network go in the output folder: a folder for each if there are several.
[[nodiscard]] std::vector<std::string> places_of(const std::vector<Network>& networks);

/// Where the results of all networks go: opened before the work begins, to be filled network by network.
class GpOutput {
 public:
  GpOutput(const OutputArguments& arguments, const std::vector<NamedFile>& read,
           const gp::InferenceOptions& options, const std::vector<Network>& networks,
           const RunContext& context, nlohmann::ordered_json shapes)
      : places_{places_of(networks)},
        folder_{arguments.folder, names(places_, options, arguments), arguments.other_files},
        record_{context.command_line, {}, std::move(shapes)},
        gnuplot_{context.interrupt.token()},
        draws_{!arguments.no_pictures} {
    folder_.check_inputs(read);
  }

  /// Of network number i. The numbers are in place before pictures are drawn.
  void write(std::size_t i, const PredictionFacts& info, const GpResult& result,
             const std::optional<Matrix<double>>& test_targets) {
    const auto network = nlohmann::ordered_json::parse(to_json(info.network));
    if (places_[i].empty())
      record_.network = network;
    else
      record_.network.push_back(network);
    write_gp_files(folder_, places_[i], info, result, test_targets);
    commit(places_[i], network);
    if (!draws_) return;
    draw_gp_pictures(folder_, places_[i], gnuplot_, info, result, test_targets);
    commit(places_[i], network);
  }

  /// Of all networks so far.
  void write_report(const ReportPage& page) {
    folder_.write(report_name, page.html());
    folder_.commit(record_);
  }

  [[nodiscard]] const RunRecord& record() const { return record_; }

 private:
  static constexpr const char* report_name = "report.html";

  static std::vector<std::string> names(const std::vector<std::string>& places,
                                        const gp::InferenceOptions& options,
                                        const OutputArguments& arguments) {
    std::vector<std::string> names;
    if (!arguments.no_report) names.emplace_back(report_name);
    for (const std::string& place : places) {
      for (const std::string& name : gp_file_names(options)) names.push_back(place + name);
      if (!place.empty()) names.push_back(place + record_name);
    }
    return names;
  }

  void commit(const std::string& place, const nlohmann::ordered_json& network) {
    if (!place.empty()) folder_.write_inner_record(place, {record_.command, network, record_.shapes});
    folder_.commit(record_);
  }

  std::vector<std::string> places_;
  OutputFolder folder_;
  RunRecord record_;
  Gnuplot gnuplot_;
  bool draws_;
};

}  // namespace widelimit::cli

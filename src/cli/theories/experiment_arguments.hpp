#pragma once

#include <filesystem>

#include "cli/output/output_folder.hpp"
#include "cli/program/run_context.hpp"
#include "widelimit/results/experiment.hpp"

namespace widelimit::cli {

/// What the command line says to an experiment.
struct ExperimentArguments {
  std::filesystem::path config, out, plot;
  int threads = 0;
  // Of those that write a folder.
  OtherFiles other_files = OtherFiles::refused;
  bool no_pictures = false, trajectories = false;
};

/// The control of an experiment: threads, interrupts and warnings. A part has a bar of its own.
[[nodiscard]] results::Control control_of(const ExperimentArguments& arguments, const RunContext& context);

/// Runs an experiment, and writes the folder of its results.
void run_to_folder(const results::Theory& theory, const results::Experiment& experiment,
                   const ExperimentArguments& arguments, const RunContext& context);

}  // namespace widelimit::cli

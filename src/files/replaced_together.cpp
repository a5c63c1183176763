#include "widelimit/files/replaced_together.hpp"

#include <fmt/format.h>

#include <system_error>

#include "widelimit/error.hpp"

namespace widelimit::files {

namespace fs = std::filesystem;

ReplacedTogether::~ReplacedTogether() { static_cast<void>(undo()); }

void ReplacedTogether::put(ReplacingFile& file) {
  try {
    keep_earlier(file.target());
    file.commit();
    steps_.back().is_placed = true;
  } catch (const DataError& error) {
    throw DataError(error.what() + undo());
  }
}

void ReplacedTogether::remove(const fs::path& file) {
  try {
    keep_earlier(file);
    std::error_code error;
    // It is gone where it could not be linked and was moved instead.
    fs::remove(file, error);
    if (error) throw DataError(fmt::format("{}: cannot be removed: {}", file.string(), error.message()));
  } catch (const DataError& error) {
    throw DataError(error.what() + undo());
  }
}

void ReplacedTogether::finish() { steps_.clear(); }

void ReplacedTogether::keep_earlier(const fs::path& target) {
  std::error_code error;
  const auto status = fs::symlink_status(target, error);
  steps_.push_back({target});
  if (!fs::exists(status)) return;
  if (!fs::is_regular_file(status)) {
    steps_.pop_back();
    throw DataError(
        fmt::format("{}: cannot be replaced: expected a regular file or none, found a folder, link or device",
                    target.string()));
  }
  const fs::path& kept = steps_.back().earlier.emplace_back(temporary_name(target)).path();
  // A second name first, so that readers find the one file or the other at any moment.
  fs::create_hard_link(target, kept, error);
  if (error) fs::rename(target, kept, error);
  if (!error) return;
  steps_.pop_back();
  throw DataError(fmt::format("{}: cannot be replaced: {}", target.string(), error.message()));
}

std::string ReplacedTogether::undo() {
  std::string message = "; all files are as they were";
  while (!steps_.empty()) {
    Step& step = steps_.back();
    std::error_code error;
    if (step.is_placed && step.earlier.empty()) fs::remove(step.target, error);
    // If both are names of one file, this does nothing, and the second name goes with the step.
    if (!step.earlier.empty()) fs::rename(step.earlier.front().path(), step.target, error);
    if (error && !step.earlier.empty()) {
      step.earlier.front().keep();
      message = fmt::format("; {} could not be put back and is in {}", step.target.string(),
                            step.earlier.front().path().string());
    }
    steps_.pop_back();
  }
  return message;
}

}  // namespace widelimit::files

#include "cli/options/named_files.hpp"

#include <fmt/format.h>

#include <system_error>

#include "cli/output/output_folder.hpp"
#include "widelimit/error.hpp"

namespace widelimit::cli {

namespace {

void require_different(const NamedFile& first, const NamedFile& second) {
  if (are_same_file(first.path, second.path))
    throw ArgumentError(fmt::format("{} and {}: expected different files, got {} for both", first.name,
                                    second.name, second.path.string()));
}

}  // namespace

bool are_same_file(const std::filesystem::path& first, const std::filesystem::path& second) {
  if (first.empty() || second.empty()) return false;
  std::error_code error;
  if (std::filesystem::equivalent(first, second, error)) return true;
  const auto place = [&](const std::filesystem::path& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  };
  return place(first) == place(second);
}

void check_different_files(const CommandFiles& files) {
  for (std::size_t k = 0; k < files.written.size(); ++k) {
    for (const NamedFile& read : files.read) require_different(read, files.written[k]);
    for (std::size_t i = 0; i < k; ++i) require_different(files.written[i], files.written[k]);
  }
}

void check_output_files(const CommandFiles& files) {
  check_different_files(files);
  for (const NamedFile& written : files.written) check_output_file(written.path);
}

}  // namespace widelimit::cli

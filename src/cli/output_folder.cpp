#include "cli/output_folder.hpp"

#include <fmt/format.h>

#include <system_error>

#include "widelimit/error.hpp"

namespace widelimit::cli {

void make_output_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder))
    throw DataError(fmt::format("{}: cannot make this folder: {}", folder.string(),
                                error ? error.message() : "a file of that name exists"));
}

}  // namespace widelimit::cli

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/tasks/data_arguments.hpp"

namespace widelimit::cli {

/// One kind of data for --data: all that commands know of it.
struct DataSource {
  const char* name = "";
  const char* what = "";   ///< "arrays"
  const char* files = "";  ///< What --path is then; empty: the data are generated.
  /// Those options that mean something for it, of those that mean nothing for some other source.
  std::vector<std::string_view> options = {};
  std::vector<std::string_view> required = {};
  /// Where its own validation data would stand, and how to refer to it; empty where they are drawn from the others.
  const char* validation = "";
  const char* it = "";
  std::function<GpTask<float>(const DataArguments&)> read_float = {};
  std::function<GpTask<double>(const DataArguments&)> read_double = {};

  [[nodiscard]] bool takes(std::string_view option) const;
  /// DataError for a file in the place of a folder.
  void require_folder(const std::filesystem::path& path) const;
};

[[nodiscard]] const std::vector<DataSource>& data_sources();

/// The source of a name that --data takes.
[[nodiscard]] const DataSource& data_source(std::string_view name);

/// "for --data npy, csv and graphs only": the sources for which an option means something; empty if it does for all.
[[nodiscard]] std::string where_option_is_for(std::string_view option);

}  // namespace widelimit::cli

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace widelimit::cli {

/// The run that a folder is of, begun anew where it was begun: "rerun FOLDER [--out OTHER] [--yes]", with the folder or
/// its run.json. This may be a stranger's: without --yes nothing is written outside of the folder that the results go
/// to.
class Rerun {
 public:
  /// Of these words of a command line, the program first; nothing if they are no rerun of one folder.
  [[nodiscard]] static std::optional<Rerun> in(const std::vector<std::string>& given);

  /// The words of the run, the program first; its working directory becomes that of this process.
  /// Errors  DataError naming run.json for what cannot be read or is no run, and for a directory that is not there;
  ///         ArgumentError for --out of a run that has no folder of results.
  [[nodiscard]] std::vector<std::string> begin();

  /// Once the run has ended: says on standard error which files have the same bits as before, or as in the folder.
  void compare() const;

 private:
  /// A file that run.json lists, and the SHA-256 that it had; empty where it could not be read.
  struct KnownFile {
    std::string name;
    std::string digest;
  };

  std::string program_;
  std::filesystem::path folder_;
  std::optional<std::filesystem::path> out_;  ///< Where the results go, if not to the folder.
  bool may_write_anywhere_ = false;
  std::vector<std::string> flags_;  ///< What goes on to the command that runs again.
  std::vector<KnownFile> before_;
};

}  // namespace widelimit::cli

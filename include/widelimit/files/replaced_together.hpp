#pragma once

#include <filesystem>
#include <list>
#include <string>

#include "widelimit/files/replacing_file.hpp"
#include "widelimit/files/temporary_path.hpp"

namespace widelimit::files {

/// Files that take their places, or go, all together: where one of them cannot, or nobody calls finish(), everything is
/// as it was before. What a power failure or kill -9 interrupts stays as it is, the earlier files under temporary names
/// (temporary_name()) beside the others. While an object lives, other threads wait to remove temporary paths.
class ReplacedTogether {
 public:
  ReplacedTogether() = default;
  ~ReplacedTogether();
  ReplacedTogether(const ReplacedTogether&) = delete;
  ReplacedTogether& operator=(const ReplacedTogether&) = delete;

  /// Commits the file. DataError naming it where that fails or something else than a regular file stands in its place;
  /// then everything is as before, or the message says what is not.
  void put(ReplacingFile& file);

  /// Removes a file. Errors as those of put().
  void remove(const std::filesystem::path& file);

  /// All are in their places: the earlier ones go.
  void finish();

 private:
  struct Step {
    std::filesystem::path target;
    std::list<TemporaryPath> earlier =
        {};                  ///< Where the file that was there is kept; empty if there was none.
    bool is_placed = false;  ///< The new one is there.
  };

  void keep_earlier(const std::filesystem::path& target);
  /// What could not be put back, as the end of a message.
  std::string undo();

  TemporaryPathLock lock_;
  std::list<Step> steps_;
};

}  // namespace widelimit::files

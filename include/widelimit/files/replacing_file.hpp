#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "widelimit/files/permissions.hpp"
#include "widelimit/files/temporary_path.hpp"

namespace widelimit::files {

/// Whether writing to a symbolic link replaces what it points to, or is an error: in folders, which may come from
/// strangers, nothing is followed.
enum class Links { followed, refused };

/// A file that takes the place of `target` when it is committed, and vanishes otherwise: no reader ever sees
/// half a file, and after an error an existing file is as it was.
///
/// The bytes go to a temporary file beside the target, see temporary_name(), which has the owner and the mode of the
/// target. All errors are DataErrors that name the target.
class ReplacingFile {
 public:
  /// `permissions`: of the new file where there is no target [the usual ones].
  /// Throws if the target exists and is no regular file, or the temporary file cannot be created.
  explicit ReplacingFile(const std::filesystem::path& target, Links links = Links::followed,
                         std::optional<Permissions> permissions = {});
  ~ReplacingFile();
  ReplacingFile(const ReplacingFile&) = delete;
  ReplacingFile& operator=(const ReplacingFile&) = delete;

  /// Appends. Also throws at a limit of the file's size, whose signal (SIGXFSZ) is held back.
  void write(const void* bytes, std::size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }

  /// What is replaced, links followed.
  [[nodiscard]] const std::filesystem::path& target() const { return target_; }

  /// Of the temporary file, for others that write into it.
  [[nodiscard]] int descriptor() const { return descriptor_; }

  /// Everything is written: throws if the system tells so late that it is not. Once; before commit().
  void close();

  /// Puts the file in the place of the target; closes it if need be.
  void commit();

  /// The same, and returns only when it would outlive a power failure: the bytes, then the name are on the disk. Costs
  /// a few milliseconds, as disks go.
  void commit_to_disk();

 private:
  [[noreturn]] void fail(std::string_view action, int code) const;

  std::filesystem::path target_;
  TemporaryPath temporary_;
  int descriptor_ = -1;
};

/// Returns when the names in a folder are on the disk. DataError, naming the folder, if they cannot be.
void sync_folder(const std::filesystem::path& folder);

/// Throws now what writing `target` would throw later: it is no regular file, or its folder does not exist or
/// cannot be written to. Leaves nothing behind.
void check_replaceable(const std::filesystem::path& target, Links links = Links::followed);

/// TARGET.HOST-SPACE-PROCESS-RANDOM-NUMBER.part, with the parts of ProcessIdentity and a number that this process gives
/// once: no two writers of any machines or containers share one. TARGET is name_in_temporary(); another `ending` may
/// stand after the last point.
[[nodiscard]] std::filesystem::path temporary_name(const std::filesystem::path& target,
                                                   std::string_view ending = "part");

/// What stands for a target in the names of its temporary files: the target itself, or the beginning of its last part
/// and a sum of all where file systems, which take 255 bytes, would refuse the whole.
[[nodiscard]] std::string name_in_temporary(const std::string& target);

/// If a file's name is that of a temporary one, also of version 0.1 (TARGET.PROCESS-NUMBER.part): name_in_temporary()
/// of the target.
std::optional<std::string> target_of_writer(const std::string& name);

/// The same, if moreover the process that wrote it was one of this machine, and runs no more. Only kill -9 and power
/// failures leave such files behind.
std::optional<std::string> target_of_dead_writer(const std::string& name);

/// Whether a file's name is that of a temporary one of another process of this machine, which runs.
bool is_of_another_here(const std::string& name);

/// Removes temporary files from a folder, those of targets that `is_target` accepts, if their process has ended or,
/// where that is not known, nothing was written to them for an hour. A folder that is not there has none.
void remove_leftovers(const std::filesystem::path& folder,
                      const std::function<bool(const std::string& target)>& is_target);

/// Writes a whole file.
void replace_file(const std::filesystem::path& target, std::string_view text, Links links = Links::followed);

}  // namespace widelimit::files

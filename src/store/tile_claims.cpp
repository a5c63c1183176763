#include "store/tile_claims.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "files/file_size_signal.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/writing_places.hpp"

namespace widelimit::store {
namespace {

constexpr Index shape_byte = 0, first_tile_byte = 1;
/// The owner of tile t is written into the file at first_owner + t * owner_bytes.
constexpr Index first_owner = 4096, owner_bytes = 96;

/// Names of the claims on the shape where there are no locks: one file of the process that changes it,
/// one of each that uses it.
constexpr const char *change_name = "change", *use_name = "use-";

std::string tile_name(Index tile) { return fmt::format("tile-{}", tile); }

/// Owners are written into the file, which must not be somebody else's, by a link or a second name.
int open_claims(const std::filesystem::path& file) {
  files::require_may_write(file);
  files::require_no_link(file.parent_path());
  files::require_no_link(file);
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  struct stat facts {};
  if (descriptor < 0 || fstat(descriptor, &facts) != 0 || (S_ISREG(facts.st_mode) && facts.st_nlink <= 1))
    return descriptor;
  close(descriptor);
  throw DataError(
      fmt::format("{}: expected a regular file with one name, found a pipe, device or a file that has other "
                  "names (hard links): "
                  "remove this name, it holds no numbers",
                  file.string()));
}

}  // namespace

TileClaims::TileClaims(const std::filesystem::path& file) : file_{file}, descriptor_{open_claims(file)} {
  if (descriptor_ < 0)
    throw DataError(fmt::format("{}: the store cannot be written to: {}", file.string(),
                                std::generic_category().message(errno)));
}

TileClaims::~TileClaims() { close(descriptor_); }

bool TileClaims::claim(Index tile) {
  const std::optional<bool> locked = lock(first_tile_byte + tile, Kind::exclusive);
  if (!locked) return files().take(tile_name(tile));
  if (!*locked) return false;
  const files::FileSizeSignalBlock block;
  std::string owner = files::this_process().text();
  owner.resize(owner_bytes, '\n');
  static_cast<void>(!pwrite(descriptor_, owner.data(), owner.size(), first_owner + tile * owner_bytes));
  return true;
}

void TileClaims::release(Index tile) {
  if (!lock(first_tile_byte + tile, Kind::none)) files().release(tile_name(tile));
}

std::optional<files::ProcessIdentity> TileClaims::holder(Index tile) const {
  if (files_) return files_->holder(tile_name(tile));
  std::array<char, owner_bytes> bytes{};
  if (pread(descriptor_, bytes.data(), bytes.size(), first_owner + tile * owner_bytes) != owner_bytes)
    return {};
  const std::string text(bytes.data(), bytes.size());
  return files::ProcessIdentity::parse(text.substr(0, text.find('\n')));
}

bool TileClaims::use_shape() {
  if (const auto locked = lock(shape_byte, Kind::shared)) return *locked;
  // Each process first says what it is about and then looks at what others say, so that of two at
  // once at least one gives way.
  return files().take(use_name + files::this_process().text() + fmt::format("-{}", descriptor_)) &&
         files().taken_by_others(change_name).empty();
}

bool TileClaims::change_shape() {
  if (const auto locked = lock(shape_byte, Kind::exclusive)) return *locked;
  return files().take(change_name) && files().taken_by_others(use_name).empty();
}

/// Locks belong to the open file, not to the process: two stores of one process see each other's.
std::optional<bool> TileClaims::lock(Index byte, Kind kind) {
#ifdef F_OFD_SETLK
  struct flock lock {};
  lock.l_type = kind == Kind::shared ? F_RDLCK : kind == Kind::exclusive ? F_WRLCK : F_UNLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  while (are_kept_ && fcntl(descriptor_, F_OFD_SETLK, &lock) != 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EACCES) return false;
    are_kept_ = false;
  }
#else
  static_cast<void>(byte), static_cast<void>(kind);
  are_kept_ = false;
#endif
  return are_kept_ ? std::optional(true) : std::nullopt;
}

ClaimFiles& TileClaims::files() {
  std::call_once(files_are_made_, [this] {
    std::filesystem::path folder = file_;
    files_ = std::make_unique<ClaimFiles>(folder += ".files");
  });
  return *files_;
}

}  // namespace widelimit::store

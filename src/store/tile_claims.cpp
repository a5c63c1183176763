#include "store/tile_claims.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "widelimit/error.hpp"

namespace widelimit::store {
namespace {

constexpr Index shape_byte = 0, first_tile_byte = 1;

}  // namespace

TileClaims::TileClaims(const std::filesystem::path& file)
    : descriptor_{open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)} {
  if (descriptor_ < 0)
    throw DataError(fmt::format("{}: the store cannot be written to: {}", file.string(),
                                std::generic_category().message(errno)));
}

TileClaims::~TileClaims() { close(descriptor_); }

bool TileClaims::claim(Index tile) { return lock(first_tile_byte + tile, Kind::exclusive); }

void TileClaims::release(Index tile) { static_cast<void>(lock(first_tile_byte + tile, Kind::none)); }

bool TileClaims::use_shape() { return lock(shape_byte, Kind::shared); }

bool TileClaims::change_shape() { return lock(shape_byte, Kind::exclusive); }

/// Locks belong to the open file, not to the process: two stores of one process see each other's.
bool TileClaims::lock(Index byte, Kind kind) {
#ifdef F_OFD_SETLK
  struct flock lock {};
  lock.l_type = kind == Kind::shared ? F_RDLCK : kind == Kind::exclusive ? F_WRLCK : F_UNLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  while (fcntl(descriptor_, F_OFD_SETLK, &lock) != 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EACCES) return false;
    are_kept_ = false;
    return true;
  }
#else
  static_cast<void>(byte), static_cast<void>(kind);
  are_kept_ = false;
#endif
  return true;
}

}  // namespace widelimit::store

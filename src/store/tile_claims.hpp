#pragma once

#include <atomic>
#include <filesystem>
#include <utility>

#include "widelimit/network/shape.hpp"

namespace widelimit::store {

/// Which tiles of a store are being computed, among all processes that have it open: advisory locks on the bytes of one
/// file, which a process loses however it ends. They spare work and guard nothing: a tile that is computed twice has the
/// same bits, and is put in its place in one step. On file systems without such locks every process has its way.
class TileClaims {
 public:
  /// Throws DataError if the file cannot be opened or made.
  explicit TileClaims(const std::filesystem::path& file);
  ~TileClaims();
  TileClaims(const TileClaims&) = delete;
  TileClaims& operator=(const TileClaims&) = delete;

  /// False if another process has it.
  [[nodiscard]] bool claim(Index tile);
  void release(Index tile);

  /// Whether the file system has locks.
  [[nodiscard]] bool are_kept() const { return are_kept_; }

  /// The shape of the store: any number of processes use it, or one changes it. False if that does not go now.
  [[nodiscard]] bool use_shape();
  [[nodiscard]] bool change_shape();

 private:
  enum class Kind { shared, exclusive, none };
  [[nodiscard]] bool lock(Index byte, Kind kind);

  int descriptor_;
  std::atomic<bool> are_kept_ = true;  ///< Tiles are claimed and released by several threads.
};

/// A claim that is released in the end, however that comes.
class TileClaim {
 public:
  /// Of a tile that was claimed.
  TileClaim(TileClaims& claims, Index tile) : claims_{&claims}, tile_{tile} {}
  TileClaim(TileClaim&& other) noexcept
      : claims_{std::exchange(other.claims_, nullptr)}, tile_{other.tile_} {}
  TileClaim& operator=(TileClaim&&) = delete;
  ~TileClaim() {
    if (claims_ != nullptr) claims_->release(tile_);
  }

  [[nodiscard]] Index tile() const { return tile_; }

 private:
  TileClaims* claims_;
  Index tile_;
};

}  // namespace widelimit::store

#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "files/process_identity.hpp"
#include "store/claim_files.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::store {

/// Which tiles of a store are being computed, among all processes that have it open: advisory locks on the bytes of one
/// file, which a process loses however it ends; on file systems without such locks, files beside it (ClaimFiles). They
/// spare work and guard nothing: a tile that is computed twice has the same bits, and is put in its place in one step.
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
  /// Who has a tile or had it last, where that is known.
  [[nodiscard]] std::optional<files::ProcessIdentity> holder(Index tile) const;

  /// Whether the file system has locks.
  [[nodiscard]] bool are_kept() const { return are_kept_; }

  /// Says that this process counts on the store's shape, for as long as the object lives. False if another one is
  /// changing it.
  [[nodiscard]] bool use_shape();
  /// Says that this process changes it. False if others use it.
  [[nodiscard]] bool change_shape();

 private:
  enum class Kind { shared, exclusive, none };
  /// Nothing where the file system has no locks.
  [[nodiscard]] std::optional<bool> lock(Index byte, Kind kind);
  [[nodiscard]] ClaimFiles& files();

  std::filesystem::path file_;
  int descriptor_;
  std::atomic<bool> are_kept_ = true;  ///< Tiles are claimed and released by several threads.
  std::once_flag files_are_made_;
  std::unique_ptr<ClaimFiles> files_;  ///< Takes the place of locks that the file system lacks.
};

/// A claim that is released in the end, however that comes.
class TileClaim {
 public:
  /// Takes over a tile that has been claimed.
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

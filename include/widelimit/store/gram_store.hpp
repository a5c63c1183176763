#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/store/tile_grid.hpp"

namespace widelimit::store {

/// Part `number` of `parts`, from 1 on: the tiles that one of several processes computes. Parts have equal estimated
/// costs, and need no communication.
struct StorePart {
  Index number = 1;
  Index parts = 1;
};

/// The progress of a store, whoever computes it; for a run of a part, the progress of that part.
struct StoreProgress {
  Index pairs_done;  ///< Pairs in the store, on disk.
  /// Pairs beyond these in unfinished tiles; for other processes, estimated from their rate.
  Index pairs_computed;
  Index pairs;
  /// The rate of all processes that compute now, from their records of their last tiles; before anything is computed,
  /// that of the last process that computed.
  double pairs_per_second;
  double seconds_left;  ///< At this rate; infinite if it is not known.
  Index tiles_done;
  Index tiles;
  Index processes;  ///< The number of processes that compute it, as far as can be seen.
};

/// What becomes of tiles of whose place no record of the store says anything: files of other stores look like this, and
/// so do all tiles of stores of version 0.1, or of one whose records were lost.
enum class UnrecordedTiles {
  refused,  ///< They are damage.
  accepted  ///< They are taken as they are. A run writes down that they belong to the store.
};

struct StoreOptions {
  /// Kernels, threads, memory for states, stop. `progress`, `variances` and `seconds_per_line` are ignored.
  GramOptions gram = {};
  /// Inputs on a side of a tile; 0: for an existing store its own, for a new one chosen so that a tile takes seconds.
  /// Networks of vectors take multiples of 512.
  Index tile_side = 0;
  StorePart part = {};
  /// Whether x may begin with the rows of the store and have more: these are added. Old pairs are not computed again.
  bool grow = false;
  /// Continue with a store whose numbers come from another kind of processor: last bits may then differ between tiles.
  bool other_arithmetic = false;
  UnrecordedTiles unrecorded = UnrecordedTiles::refused;
  /// The command that makes the store, as a shell reads it: a new store records it, so
  /// that `widelimit store verify` can print the command that repairs it.
  std::string command = {};
  std::function<void(const StoreProgress&)> progress = {};
  /// Called at once about problems despite which a run continues: a damaged file, a file system without locks.
  std::function<void(const std::string&)> report = {};
  /// How long a run waits for a tile of another process before `report` is told whose it is.
  double silent_waiting_seconds = 30;
};

/// The work of a run.
struct StoreRunReport {
  Index computed = 0;                ///< Tiles.
  Index found = 0;                   ///< Tiles that existed, and are whole.
  std::vector<std::string> damaged;  ///< Files that were damaged, and have been written again.
  double seconds = 0;
};

/// A pair whose number in the store differs from the one that is computed for it.
struct StoreMismatch {
  std::string array;
  Index row;
  Index column;
  double stored;
  double computed;
};

/// A Gram matrix that is computed into a store, tile by tile (docs/scale.md). Whatever ends a run, the tiles that it
/// reported done are kept; the next run continues with the rest. Several runs may work at once, in parts or not: a tile
/// that one of them has claimed is left to it.
///
/// Results  those of gram(), bit for bit. With rows that joined later, a pair has the bits that gram() gives for all
///          rows that existed when the later of its inputs joined.
/// Memory   the states, see GramOptions, and a few tiles.
template <typename Scalar>
class GramStore {
 public:
  /// Opens the store of gram(network, x), or creates it. The inputs' memory must outlive it. A read-only store can be
  /// read: compute() finds its tiles, or says how many are missing.
  ///
  /// Errors  DataError, before anything is touched: the folder holds other files, or a store of another network, of
  ///         other inputs, kernels, precision, arithmetic, tiles or version of the library (the difference is named);
  ///         it cannot be written to; another process is changing its size; it has tiles, but no record of them (see
  ///         UnrecordedTiles). ArgumentError for options out of range, and as gram().
  GramStore(const std::filesystem::path& folder, const Network& network, const Inputs<Scalar>& x,
            const StoreOptions& options = {});
  /// The store of gram(network, x1, x2): not symmetric; only rows may join.
  GramStore(const std::filesystem::path& folder, const Network& network, const Inputs<Scalar>& x1,
            const Inputs<Scalar>& x2, const StoreOptions& options = {});
  ~GramStore();
  GramStore(GramStore&&) noexcept;
  GramStore& operator=(GramStore&&) noexcept;

  [[nodiscard]] TileGrid grid() const;
  /// The tiles of this part, by their numbers in the grid.
  [[nodiscard]] const std::vector<Index>& tiles() const;

  /// Computes the missing tiles of this part, and waits for tiles that other processes are computing.
  ///
  /// Errors  DataError for files that cannot be read or written, NumericalError for a result that is not finite, naming
  ///         the pair; Cancelled. Tiles finished before are in the store.
  StoreRunReport compute();

  /// The same if tiles are assigned from outside: next() gives places in tiles(), each once among all processes,
  /// and numbers beyond its end when there are no more.
  StoreRunReport compute(const std::function<Index()>& next);

  /// Computes `count` different random pairs of the whole store again, all of them if it has no more, and compares
  /// bits. ArgumentError for count < 1; DataError for damaged tiles. Missing pairs do not count;
  /// `compared`, if given, gets the number of those that do.
  [[nodiscard]] std::vector<StoreMismatch> recompute(Index count, std::uint64_t seed,
                                                     Index* compared = nullptr);

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

extern template class GramStore<float>;
extern template class GramStore<double>;

}  // namespace widelimit::store

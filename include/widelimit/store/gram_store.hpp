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

/// How far a store is, whoever computes it; of a run of a part, how far that part is.
struct StoreProgress {
  Index pairs_done;      ///< In the store, on the disk.
  Index pairs_computed;  ///< Beyond these: of the tiles in work, those of other processes by their pace.
  Index pairs;
  /// Of all processes that compute now, by what each wrote down of its last tiles; before anything is computed, that of
  /// the last one that did.
  double pairs_per_second;
  double seconds_left;  ///< At this rate; infinite while it is not known.
  Index tiles_done;
  Index tiles;
  Index processes;  ///< That compute it, as far as can be seen.
};

struct StoreOptions {
  /// Kernels, threads, memory for states, stop. `progress`, `variances` and `seconds_per_line` are not looked at.
  GramOptions gram = {};
  /// Inputs a side of a tile; 0: of an existing store its own, of a new one chosen so that a tile takes seconds.
  /// Networks of vectors take multiples of 512.
  Index tile_side = 0;
  StorePart part = {};
  /// Whether x may begin with the rows of the store and have more: these join it. Old ones are not computed again.
  bool grow = false;
  /// Go on with a store whose numbers come from another kind of processor: last bits may then differ from tile to tile.
  bool other_arithmetic = false;
  /// What makes the store, as a shell reads it: a new one remembers it, so
  /// that `widelimit store verify` can say what mends it.
  std::string command = {};
  std::function<void(const StoreProgress&)> progress = {};
  /// Hears at once of what a run goes on with all the same: a damaged file, a file system without locks.
  std::function<void(const std::string&)> report = {};
  /// So long a tile that another process has is waited for before `report` hears whose it is.
  double silent_waiting_seconds = 30;
};

/// What a run did.
struct StoreRunReport {
  Index computed = 0;                ///< Tiles.
  Index found = 0;                   ///< Tiles that were there, and are whole.
  std::vector<std::string> damaged;  ///< Files that were not, and are now.
  double seconds = 0;
};

/// A pair whose number in the store is not what is computed for it.
struct StoreMismatch {
  std::string array;
  Index row;
  Index column;
  double stored;
  double computed;
};

/// A Gram matrix that is computed into a store, tile by tile (docs/scale.md). Whatever ends a run, what it reported
/// done is there; the next run goes on with the rest, and several may run at once, in parts or not: a tile that one has
/// claimed is left to it.
///
/// Results  those of gram(), bit for bit. Of rows that joined later: a pair has the bits that gram() gives of all rows
///          there were when the later of its inputs joined.
/// Memory   the states, see GramOptions, and a few tiles.
template <typename Scalar>
class GramStore {
 public:
  /// Opens the store of gram(network, x), or makes it. The inputs' memory must outlive it. A store that cannot be
  /// written to is read: compute() finds its tiles, or says how many are missing.
  ///
  /// Errors  DataError, before anything is touched: the folder holds other files, or a store of another network, of
  ///         other inputs, kernels, precision, arithmetic, tiles or version of the library (the difference is named);
  ///         it cannot be written to; another process is changing its size. ArgumentError for options out of range, and
  ///         as gram().
  GramStore(const std::filesystem::path& folder, const Network& network, const Inputs<Scalar>& x,
            const StoreOptions& options = {});
  /// Of gram(network, x1, x2): not symmetric; only rows may join.
  GramStore(const std::filesystem::path& folder, const Network& network, const Inputs<Scalar>& x1,
            const Inputs<Scalar>& x2, const StoreOptions& options = {});
  ~GramStore();
  GramStore(GramStore&&) noexcept;
  GramStore& operator=(GramStore&&) noexcept;

  [[nodiscard]] TileGrid grid() const;
  /// The tiles of this part, by their numbers in the grid.
  [[nodiscard]] const std::vector<Index>& tiles() const;

  /// Computes what is missing of this part, and waits for tiles that other processes are computing.
  ///
  /// Errors  DataError for what cannot be read or written, NumericalError for a result that is not finite, naming the
  ///         pair; Cancelled. What was done before is in the store.
  StoreRunReport compute();

  /// The same where somebody else deals out the tiles: next() gives places in tiles(), each once among all who compute,
  /// and numbers beyond its end when there are no more.
  StoreRunReport compute(const std::function<Index()>& next);

  /// Computes `count` different random pairs of the whole store again, all of them if it has no more, and compares
  /// bits. ArgumentError for count < 1; DataError for tiles that are damaged. Pairs that are missing do not count;
  /// `compared`, where given, gets the number of those that do.
  [[nodiscard]] std::vector<StoreMismatch> recompute(Index count, std::uint64_t seed,
                                                     Index* compared = nullptr);

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

extern template class GramStore<float>;
extern template class GramStore<double>;

}  // namespace widelimit::store

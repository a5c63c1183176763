#pragma once

#include <memory>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

/// Inputs [begin, end) of a batch.
struct InputRange {
  Index begin;
  Index end;

  [[nodiscard]] Index size() const { return end - begin; }
  [[nodiscard]] bool operator==(const InputRange&) const = default;
};

/// A Gram matrix that is computed tile by tile, if it does not fit into memory or several processes need it.
///
/// Results     those of gram(), bit for bit, whichever tiles are computed and in which order.
/// States      of the inputs are made when a tile needs them, and kept within GramOptions::state_memory_bytes: those
///             used last are dropped last. Tiles that share rows or columns with the previous one are cheapest.
/// Threads     one tile at a time.
template <typename Scalar>
class GramTiles {
 public:
  /// gram(network, x, options). Copies the network and refers to the inputs' memory as Inputs does. Throws errors of
  /// gram() before any work. The options `variances` and `seconds_per_line` are ignored; `progress` is called with
  /// the pairs of each tile.
  GramTiles(const Network& network, const Inputs<Scalar>& x, const GramOptions& options = {});
  /// gram(network, x1, x2, options).
  GramTiles(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
            const GramOptions& options = {});
  ~GramTiles();
  GramTiles(GramTiles&&) noexcept;
  GramTiles& operator=(GramTiles&&) noexcept;

  [[nodiscard]] Index rows() const;
  [[nodiscard]] Index columns() const;
  [[nodiscard]] bool is_symmetric() const;
  /// True if the network is sampled: its kernels have standard errors.
  [[nodiscard]] bool has_errors() const;

  /// Tiles begin and end at multiples of this number of inputs, on either side, or at the end of the matrix. It is 1,
  /// and more for vectors, whose products are computed in blocks of a matrix.
  [[nodiscard]] Index grid() const;

  /// One tile, [rows, columns]; for a symmetric matrix its rows are its columns, or come before them.
  ///
  /// Errors  ArgumentError for other ranges; NumericalError for a result that is not finite, naming its pair by numbers
  ///         of the whole matrix; Cancelled.
  [[nodiscard]] GramResult<Scalar> compute(InputRange rows, InputRange columns);

 private:
  struct Tiles;
  std::unique_ptr<Tiles> tiles_;
};

extern template class GramTiles<float>;
extern template class GramTiles<double>;

}  // namespace widelimit

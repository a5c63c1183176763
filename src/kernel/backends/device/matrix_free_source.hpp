#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernel/backends/device/scalar_source.hpp"

namespace widelimit {

/// Which kernel of a pair is wanted.
enum class Wanted { nngp, ntk };

/// Sources that compute the kernels of vectors tile by tile, each from the inputs anew, and leave what is made of them.
///
/// Inputs lie in blocks of `side` inputs, [number][input]: the numbers of their vectors, those that row stages need of
/// variances (ScalarSource::numbers()), and the variances of the vectors.
class MatrixFreeSource {
 public:
  static constexpr Index side = 64;    ///< Inputs of a block, and of each side of a tile.
  static constexpr Index group = 256;  ///< Work-items of a group.
  static constexpr Index tiles_of_a_share =
      16;  ///< Tiles that a group adds up before others are added to it.

  /// The layout is that of any input; `channels_of` tells the length of a source's vectors.
  MatrixFreeSource(const Program& program, const StateLayout& layout, numerics::formula::Precision precision,
                   const std::function<Index(NodeId)>& channels_of);

  /// Nodes whose vectors are the first numbers of an input.
  [[nodiscard]] const std::vector<NodeId>& sources() const { return sources_; }
  [[nodiscard]] Index channels(std::size_t source) const { return channels_[source]; }
  /// Numbers of an input.
  [[nodiscard]] Index size() const { return size_; }
  /// Bytes of local memory that a group takes.
  [[nodiscard]] std::size_t local_bytes() const;

  /// The kernel record(inputs, count, own): inputs whose vectors are there meet themselves, and leave their other
  /// numbers and own kernels, [input][NNGP, NTK].
  [[nodiscard]] std::string record() const;

  /// The kernel gather(inputs, numbers, count, chosen): copies of inputs of these numbers.
  [[nodiscard]] std::string gather() const;

  /// The kernel
  ///
  ///     run(lefts, numbers, first_tile, rights, count, shares, vectors, sums)
  ///
  /// of the products of rows with `width` vectors, [column][vector], in double: a group computes a tile of rows with a
  /// share of the columns, and leaves [group][row of the tile][vector]. `numbers` are those that left inputs have among
  /// the right ones, and `no_number` for inputs of another batch. Of a pair, that with the smaller number is the left
  /// one, so that the matrix is exactly symmetric.
  [[nodiscard]] std::string products(Wanted wanted, Index width) const;
  /// The kernel add(sums, shares, rows, first_row, results): adds the shares up in their order.
  [[nodiscard]] static std::string additions(Index width);

  /// The kernel
  ///
  ///     run(lefts, numbers, first_tile, rights, count, shares, entries)
  ///
  /// of the kernel's entries, [row][column], from the first tile of the launch on.
  [[nodiscard]] std::string entries(Wanted wanted) const;

  static constexpr unsigned no_number = 0xffffffffU;

 private:
  [[nodiscard]] std::string beginning() const;
  [[nodiscard]] ScalarSource scalar(Kernel kernel, bool records) const;
  /// The loop over tiles, with what is declared before it, and done with each tile and after all.
  [[nodiscard]] std::string tiles(Wanted wanted, const std::string& arguments, const std::string& before,
                                  const std::string& of_tile, const std::string& after) const;
  /// Products of a tile's vectors of one source.
  [[nodiscard]] std::string vector_products(std::size_t source) const;
  /// The value with which a pair begins.
  [[nodiscard]] std::string source_value(std::size_t source, bool reads_multiples) const;
  [[nodiscard]] std::string inverse(std::size_t source) const;

  const Program& program_;
  const StateLayout& layout_;
  numerics::formula::Precision precision_;
  std::vector<Index> channels_;
  std::vector<NodeId> sources_;
  std::vector<Index> first_;  ///< [source]: number of an input.
  Index numbers_ = 0;         ///< The first of those of row stages.
  Index variances_ = 0;
  Index size_ = 0;
};

}  // namespace widelimit

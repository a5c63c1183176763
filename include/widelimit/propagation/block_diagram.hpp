#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "widelimit/network/network.hpp"
#include "widelimit/network/network_numbers.hpp"
#include "widelimit/propagation/repeated_block.hpp"
#include "widelimit/run_control.hpp"

/// Exponents of any block of layers over one or two of its hyperparameters: grids, and the lines where an exponent
/// vanishes. phase_diagram.hpp has the same of the transformers of parameters.hpp.
namespace widelimit::propagation {

/// A number of a network by its path in the network's file ("layers[0].weight_variance"), and the values that it takes.
struct VariedNumber {
  std::string path;
  std::vector<double> values;  ///< Ascending, at least two.
  bool logarithmic = false;    ///< Evenly spaced in the logarithm.
};

/// `count` values from `from` to `to`, both included, evenly spaced or so in the logarithm. ArgumentError unless count
/// is at least 2, the bounds ascend, and the lower one is positive where they are logarithmic.
[[nodiscard]] VariedNumber evenly_varied(const std::string& path, double from, double to, Index count,
                                         bool logarithmic = false);

/// Networks that differ from one in one or two numbers.
class BlockVariation {
 public:
  /// ArgumentError unless there are one or two numbers, each with at least two ascending values; as NetworkNumbers.
  BlockVariation(const Network& network, std::vector<VariedNumber> numbers);

  [[nodiscard]] const std::vector<VariedNumber>& numbers() const { return numbers_; }
  /// With a value for each of the numbers. Errors: as NetworkNumbers::with().
  [[nodiscard]] Network network_with(const std::vector<double>& values) const;

 private:
  NetworkNumbers places_;
  std::vector<VariedNumber> numbers_;
};

/// Where on the grid the exponents were taken, and what they are.
struct VariedExponents {
  std::vector<double> values;  ///< One for each number.
  BlockExponents exponents;
};

/// What block_exponents() takes at every point of a grid.
struct VariationRun {
  Index tokens, depth;
  std::optional<double> start_norm = {};
  RunControl control = {};
};

/// Over the grid of all values, the last number the fastest; points of the grid run in parallel. Progress counts
/// thousandths of points. Errors and cost of each point: as block_exponents(); NetworkError where the network does not
/// take a value.
[[nodiscard]] std::vector<VariedExponents> exponents_over(const BlockVariation& variation,
                                                          const VariationRun& run);

/// Which exponent vanishes.
enum class ZeroOf { angle, gradient };

/// Where an exponent vanishes.
struct ZeroLine {
  std::vector<std::vector<double>> points;  ///< Values of the numbers.
  /// Pairs of points that the line joins, over two numbers.
  std::vector<std::pair<std::size_t, std::size_t>> segments;
};

/// A root (TOMS 748) between any two neighbours of the grid, as exponents_over() gave it, between which an exponent
/// changes sign, along either number; the roots are joined through the cells of the grid. Of sampled layers a root is
/// that of the drawn samples. Progress counts roots. Cost: some ten points of the grid for each root.
[[nodiscard]] ZeroLine zeros_over(const BlockVariation& variation, const std::vector<VariedExponents>& grid,
                                  ZeroOf which, const VariationRun& run);

}  // namespace widelimit::propagation

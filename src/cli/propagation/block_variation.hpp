#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "network/network_number.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/propagation/repeated_block.hpp"

/// Exponents of a block over one or two of its numbers.
namespace widelimit::cli {

/// A number of the network and the values that it takes.
struct VariedNumber {
  std::string path;
  std::vector<double> values;  ///< Ascending.
  bool logarithmic = false;    ///< Evenly spaced in the logarithm.
};

/// Networks that differ from one in one or two numbers.
class BlockVariation {
 public:
  /// `specs`: PATH=FROM:TO:COUNT[:linear|log], one or two. ArgumentError for what is none, for bounds that do not
  /// ascend, and for paths that lead to no number of the network that takes fractions, or both to one.
  BlockVariation(const Network& network, const std::vector<std::string>& specs);

  [[nodiscard]] const std::vector<VariedNumber>& numbers() const { return numbers_; }
  /// With a value for each of the numbers. NetworkError where the network takes them not.
  [[nodiscard]] Network network_with(const std::vector<double>& values) const;

 private:
  nlohmann::json document_;
  std::vector<VariedNumber> numbers_;
  std::vector<NetworkNumber> places_;  ///< Of the numbers in the document.
};

/// Where on the grid the exponents were taken, and what they are.
struct VariedExponents {
  std::vector<double> values;
  propagation::BlockExponents exponents;
};

struct VariationRun {
  propagation::Index tokens, depth;
  std::optional<double> start_norm = {};
  RunControl control = {};
};

/// Over the grid, the last number the fastest; points of the grid run in parallel.
[[nodiscard]] std::vector<VariedExponents> exponents_over(const BlockVariation& variation,
                                                          const VariationRun& run);

enum class ZeroOf { angle, gradient };

/// Where an exponent vanishes.
struct ZeroLine {
  std::vector<std::vector<double>> points;  ///< Values of the numbers.
  /// Pairs of points that the line joins, over two numbers.
  std::vector<std::pair<std::size_t, std::size_t>> segments;
};

/// A root (TOMS 748) between any two neighbours of the grid between which an exponent changes sign, along either
/// number, joined through the cells of the grid. Of sampled layers the root is that of the drawn samples.
[[nodiscard]] ZeroLine zeros_over(const BlockVariation& variation, const std::vector<VariedExponents>& grid,
                                  ZeroOf which, const VariationRun& run);

}  // namespace widelimit::cli

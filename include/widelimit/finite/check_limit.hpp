#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "widelimit/network/network.hpp"

/// Checks a layer's limit against sampled finite networks, built-in or your own, in one line of a
/// test, `CHECK(check_limit(my_layer()).passed())`. The checker knows no kind of layer by name; your own layer needs
/// a finite counterpart (finite_layer.hpp).
namespace widelimit::finite {

/// Which networks are sampled, and how far they may be from the limit.
struct LimitOptions {
  /// Widths to sample at, ascending, at least two. Attention has width / width_per_head heads, keys and
  /// values of width / 8 channels: all of it grows.
  std::vector<Index> widths = {64, 128, 256};
  Index width_per_head = 16;
  Index draws = 64;  ///< Networks of every width, at least 8.
  /// Shapes of inputs; a layer is checked on the first one that it can take.
  std::vector<Shape> shapes = {{}, {4}, {2, 2}, {2, 2, 2}};
  Index channels = 3;  ///< Of the inputs.
  Index inputs = 3;    ///< Random ones; two of them are close. A duplicate, a constant and zeros are added.
  std::uint64_t seed = 0;  ///< Of inputs and networks.
  int threads = 0;         ///< 0: one for each core. Results do not depend on it.
  /// Largest distance allowed between limit and extrapolated mean, in standard errors.
  double largest_z = 4;
  /// How far above -1 the slope may be, besides four of its standard errors. The mean squared distance is
  /// variance + bias^2 = a / width + b / width^2 + ..., so the slope lies between -1 and -2 if two terms
  /// are enough and below -2 at widths so small that the third one matters; a wrong limit adds a constant,
  /// which pulls the slope towards 0. Only that side is a failure.
  double slope_tolerance = 0.25;
  std::stop_token stop = {};  ///< Cancelled is thrown once a stop was asked for.
};

/// One kernel of one network.
struct LimitRow {
  std::string network;
  std::string kernel;  ///< "nngp" or "ntk"
  /// The largest |extrapolated mean - limit| of all entries in standard errors; the means of all widths are
  /// extrapolated to 1 / width = 0 along a straight line by least squares. The weights are the widths: the
  /// variance of a mean over a fixed number of draws is a / width, and weights from the sampled variances
  /// would depend on the same draws as the means.
  double largest_z;
  /// Mean squared distance of a single network's kernel to the limit, relative to the limit's squared norm,
  /// at every width, and the slope of its logarithm in that of the width with its standard error. Networks
  /// scatter around the limit with a variance of order 1 / width: about -1.
  std::vector<double> distances;
  double slope;
  double slope_error;
  bool passed;
};

/// The results, with a row for each network and kernel.
struct LimitReport {
  std::vector<Index> widths;  ///< As LimitOptions::widths.
  std::vector<LimitRow> rows;

  /// True if every row passed.
  [[nodiscard]] bool passed() const;
};

/// A table with one line for each kernel.
[[nodiscard]] std::string to_string(const LimitReport& report);

/// Checks the layer between dense layers, after one in the standard parametrisation whose biases begin at 0, and in a
/// deeper network with nonlinearities around it, as far as the rules about which layer may follow which allow. Throws
/// NetworkError if the layer cannot be used with any of the shapes or has no finite
/// counterpart; ArgumentError for options out of range.
///
/// Cost  draws networks of every width: seconds for the defaults.
[[nodiscard]] LimitReport check_limit(const Layer& layer, const LimitOptions& options = {});

/// The same for a whole network.
[[nodiscard]] LimitReport check_limit(const Network& network, const LimitOptions& options = {});

}  // namespace widelimit::finite

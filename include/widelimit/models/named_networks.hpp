#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "widelimit/network/network.hpp"

/// Networks with a name: the architectures of the wide-network literature, ready to use and easy to vary.
///
/// Convolutions are 3 x 3 with "same" padding, weight variance 2 and bias variance 0.01; the readout is a dense layer
/// of weight variance 1 without bias. Networks named imdb-... are for sequences and say their own variances. Options
/// are numbers by name, so that a program can offer them all.
///
/// Source  Hron et al. 2020 (arXiv:2006.10540), section 5, unless the description says otherwise.
namespace widelimit::models {

/// One option of a named network: a number in [smallest, largest].
struct NetworkOption {
  enum class Values { integers, reals };

  std::string name;
  std::string description;
  double default_value;
  double smallest;
  double largest;
  Values values;
};

/// The name of a network and its description.
struct NamedNetwork {
  std::string name;
  std::string description;  ///< One line.
  std::vector<NetworkOption> options;
  Shape example_shape{32, 32};  ///< Spatial sizes of inputs that the defaults take.

  /// Whether there is an option with this name.
  [[nodiscard]] bool has_option(std::string_view option) const;
};

/// Values of options by name; those left out keep their defaults.
using NetworkSettings = std::map<std::string, double, std::less<>>;

/// All named networks, in the order in which they are best read.
[[nodiscard]] const std::vector<NamedNetwork>& named_networks();

/// The entry with this name. ArgumentError, listing the known names, if there is none.
[[nodiscard]] const NamedNetwork& find_named_network(std::string_view name);

/// The network itself. ArgumentError for an unknown name or option (listing the known ones) and for a value
/// out of range.
[[nodiscard]] Network named_network(std::string_view name, const NetworkSettings& settings = {});

}  // namespace widelimit::models

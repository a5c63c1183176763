#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "widelimit/network/network.hpp"

namespace widelimit {

/// What to do with numbers that are integers in a network's file.
enum class IntegerNumbers { refused, rounded };

/// Numbers of a network by their paths in its file, such as "layers[0].weight_variance" (docs/network-format.md): reads
/// them, and makes the network with other values.
class NetworkNumbers {
 public:
  /// Throws ArgumentError, with the path, unless each leads to a number that can change continuously (or, where
  /// integers are rounded, to any number), and for a number that is named twice; NetworkError for one of a layer that
  /// files do not know.
  NetworkNumbers(const Network& network, const std::vector<std::string>& paths,
                 IntegerNumbers integers = IntegerNumbers::refused);

  /// In the order of the paths.
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

  /// Whether the network has an integer there. ArgumentError unless `number` is one of the paths.
  [[nodiscard]] bool is_integer(std::size_t number) const;

  /// The network with these values in place of its own. Throws ArgumentError unless there is one for each path, and
  /// NetworkError for a value that its layer does not accept.
  [[nodiscard]] Network with(const std::vector<double>& values) const;

 private:
  struct Places;

  std::shared_ptr<const Places> places_;
  std::vector<double> values_;
};

}  // namespace widelimit

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "widelimit/network/network.hpp"

namespace widelimit {

/// Numbers of a network by their paths in its file, as "layers[0].weight_variance" (docs/network-format.md): to read
/// them, and to make the network with others.
class NetworkNumbers {
 public:
  /// Throws ArgumentError, with the path, unless each leads to a number that can change continuously, and for a number
  /// that is named twice; NetworkError for one of a layer that files do not know.
  NetworkNumbers(const Network& network, const std::vector<std::string>& paths);

  /// In the order of the paths.
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

  /// The network with these values in their places. Throws ArgumentError unless there is one for each path, and
  /// NetworkError for a value that its layer does not take.
  [[nodiscard]] Network with(const std::vector<double>& values) const;

 private:
  struct Places;

  std::shared_ptr<const Places> places_;
  std::vector<double> values_;
};

}  // namespace widelimit

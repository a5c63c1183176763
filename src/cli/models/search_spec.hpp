#pragma once

#include <string>
#include <vector>

#include "widelimit/gp/search.hpp"
#include "widelimit/network/network_numbers.hpp"

namespace widelimit::cli {

/// Numbers of a network file that a search may choose: "layers[0].weight_variance=0.5:4:log".
class SearchSpace {
 public:
  /// `specs`: PATH=LOW:HIGH[:linear|log|integer], linear if not said. Throws ArgumentError for one that is none, or
  /// whose path leads to no number of the network.
  SearchSpace(const Network& network, const std::vector<std::string>& specs);

  [[nodiscard]] const std::vector<gp::SearchParameter>& parameters() const { return parameters_; }

  /// The network with these values. Throws NetworkError where it takes them not.
  [[nodiscard]] Network network_with(const std::vector<double>& values) const {
    return numbers_.with(values);
  }

 private:
  std::vector<gp::SearchParameter> parameters_;
  NetworkNumbers numbers_;
};

}  // namespace widelimit::cli

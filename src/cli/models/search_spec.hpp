#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "network/network_number.hpp"
#include "widelimit/gp/search.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit::cli {

/// Numbers of a network file that a search may choose: "layers[0].weight_variance=0.5:4:log".
class SearchSpace {
 public:
  /// `specs`: PATH=LOW:HIGH[:linear|log|integer], linear if not said. Throws ArgumentError for one that is none, or
  /// whose path leads to no number of the network.
  SearchSpace(const Network& network, const std::vector<std::string>& specs);

  [[nodiscard]] const std::vector<gp::SearchParameter>& parameters() const { return parameters_; }

  /// The network with these values. Throws NetworkError where it takes them not.
  [[nodiscard]] Network network_with(const std::vector<double>& values) const;

 private:
  nlohmann::json document_;
  std::vector<gp::SearchParameter> parameters_;
  std::vector<NetworkNumber> numbers_;
};

}  // namespace widelimit::cli

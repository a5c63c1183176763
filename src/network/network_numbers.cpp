#include "widelimit/network/network_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "network/network_number.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit {

struct NetworkNumbers::Places {
  nlohmann::json document;
  std::vector<NetworkNumber> numbers;
};

NetworkNumbers::NetworkNumbers(const Network& network, const std::vector<std::string>& paths) {
  auto places = std::make_shared<Places>(Places{nlohmann::json::parse(to_json(network)), {}});
  for (const std::string& path : paths) {
    const NetworkNumber number(places->document, path, fmt::format("'{}'", path));
    if (number.is_integer())
      throw ArgumentError(
          fmt::format("'{}': the network has an integer there, which cannot change continuously", path));
    if (std::find(places->numbers.begin(), places->numbers.end(), number) != places->numbers.end())
      throw ArgumentError(fmt::format("'{}': this number is named twice", path));
    places->numbers.push_back(number);
    values_.push_back(number.in(places->document));
  }
  places_ = std::move(places);
}

Network NetworkNumbers::with(const std::vector<double>& values) const {
  if (values.size() != values_.size())
    throw ArgumentError(
        fmt::format("NetworkNumbers::with: expected {} values, got {}", values_.size(), values.size()));
  nlohmann::json document = places_->document;
  for (std::size_t i = 0; i < values.size(); ++i) places_->numbers[i].set(document, values[i]);
  return parse_network(document.dump());
}

}  // namespace widelimit

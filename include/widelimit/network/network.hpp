#pragma once

#include <iosfwd>
#include <string>

#include "widelimit/network/layer.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit {

/// A named sequence of layers: an immutable value without threads, memory or precision.
class Network {
 public:
  /// Any layers; whether they fit each other and an input is checked when the network is applied.
  explicit Network(Layers layers) : Network("", std::move(layers)) {}
  Network(std::string name, Layers layers) : name_{std::move(name)}, layers_{std::move(layers)} {}

  /// "" if it has none.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Layers& layers() const { return layers_; }

  /// One line for each layer, with the shape after it, for inputs of the given shape. Throws NetworkError, naming
  /// the layer, if the network cannot be applied to such inputs.
  [[nodiscard]] std::string describe(const Shape& input) const;

  friend bool operator==(const Network&, const Network&) = default;

 private:
  std::string name_;
  Layers layers_;
};

/// One line for each layer, without shapes.
std::ostream& operator<<(std::ostream& stream, const Network& network);

}  // namespace widelimit

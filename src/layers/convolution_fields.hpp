#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "network/graph.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/network/field_reader.hpp"

/// What the kinds of convolutions share.
namespace widelimit::layers {

/// The options as a node. Throws ArgumentError naming the layer for bad ones.
AffineNode affine_of(const std::string& layer, const ConvolutionOptions& options);

/// The fields of a network file, to and from.
nlohmann::ordered_json convolution_fields(const AffineNode& node);
ConvolutionOptions read_convolution(FieldReader& fields);

}  // namespace widelimit::layers

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "layers/parametrisation.hpp"
#include "widelimit/finite/finite_layer.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/network/field_reader.hpp"

/// What the kinds of convolutions share.
namespace widelimit::layers {

/// The options as a layer. Throws ArgumentError naming the layer for bad ones.
ParametrisedAffine affine_of(const std::string& layer, const ConvolutionOptions& options);

/// The fields of a network file, to and from.
nlohmann::ordered_json convolution_fields(const ParametrisedAffine& affine);
ConvolutionOptions read_convolution(FieldReader& fields);

finite::CounterpartPointer convolution_counterpart(const ParametrisedAffine& affine, finite::Sharing sharing);

}  // namespace widelimit::layers

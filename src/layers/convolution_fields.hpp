#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "layers/parametrisation.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/network/finite_layer.hpp"

/// What the kinds of convolutions share.
namespace widelimit::layers {

/// The options as a layer. Throws ArgumentError, naming the layer, for options that are out of range.
ParametrisedAffine affine_of(const std::string& layer, const ConvolutionOptions& options);

/// The fields of a network file, written and read.
nlohmann::ordered_json convolution_fields(const ParametrisedAffine& affine);
ConvolutionOptions read_convolution(KindFields& fields);

/// Completes the row of a kind of convolution by its group and its fields, which all kinds share.
LayerKind convolution_kind(LayerKind kind);

finite::CounterpartPointer convolution_counterpart(const ParametrisedAffine& affine, finite::Sharing sharing);

}  // namespace widelimit::layers

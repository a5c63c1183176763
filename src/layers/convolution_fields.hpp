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

/// Whether a kind of convolution takes zeros of any number around its inputs, and filters whose positions stand apart.
enum class Spacings { absent, present };

/// The fields of a network file, written and read.
nlohmann::ordered_json convolution_fields(const ParametrisedAffine& affine);
ConvolutionOptions read_convolution(KindFields& fields, Spacings spacings);

/// Completes the row of a kind of convolution by its group and its fields.
LayerKind convolution_kind(LayerKind kind, Spacings spacings);

finite::CounterpartPointer convolution_counterpart(const ParametrisedAffine& affine, finite::Sharing sharing);

}  // namespace widelimit::layers

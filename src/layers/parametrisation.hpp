#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "layers/kind_rows.hpp"
#include "network/lowering.hpp"
#include "widelimit/layers/parametrisation.hpp"

/// How layers with weights are parametrised: the standard normal parametrisation, unless they say otherwise.
namespace widelimit::layers {

using Parametrisation = std::optional<StandardParametrisation>;

/// A convolution or dense layer with its parametrisation.
struct ParametrisedAffine {
  AffineNode node;
  Parametrisation standard = {};
};

/// Throws ArgumentError, naming the layer, for widths or biases that make no sense.
void check_parametrisation(const std::string& layer, const ParametrisedAffine& affine);

/// The fields of a network file, to and from.
void add_parametrisation_fields(const Parametrisation& standard, nlohmann::ordered_json& fields);
Parametrisation read_parametrisation(KindFields& fields);

/// The rows of the variances and of those fields, in the table of kinds.
void add_weight_fields(std::vector<KindField>& fields);

/// Appends the layer.
State lower_affine(Lowering& lowering, const State& input, const ParametrisedAffine& affine);
/// The same without weight sharing.
State lower_local_affine(Lowering& lowering, const State& input, const ParametrisedAffine& affine);

}  // namespace widelimit::layers

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
  Trainable trainable = Trainable::all;

  [[nodiscard]] bool trains_weights() const {
    return trainable == Trainable::all || trainable == Trainable::weights;
  }
  [[nodiscard]] bool trains_biases() const {
    return trainable == Trainable::all || trainable == Trainable::biases;
  }
};

/// Throws ArgumentError, naming the layer, for widths or biases that are out of range or contradict each other.
void check_parametrisation(const std::string& layer, const ParametrisedAffine& affine);

/// The fields of a network file, written and read.
void add_parametrisation_fields(const ParametrisedAffine& affine, nlohmann::ordered_json& fields);
Parametrisation read_parametrisation(KindFields& fields);
Trainable read_trainable(KindFields& fields);

/// Adds the fields of the variances and of the parametrisation to a row of the table of kinds.
void add_weight_fields(std::vector<KindField>& fields);

/// Appends a layer that shares its weights between positions.
LoweredState lower_affine(Lowering& lowering, const LoweredState& input, const ParametrisedAffine& affine);
/// Appends a layer with weights of its own at every position.
LoweredState lower_local_affine(Lowering& lowering, const LoweredState& input,
                                const ParametrisedAffine& affine);

}  // namespace widelimit::layers

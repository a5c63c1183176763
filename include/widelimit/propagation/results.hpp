#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "widelimit/propagation/finite_width.hpp"
#include "widelimit/propagation/loss_predictor.hpp"
#include "widelimit/propagation/measured_layer.hpp"
#include "widelimit/propagation/repeated_block.hpp"
#include "widelimit/propagation/transformer.hpp"

/// Results under the names that they have in files and in Python.
namespace widelimit::propagation {

/// Columns of numbers of one length, in their order.
using NamedColumns = std::vector<std::pair<std::string, std::vector<double>>>;

/// The parameters under the names of their fields, the gain of the last MLP matrix as a number; skip connections where
/// they are given.
[[nodiscard]] nlohmann::json described(const Parameters& parameters);

/// "chaotic angles, vanishing gradients"
[[nodiscard]] std::string phase_name(double lambda_a, double lambda_g);

/// lambda_a, lambda_g and what goes with them, null what there is not. Where norms have no fixed point there are other
/// names: means over the network's depth, from norm 1. Exponents are -infinity where a block leaves nothing.
[[nodiscard]] nlohmann::json exponent_results(const ExponentTask& task);

/// How networks of a width scatter over so many blocks, and the depth up to which their limit describes them.
[[nodiscard]] nlohmann::json width_results(const Parameters& parameters, Index width, Index blocks);

/// Weights, their bootstrap errors, and how well the fit describes the losses.
[[nodiscard]] nlohmann::json fit_results(const PredictorFit& fit, const LossPredictor& errors);

/// A loss predictor that is to be fitted.
struct FitTask {
  double ceiling = HUGE_VAL;  ///< ln(classes), or none.
  Index bootstrap = 200;
  std::uint64_t seed = 0;
};
[[nodiscard]] FitTask read_fit(ConfigReader& fields);

/// q, cosine, log_gradient and product_ratio at the start and after each block, each before its NAME_error.
[[nodiscard]] NamedColumns token_columns(std::span<const PropagatedTokens> tokens);

/// q and cosine of networks after each block, each before its NAME_error.
[[nodiscard]] NamedColumns measured_columns(std::span<const MeasuredState> states);

/// Of a repeated block, each mean as {"value", "standard_error"}. Where equal tokens do not stay equal the angles' are
/// null, and "no_angles" says so.
[[nodiscard]] nlohmann::json block_exponent_results(const BlockExponents& exponents);

/// What measured_layer() found in each layer, and how norms and angles grow from one to the next, 0 for the first.
[[nodiscard]] NamedColumns layer_columns(std::span<const MeasuredLayer> layers);

}  // namespace widelimit::propagation

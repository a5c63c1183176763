#include "widelimit/propagation/parameters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "propagation/arguments.hpp"
#include "propagation/pair_map.hpp"
#include "propagation/skips.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/kinds.hpp"

namespace widelimit::propagation {

namespace {

using Known = std::map<std::string, numerics::ActivationPtr>;

Known made_activations() {
  Known known{{"linear", numerics::identity()}};
  for (const layers::LayerKind& kind : layers::builtin_kinds()) {
    // Two kernels are those of no function, and jumps have no derivative.
    if (kind.group != layers::KindGroup::activation || kind.name == "exp_normalized" ||
        kind.name == "matern" || kind.name == "sign")
      continue;
    if (std::ranges::any_of(kind.fields, &layers::KindField::required)) continue;
    known[kind.name] = layers::activation_of(layers::layer_of_kind(kind.name));
  }
  return known;
}

const Known& known_activations() {
  static const Known known = made_activations();
  return known;
}

}  // namespace

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const auto& [name, activation] : known_activations()) names.push_back(name);
  return names;
}

numerics::ActivationPtr activation_named(const std::string& name) {
  const auto found = known_activations().find(name);
  if (found != known_activations().end()) return found->second;
  throw ArgumentError(fmt::format("expected one of {}, got '{}'", fmt::join(activation_names(), ", "), name));
}

bool has_fixed_norm(const Parameters& parameters) { return norm_lost(parameters) > 0; }

void require_ranges(const char* where, const Parameters& parameters) {
  require_at_least(where, "tokens", parameters.tokens, 2);
  require_not_negative(where, "sigma_A", parameters.sigma_A);
  require_strength(where, "alpha_A", parameters.alpha_A);
  require_strength(where, "alpha_M", parameters.alpha_M);
  if (parameters.skip_A) require_not_negative(where, "skip_A", *parameters.skip_A);
  if (parameters.skip_M) require_not_negative(where, "skip_M", *parameters.skip_M);
  require_not_negative(where, "sigma_w", parameters.sigma_w);
  require_not_negative(where, "sigma_out", parameters.sigma_out.value(parameters.sigma_w));
  require_at_least(where, "mlp_depth", parameters.mlp_depth, 1);
  if (!parameters.activation)
    throw ArgumentError(fmt::format("{}: activation must be given, got none", where));
  if (parameters.alpha_A == 0 && parameters.alpha_M == 0)
    throw ArgumentError(
        fmt::format("{}: alpha_A and alpha_M must not both be 0: then no block changes anything and there is "
                    "no fixed point",
                    where));
}

void require_parameters(const char* where, const Parameters& parameters) {
  require_ranges(where, parameters);
  require_continuous(where, *parameters.activation);
}

}  // namespace widelimit::propagation

#include "widelimit/propagation/parameters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "propagation/arguments.hpp"
#include "propagation/pair_map.hpp"
#include "propagation/skips.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/kinds.hpp"

namespace widelimit::propagation {

namespace {

constexpr const char* linear = "linear";

/// Whether a kind of layer is a function without parameters to give that the theory takes.
bool is_named_activation(const layers::LayerKind& kind) {
  // Two kernels are those of no function, and jumps have no derivative.
  return kind.group == layers::KindGroup::activation && kind.name != "exp_normalized" &&
         kind.name != "matern" && kind.name != "sign" &&
         std::ranges::none_of(kind.fields, &layers::KindField::required);
}

numerics::ActivationPtr made_activation(const std::string& name) {
  if (name == linear) return numerics::identity();
  return layers::activation_of(layers::layer_of_kind(name));
}

}  // namespace

std::vector<std::string> activation_names() {
  std::vector<std::string> names{linear};
  for (const layers::LayerKind& kind : layers::builtin_kinds())
    if (is_named_activation(kind)) names.push_back(kind.name);
  std::ranges::sort(names);
  return names;
}

numerics::ActivationPtr activation_named(const std::string& name) {
  // Some take milliseconds to make: each is made when it is asked for, and kept.
  static std::mutex mutex;
  static std::map<std::string, numerics::ActivationPtr> made;
  const auto names = activation_names();
  if (!std::ranges::binary_search(names, name))
    throw ArgumentError(fmt::format("expected one of {}, got '{}'", fmt::join(names, ", "), name));
  const std::scoped_lock lock(mutex);
  numerics::ActivationPtr& activation = made[name];
  if (!activation) activation = made_activation(name);
  return activation;
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

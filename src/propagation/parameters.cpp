#include "widelimit/propagation/parameters.hpp"

#include <map>

#include "propagation/arguments.hpp"
#include "propagation/pair_map.hpp"
#include "propagation/skips.hpp"

namespace widelimit::propagation {

numerics::ActivationPtr activation_named(const std::string& name) {
  static const std::map<std::string, numerics::ActivationPtr (*)()> known{
      {"tanh", numerics::tanh}, {"erf", numerics::erf},         {"relu", numerics::relu},
      {"gelu", numerics::gelu}, {"linear", numerics::identity}, {"silu", numerics::silu},
      {"abs", numerics::abs},   {"sigmoid", numerics::sigmoid}, {"softplus", numerics::softplus}};
  const auto found = known.find(name);
  if (found != known.end()) return found->second();
  std::string names;
  for (const auto& entry : known) names += (names.empty() ? "" : ", ") + entry.first;
  throw ArgumentError(fmt::format("expected one of {}, got '{}'", names, name));
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

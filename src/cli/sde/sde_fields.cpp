#include "cli/sde/sde_fields.hpp"

#include "widelimit/covariance_sde/configuration.hpp"

namespace widelimit::cli {

namespace {

/// What no range of one field says.
const char* sde_range(std::string_view command) {
  if (command != "law") return "";
  return "\nWithin reach, to 1e-8: linear_noise T up to 1e9, in seconds, and up to 600 where slopes differ "
         "by less than half; slopes up to 100 apart at all times, farther apart where linear_noise T is "
         "below .003 or above 1; gamma_squared from 1e-4 on, and smaller ones at times by which almost no "
         "gap explodes. A time out of reach is null in law.json with a warning; none within reach is an "
         "error.\n";
}

const char* sde_example(std::string_view command) {
  if (command == "coefficients")
    return R"({"model": "transformer", "gamma_squared": 0.125, "V0": [[1.2, 0.3, -0.1], [0.3, 0.9, 0.25], [-0.1, 0.25, 1.5]]})";
  if (command == "simulate" || command == "explosion" || command == "output")
    return R"({"model": "transformer", "gamma_squared": 0.125, "width": 200, "depth": 150})";
  if (command == "law")
    return R"({"model": "attention", "gamma_squared": 0.125, "rho0": 0.2, "times": [0.25, 0.75]})";
  if (command == "flow") return R"({"flow": "commuting", "rho0": 0.2, "times": [0.25, 0.5, 1]})";
  if (command == "gradients")
    return R"({"width": 64, "depth": 24, "networks": [{"network": "shaped_transformer", "gamma_squared": 0.1}, )"
           R"({"network": "unshaped_pre_ln", "gamma": 1, "lambda": 1}, )"
           R"({"network": "unshaped_post_ln", "gamma": 1, "lambda": 1}, )"
           R"({"label": "Post-LN, causal", "network": "unshaped_post_ln", "gamma": 1, "lambda": 1, "mask": "causal"}]})";
  if (command == "stopping-time")
    return R"({"network": "shaped_attention", "gammas": [0.1, 0.3, 0.5], "temperatures": [1, 4], )"
           R"("width": 200, "depth": 200, "tokens": 4, "variance": 100, "samples": 200})";
  return R"({"network": "shaped_transformer", "gamma_squared": 0.125, "heads": 4, "width": 200, "depth": 150})";
}

}  // namespace

const std::vector<std::string>& sde_command_names() {
  static const std::vector<std::string> names = {"simulate", "network",   "compare",     "stopping-time",
                                                 "output",   "entropy",   "explosion",   "law",
                                                 "flow",     "gradients", "coefficients"};
  return names;
}

std::string sde_fields_help(std::string_view command) {
  return config_fields_help(covariance_sde::command_fields(command)) + sde_range(command) + "\nExample:\n  " +
         sde_example(command);
}

}  // namespace widelimit::cli

#include "cli/propagation/propagation_width.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "cli/options/ranges.hpp"
#include "cli/output/result_text.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/propagation/finite_width.hpp"

namespace widelimit::cli {

using namespace propagation;
using nlohmann::json;

void add_width_option(CLI::App& command, NetworkWidth& given) {
  constexpr Index widest = Index{1} << 30;
  add_value(
      command, "--width", given.width,
      fmt::format("Also the intervals into which 90 of 100 networks of this width fall, 2 to {}", widest),
      whole_number<Index>(2, widest), "D");
}

void check_width(const NetworkWidth& given, const PropagationModel& model) {
  if (given.width && model.causal)
    throw ArgumentError(
        "--width: how networks scatter is known for full attention; leave it or --causal out (simulate "
        "gradient "
        "--causal measures it)");
}

json with_width(json settings, const NetworkWidth& given) {
  if (given.width) settings["width"] = *given.width;
  return settings;
}

void add_width_summary(json& summary, const NetworkWidth& given, const Parameters& parameters, double depth) {
  if (!given.width) return;
  const Index blocks = whole_depth(depth);
  const WidthSpread spread = width_spread(parameters, *given.width, blocks);
  const std::optional<Index> limit = limit_depth(parameters, *given.width);
  const auto length = static_cast<double>(blocks);
  const json none = nullptr;
  const auto& angle = spread.lambda_a_log;
  summary.update({{"width", *given.width},
                  {"lambda_a_low", angle ? json(std::expm1(angle->low)) : none},
                  {"lambda_a_high", angle ? json(std::expm1(angle->high)) : none},
                  {"lambda_g_low", spread.lambda_g.low},
                  {"lambda_g_high", spread.lambda_g.high},
                  {"log_gradient_growth_low", length * spread.lambda_g.low},
                  {"log_gradient_growth_high", length * spread.lambda_g.high},
                  {"angle_variance", spread.angle_variance},
                  {"gradient_variance", spread.gradient_variance},
                  {"limit_depth", limit ? json(*limit) : none}});
  if (limit && blocks > *limit)
    warn(
        "--width: networks of {} blocks of width {} scatter too much for their limit to describe single ones "
        "(the "
        "logarithms of squared gradients have the variance {:.3g}, those of gaps {:.3g}): take {}",
        blocks, *given.width, spread.gradient_variance, spread.angle_variance,
        *limit > 0 ? fmt::format("at most {} blocks, or a larger width", *limit) : "a larger width");
}

void note_limit_depth(ResultTable& table, const json& summary) {
  if (!summary.contains("width")) return;
  if (summary.at("limit_depth").is_null())
    table.notes["limit_depth"] = fmt::format("beyond {} blocks", deepest_limit);
  if (summary.at("lambda_a_low").is_null())
    for (const char* name : {"lambda_a_low", "lambda_a_high"})
      table.notes[name] = "one block makes all tokens equal, at any width";
}

}  // namespace widelimit::cli

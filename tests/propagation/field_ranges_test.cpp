// The range of every field of every table of fields.hpp, at its ends and outside.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "support/read_whole.hpp"
#include "support/table_ranges.hpp"
#include "widelimit/propagation/fields.hpp"
#include "widelimit/propagation/results.hpp"
#include "widelimit/propagation/simulated_phase.hpp"
#include "widelimit/propagation/transformer.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using nlohmann::json;

namespace {

/// With nothing but the defaults of the table.
template <typename Read>
void check_computation(const char* name, const Read& read) {
  CAPTURE(name);
  const ConfigFields table = computation(name).all();
  widelimit::testing::check_table_ranges(table, json::object(), [&](const json& config) {
    static_cast<void>(widelimit::testing::read_whole(config, table, read));
  });
}

}  // namespace

TEST_CASE("propagation tables: each range is the one that is read, and errors name the field") {
  check_computation("Parameters", read_transformer);
  check_computation("trajectory", [](ConfigReader& fields) {
    return std::pair(read_transformer(fields), read_start(fields));
  });
  check_computation("exponents", read_exponents);
  check_computation("phase_diagram", [](ConfigReader& fields) {
    const Transformer transformer = read_transformer(fields);
    return read_exponent_options(fields, transformer);
  });
  check_computation("critical", read_critical);
  check_computation("critical_values", read_transformer);
  check_computation("fit_losses", [](ConfigReader& fields) {
    return std::pair(read_transformer(fields), read_fit(fields));
  });
  for (const char* name : {"simulate_trajectory", "simulate_samples", "simulate_angle", "simulate_gradient"})
    check_computation(name, read_simulation);
  check_computation("simulate_groups", read_group_simulation);
  check_computation("simulate_phase", read_simulated_phase);
  check_computation("sample_block", read_block_task);
}

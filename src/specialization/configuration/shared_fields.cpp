#include "specialization/configuration/shared_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "numerics/count.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/specialization/read_prior.hpp"

namespace widelimit::specialization {

Prior read_prior(ConfigReader& fields) {
  try {
    return read_prior(fields.value("prior"), fields.path() + ".prior");
  } catch (const ArgumentError& error) {
    fields.fail("prior", error.what());
  }
}

HeadActivation read_activation(ConfigReader& fields) { return fields.choice("activation", head_activations); }

PruneNormaliser read_normaliser(ConfigReader& fields) {
  return fields.choice("normaliser", prune_normalisers);
}

std::uint64_t read_seed(ConfigReader& fields) { return static_cast<std::uint64_t>(fields.integer("seed")); }

Index read_samples(ConfigReader& fields, const char* field, Index features) {
  const Index samples = fields.integer(field);
  const double numbers = static_cast<double>(fields.integer("tokens")) *
                         static_cast<double>(features + fields.integer("heads")) *
                         static_cast<double>(samples);
  numerics::require_memory(fmt::format("{}.{}", fields.path(), field),
                           fmt::format("a set of {} samples", samples), numbers * sizeof(float),
                           "take fewer samples");
  return samples;
}

void require_dimension(const ConfigReader& fields, Index dimension, Index least) {
  if (dimension < least)
    fields.fail(fields.has("dimensions") ? "dimensions" : "dimension",
                fmt::format("expected an integer >= {}, got {}", least, dimension));
}

namespace {

/// A flow is asked for at its last time. An SGD ends within half a step of it, but takes one at least.
void check_whole_steps(const std::string& place, std::string_view field, double tau, double step,
                       Index steps) {
  constexpr double rounding = 1e-9;
  const double end = static_cast<double>(steps) * step;
  const bool is_flow = field == "step";
  if ((is_flow && std::abs(end - tau) > rounding * tau) || (tau > 0 && steps == 0))
    throw ArgumentError(fmt::format("{}: expected {} of {} {:g}, got {:g}, which is {:g} of them", place,
                                    is_flow ? "whole steps" : "at least half a step", field, step, tau,
                                    tau / step));
}

}  // namespace

Index read_steps(ConfigReader& fields, std::string_view field, double step, std::optional<double> last) {
  const std::string place = fields.path() + ".tau";
  const double tau = fields.number("tau", last);
  const Index steps =
      numerics::checked_count(std::round(tau / step), numerics::most_steps,
                              fmt::format("{}: steps of {} {:g} up to tau {:g}", place, field, step, tau));
  if (fields.has("tau")) check_whole_steps(place, field, tau, step, steps);
  return steps;
}

std::vector<Index> read_records(ConfigReader& fields, Index steps) {
  const Index records = fields.integer("records");
  return record_every(std::max<Index>(1, steps / records), steps);
}

}  // namespace widelimit::specialization

#include "store/store_facts.hpp"

#include <cblas.h>
#include <fmt/format.h>
#include <hwy/targets.h>

#include <algorithm>

#include "json/dotted_path.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/devices.hpp"
#include "widelimit/store/arithmetic_facts.hpp"
#include "widelimit/version.hpp"

namespace widelimit::store {
namespace {

/// Bounds the inputs, so that numbers of tiles and pairs stay within an index.
constexpr Index most_inputs = Index{1} << 31;
/// A file each.
constexpr double most_tiles = 1e8;

/// Collects what the layers of a network file sample, those in branches too: path, samples and seed.
void collect_sampled(const nlohmann::json& value, const std::string& path, nlohmann::json& found) {
  if (value.is_object() && value.contains("samples") && value.contains("seed"))
    found.push_back({{"path", path}, {"samples", value["samples"]}, {"seed", value["seed"]}});
  if (!value.is_structured()) return;
  for (const auto& [key, child] : value.items()) collect_sampled(child, path + "/" + key, found);
}

std::string shown(const nlohmann::json& parent, const nlohmann::json::json_pointer& place) {
  return parent.contains(place) ? shown_json(parent.at(place)) : "missing";
}

}  // namespace

StoreFacts::StoreFacts(nlohmann::json document, const std::string& path) : document_(std::move(document)) {
  const JsonValue facts(document_, path);
  if (const std::string format = facts.at("format"); format != store_format)
    facts.fail(fmt::format("expected the format \"{}\", got \"{}\"", store_format, format));
  format_version_ = facts.at("format_version");
  if (format_version_ < unsealed_format_version || format_version_ > store_format_version)
    facts.fail(fmt::format("expected version {} or {} of the format, got {}", unsealed_format_version,
                           store_format_version, format_version_));
  arrays_ = facts.at("arrays").get<std::vector<std::string>>();
  is_symmetric_ = facts.at("symmetric");
  tile_side_ = facts.at("tile_side");
  const std::string precision = facts.at("precision");
  is_float_ = precision == "float";
  if (!is_float_ && precision != "double") facts.at("precision").fail("expected float or double");
  // Steps are counts; the facts keep the totals after each of them.
  const auto total_after = [](const JsonValue& batch, std::vector<Index>& totals) {
    for (const JsonValue& step : batch.at("steps").list()) {
      const Index count = step.at("count");
      const Index before = totals.empty() ? 0 : totals.back();
      if (count < 1 || count > most_inputs - before)
        step.at("count").fail(fmt::format("expected a positive number, {} at most in all", most_inputs));
      totals.push_back(before + count);
    }
    if (totals.empty()) batch.at("steps").fail("expected at least one");
  };
  total_after(facts.at("rows"), steps_);
  if (!is_symmetric_) {
    std::vector<Index> columns;
    total_after(facts.at("columns"), columns);
    columns_ = columns.back();
  }
  const std::vector<std::string> known{"nngp", "ntk", "nngp_error", "ntk_error"};
  for (const std::string& array : arrays_)
    if (std::find(known.begin(), known.end(), array) == known.end())
      facts.at("arrays").fail(fmt::format("expected nngp, ntk or their errors, got {}", array));
  if (arrays_.empty()) facts.at("arrays").fail("expected at least one");
  if (tile_side_ < 1) facts.at("tile_side").fail("expected a positive number");
  // Readers look at every tile.
  if (const double tiles =
          static_cast<double>(grid().tile_rows()) * static_cast<double>(grid().tile_columns());
      tiles > most_tiles)
    facts.at("tile_side").fail(fmt::format("expected at most {:.0f} tiles, got {:.0f}", most_tiles, tiles));
}

TileGrid StoreFacts::grid() const { return {steps_.back(), columns(), tile_side_, is_symmetric_}; }

Kernels StoreFacts::kernels() const {
  const auto has = [&](const char* name) {
    return std::find(arrays_.begin(), arrays_.end(), name) != arrays_.end();
  };
  return !has("ntk") ? Kernels::nngp : has("nngp") ? Kernels::both : Kernels::ntk;
}

StoreFacts StoreFacts::with_step(const nlohmann::json& input_facts) const {
  nlohmann::json document = document_;
  document["rows"]["steps"].push_back(input_facts);
  return {std::move(document), "the store's new rows"};
}

StoreFacts StoreFacts::with_tile_side(Index side) const {
  nlohmann::json document = document_;
  document["tile_side"] = side;
  return {std::move(document), "the store's tiles"};
}

nlohmann::json arithmetic_facts(const std::string& device) {
  const auto targets = hwy::SupportedTargets();
  // Better targets have lower bits.
  nlohmann::json facts{{"vectors", hwy::TargetName(targets & -targets)}, {"blas", openblas_get_corename()}};
  if (const std::string name = device_in_full(device); !name.empty()) facts["device"] = name;
  return facts;
}

std::string accepted_version(const nlohmann::json& document) {
  // Until 0.3.0 what came after 0.2.0 called itself so, too.
  constexpr std::array gone_on_with{"0.2.0"};
  const nlohmann::json found = document.value("library_version", nlohmann::json());
  const bool is_accepted = std::ranges::any_of(gone_on_with, [&](const char* one) { return found == one; });
  return is_accepted ? found.get<std::string>() : version;
}

nlohmann::json sampled_layer_facts(const nlohmann::json& network) {
  nlohmann::json found = nlohmann::json::array();
  collect_sampled(network, "", found);
  return found;
}

std::optional<std::string> difference_between(const nlohmann::json& there, const nlohmann::json& here,
                                              const std::vector<const char*>& facts) {
  for (const char* fact : facts) {
    // Compared by themselves, facts have a difference whose path names the place within the fact.
    const auto alone = [fact](const nlohmann::json& facts_of) {
      return facts_of.contains(fact) ? nlohmann::json{{fact, facts_of.at(fact)}} : nlohmann::json::object();
    };
    const nlohmann::json left = alone(there), right = alone(here);
    const nlohmann::json changes = nlohmann::json::diff(left, right);
    if (changes.empty()) continue;
    const std::string path = changes.front().at("path");
    const nlohmann::json::json_pointer place(path);
    return fmt::format("{} is {} there and {} here", dotted_path(path), shown(left, place),
                       shown(right, place));
  }
  return std::nullopt;
}

}  // namespace widelimit::store

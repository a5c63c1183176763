#include "store/store_opening.hpp"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "kernel/run/make_gram_plan.hpp"
#include "network/network_identity.hpp"
#include "store/tile_records.hpp"
#include "store/tile_shares.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/writing_places.hpp"
#include "widelimit/store/arithmetic_facts.hpp"
#include "widelimit/store/input_facts.hpp"
#include "widelimit/version.hpp"

namespace widelimit::store {
namespace {

std::vector<std::string> array_names(Kernels kernels, bool has_errors) {
  std::vector<std::string> names;
  if (kernels != Kernels::ntk) names.emplace_back("nngp");
  if (kernels != Kernels::nngp) names.emplace_back("ntk");
  if (!has_errors) return names;
  for (const std::string& kernel : std::vector<std::string>(names)) names.push_back(kernel + "_error");
  return names;
}

/// input_facts() of parts of one batch, each taken once: hashes of all numbers take seconds, and a store may be looked
/// at many times until it can be opened.
template <typename Scalar>
class KnownInputFacts {
 public:
  explicit KnownInputFacts(const Inputs<Scalar>& x) : x_{x} {}

  const nlohmann::json& of(InputRange range) {
    const auto [known, is_new] = facts_.try_emplace({range.begin, range.end});
    if (is_new) known->second = input_facts(x_, range);
    return known->second;
  }
  const nlohmann::json& of_all() { return of({0, x_.size()}); }

 private:
  const Inputs<Scalar>& x_;
  std::map<std::pair<Index, Index>, nlohmann::json> facts_;
};

/// Opens or makes one store.
template <typename Scalar>
class StoreOpening {
 public:
  StoreOpening(const StoreFolder& folder, const StoreInputs<Scalar>& inputs, const StoreOptions& options)
      : folder_{folder},
        inputs_{inputs},
        options_{options},
        rows_(inputs.x1),
        tiles_{inputs.x2 ? GramTiles<Scalar>(inputs.network, inputs.x1, *inputs.x2, options.gram)
                         : GramTiles<Scalar>(inputs.network, inputs.x1, options.gram)} {
    if (inputs.x2) columns_.emplace(*inputs.x2);
  }

  /// Other processes may make or enlarge the same store meanwhile: it is looked at again until it is as this one wants
  /// it, and nobody changes it.
  OpenedStore open() {
    files::require_may_write(folder_.path());
    constexpr int most_attempts = 100;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (!folder_.holds_store() && !made()) continue;
      StoreFacts facts = folder_.facts();
      const auto side = folder_.other_tile_side(facts);
      if (side) facts = with_side_of_files(facts, *side);
      require_same(facts);
      require_records(facts);
      // A store that is whole and cannot be written to is opened for reading.
      if (!side && !needs_change(facts) && !folder_.is_writable(facts)) return {std::move(facts), nullptr};
      folder_.make_missing_folders(facts);
      if ((side || needs_change(facts)) && !changed(facts)) continue;
      auto claims = std::make_unique<TileClaims>(folder_.claims_file(facts));
      // Between the look and the claim another process may have changed the store.
      if (claims->use_shape() && folder_.facts().steps() == facts.steps() && !needs_change(facts))
        return {std::move(facts), std::move(claims)};
    }
    throw DataError(
        fmt::format("{}: another process uses the store, or is changing its size: wait until it has ended",
                    folder_.path().string()));
  }

 private:
  /// What the store would be if it were made now, with these steps of its rows.
  [[nodiscard]] nlohmann::json wanted(const nlohmann::json& row_steps, Index tile_side) {
    const nlohmann::json network = nlohmann::json::parse(network_identity(inputs_.network));
    nlohmann::json facts{{"format", store_format},
                         {"format_version", store_format_version},
                         {"library_version", version},
                         {"network", network},
                         {"sampled_layers", sampled_layer_facts(network)},
                         {"arrays", array_names(options_.gram.kernels, tiles_.has_errors())},
                         {"precision", std::is_same_v<Scalar, float> ? "float" : "double"},
                         {"arithmetic", arithmetic_facts(options_.gram.device)},
                         {"symmetric", !inputs_.x2},
                         {"tile_side", tile_side},
                         {"rows", batch_facts(inputs_.x1, row_steps)}};
    // Stores that were made without this option do not have it.
    if (options_.gram.exact_attention) facts["exact_attention"] = true;
    if (!options_.command.empty()) facts["command"] = options_.command;
    if (columns_) facts["columns"] = batch_facts(*inputs_.x2, nlohmann::json::array({columns_->of_all()}));
    return facts;
  }

  [[nodiscard]] Index new_tile_side() const {
    if (options_.tile_side < 0)
      throw ArgumentError(
          fmt::format("store: expected a positive side of tiles, or 0, got {}", options_.tile_side));
    const Index side = options_.tile_side > 0
                           ? options_.tile_side
                           : default_tile_side(inputs_.network, inputs_.x1, options_.gram, tiles_.grid());
    if (tiles_.grid() > 1 && side % largest_vector_tile_side != 0)
      throw ArgumentError(
          fmt::format("store: expected a multiple of {} as the side of tiles of vectors, got {}",
                      largest_vector_tile_side, side));
    return side;
  }

  /// False if another process is about to make it.
  [[nodiscard]] bool made() {
    const StoreFacts facts(wanted(nlohmann::json::array({rows_.of_all()}), new_tile_side()),
                           folder_.path().string());
    folder_.make_folders(facts);
    TileClaims claims(folder_.claims_file(facts));
    if (!claims.change_shape()) return false;
    if (!folder_.holds_store()) folder_.write_documents(facts);
    return true;
  }

  /// Somebody has edited the document. The side that the files have is put back if the caller names it.
  [[nodiscard]] StoreFacts with_side_of_files(const StoreFacts& facts, Index side) const {
    if (options_.tile_side != side)
      throw DataError(fmt::format(
          "{}: zarr.json says tile_side {}, but the tiles that are there have {} a side: it was changed "
          "by hand; nothing was touched; --tile {} puts it back",
          folder_.path().string(), facts.grid().side(), side, side));
    return facts.with_tile_side(side);
  }

  void require_same(const StoreFacts& facts) {
    const nlohmann::json& there = facts.document();
    const Index rows = facts.steps().back(), given = inputs_.x1.size();
    if (given < rows) refuse(fmt::format("it has {} rows, {} inputs were given", rows, given));
    // The facts of the given inputs, cut into the store's own steps.
    nlohmann::json steps = nlohmann::json::array();
    for (std::size_t s = 0; s < facts.steps().size(); ++s) {
      const GrowthStep step = growth_step(facts.steps(), s);
      steps.push_back(rows_.of({step.begin, step.end}));
    }
    const Index side = options_.tile_side > 0 ? options_.tile_side : facts.grid().side();
    std::vector<const char*> compared(identifying_facts.begin(), identifying_facts.end());
    if (options_.other_arithmetic) compared.pop_back();
    nlohmann::json here = wanted(steps, side);
    here["library_version"] = accepted_version(there);
    if (const auto difference = difference_between(there, here, compared)) refuse(*difference);
    if (given > rows && !options_.grow)
      refuse(fmt::format(
          "it has {} rows, {} inputs were given; let it grow (--grow) if the others shall join it", rows,
          given));
  }

  /// Tiles of which nobody has written anything down may be of any store, and are not written over unasked: they may be
  /// the work of weeks.
  void require_records(const StoreFacts& facts) const {
    if (options_.unrecorded == UnrecordedTiles::accepted || !folder_.holds_tiles(facts)) return;
    TileRecords records(folder_, facts);
    records.refresh();
    if (records.are_there()) return;
    throw DataError(
        fmt::format("{}: no record says that its tiles are of this store: its folder {} is gone, or of "
                    "another store, or version "
                    "0.1 made it; nothing was touched: --accept-unrecorded takes the tiles as they are, and "
                    "widelimit store "
                    "verify --recompute compares them with what is computed",
                    folder_.path().string(), folder_.records_folder(facts).string()));
  }

  /// Whether rows join, or documents are not as the facts want them.
  [[nodiscard]] bool needs_change(const StoreFacts& facts) const {
    return inputs_.x1.size() > facts.steps().back() || !folder_.wrong_documents(facts).empty();
  }

  /// Lets the rows join and writes whole documents; false if others use the store, or have changed it meanwhile.
  [[nodiscard]] bool changed(StoreFacts& facts) {
    TileClaims claims(folder_.claims_file(facts));
    if (!claims.change_shape() || folder_.facts().steps() != facts.steps()) return false;
    const Index rows = facts.steps().back(), given = inputs_.x1.size();
    if (given > rows) facts = facts.with_step(rows_.of({rows, given}));
    folder_.write_documents(facts);
    return true;
  }

  [[noreturn]] void refuse(const std::string& difference) const {
    throw DataError(fmt::format("{}: the store is another one: {}; nothing was touched",
                                folder_.path().string(), difference));
  }

  const StoreFolder& folder_;
  const StoreInputs<Scalar>& inputs_;
  const StoreOptions& options_;
  KnownInputFacts<Scalar> rows_;
  std::optional<KnownInputFacts<Scalar>> columns_;
  GramTiles<Scalar> tiles_;
};

}  // namespace

template <typename Scalar>
OpenedStore open_store(const StoreFolder& folder, const StoreInputs<Scalar>& inputs,
                       const StoreOptions& options) {
  return StoreOpening<Scalar>(folder, inputs, options).open();
}

template OpenedStore open_store(const StoreFolder&, const StoreInputs<float>&, const StoreOptions&);
template OpenedStore open_store(const StoreFolder&, const StoreInputs<double>&, const StoreOptions&);

}  // namespace widelimit::store

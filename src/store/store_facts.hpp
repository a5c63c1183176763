#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "json/json_value.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_tiles.hpp"
#include "widelimit/store/tile_grid.hpp"

namespace widelimit::store {

/// What a store is of, as the attribute "widelimit" of its Zarr group says it:
///   format, format_version, library_version
///   network          as network files have it
///   sampled_layers   where their samples come from: path, samples, seed
///   arrays           "nngp", "ntk", "nngp_error", "ntk_error", those that there are
///   precision        "float" or "double"
///   arithmetic       of the processor and of BLAS, on which the last bits depend
///   exact_attention  true, if attention before flatten was computed exactly
///   symmetric, tile_side
///   command          what made it, as a shell reads it, if the program did
///   rows, columns    {channels, shape (null if the inputs differ), steps}; no columns if symmetric. A step says which
///                    inputs a store began with (input_facts()), those after it which ones joined later.
class StoreFacts {
 public:
  /// Throws DataError, naming `path`, for a document that no store has.
  StoreFacts(nlohmann::json document, const std::string& path);

  [[nodiscard]] const nlohmann::json& document() const { return document_; }
  [[nodiscard]] int format_version() const { return format_version_; }

  [[nodiscard]] TileGrid grid() const;
  [[nodiscard]] bool is_symmetric() const { return is_symmetric_; }
  [[nodiscard]] bool is_float() const { return is_float_; }
  [[nodiscard]] Kernels kernels() const;
  [[nodiscard]] const std::vector<std::string>& arrays() const { return arrays_; }
  [[nodiscard]] Index columns() const { return is_symmetric_ ? steps_.back() : columns_; }
  /// How many rows there were after each step.
  [[nodiscard]] const std::vector<Index>& steps() const { return steps_; }

  /// The facts with more inputs among the rows.
  [[nodiscard]] StoreFacts with_step(const nlohmann::json& input_facts) const;
  /// The facts with tiles of another side.
  [[nodiscard]] StoreFacts with_tile_side(Index side) const;

 private:
  nlohmann::json document_;
  std::vector<std::string> arrays_;
  std::vector<Index> steps_;
  Index columns_ = 0;
  Index tile_side_ = 0;
  int format_version_ = 0;
  bool is_symmetric_ = false;
  bool is_float_ = false;
};

/// The documents' format.
inline constexpr const char* store_format = "widelimit Gram store";
inline constexpr int store_format_version = 2;
/// The one of versions 0.1 and 0.2, whose records do not name their store.
inline constexpr int unsealed_format_version = 1;

/// The facts on which a store's numbers depend. "arithmetic" is the last of them.
inline constexpr std::array identifying_facts{"library_version", "network",   "arrays",    "precision",
                                              "symmetric",       "columns",   "tile_side", "rows",
                                              "exact_attention", "arithmetic"};

/// What "library_version" must be where this document has it: that of the document if it is of a version whose stores
/// and matrices are gone on with as if they were this one's, else this version. Formats have versions of their own.
[[nodiscard]] std::string accepted_version(const nlohmann::json& document);

/// {path, samples, seed} of every sampled layer of a network, as its file has it.
[[nodiscard]] nlohmann::json sampled_layer_facts(const nlohmann::json& network);

/// Where one of these facts differs, in words: "network/layers/2/weight_variance is 2 there and 1.5 here"; nothing if
/// they agree.
[[nodiscard]] std::optional<std::string> difference_between(const nlohmann::json& there,
                                                            const nlohmann::json& here,
                                                            const std::vector<const char*>& facts);

}  // namespace widelimit::store

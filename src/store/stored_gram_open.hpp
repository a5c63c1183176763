#pragma once

#include "store/store_facts.hpp"
#include "store/store_folder.hpp"
#include "store/tile_files.hpp"
#include "widelimit/store/stored_gram.hpp"

namespace widelimit::store {

struct StoredGram::Open {
  StoreFolder folder;
  StoreFacts facts;
  /// Which numbers belong into which tile; read again when a tile's numbers are those written down for another one.
  mutable TileRecords records;

  Open(const std::filesystem::path& path, UnrecordedTiles unrecorded)
      : folder(path), facts{folder.facts()}, records(folder, facts, unrecorded) {
    records.refresh();
  }

  [[nodiscard]] bool has_chunk(const std::string& array, TileIndex tile) const {
    std::error_code error;
    return std::filesystem::is_regular_file(folder.chunk(array, tile), error);
  }
};

}  // namespace widelimit::store

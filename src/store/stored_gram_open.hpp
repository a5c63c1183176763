#pragma once

#include "store/store_facts.hpp"
#include "store/store_folder.hpp"
#include "store/tile_files.hpp"
#include "widelimit/store/stored_gram.hpp"

namespace widelimit::store {

struct StoredGram::Open {
  StoreFolder folder;
  StoreFacts facts;

  explicit Open(const std::filesystem::path& path) : folder(path), facts{folder.facts()} {}
};

}  // namespace widelimit::store

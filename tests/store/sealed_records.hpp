#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "store/store_folder.hpp"
#include "store/store_seals.hpp"

namespace widelimit::testing {

/// Makes the records of a store in one step those of its document, as somebody does who changes that and is not to be
/// found out.
inline void seal_records(const std::filesystem::path& folder) {
  const store::StoreFolder store(folder);
  const store::StoreFacts facts = store.facts();
  const store::StoreSeals seals(facts);
  for (const auto& entry : std::filesystem::directory_iterator(store.records_folder(facts))) {
    std::vector<std::string> lines;
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);) {
      const std::string text = line.substr(0, line.find(" seal "));
      lines.push_back(text + " seal " + seals.of(text, 1));
    }
    std::ofstream out(entry.path());
    for (const std::string& line : lines) out << line << "\n";
  }
}

}  // namespace widelimit::testing

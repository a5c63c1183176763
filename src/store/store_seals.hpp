#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/store_facts.hpp"

namespace widelimit::store {

/// Ties the records of a store to it: a seal is a hash of a record's text and of everything that identifies the store
/// (identifying_facts()) with the inputs that it had when the record was written. It shows mistakes, such as files of
/// another store; it is no signature, and who wants to can make one.
class StoreSeals {
 public:
  explicit StoreSeals(const StoreFacts& facts);

  /// How many growth steps the store has, the first inputs included.
  [[nodiscard]] Index steps() const { return static_cast<Index>(identities_.size()); }

  /// 32 hexadecimal digits, for a text of a store that has so many steps: 1 <= steps <= steps().
  [[nodiscard]] std::string of(std::string_view text, Index steps) const;

  /// Whether records without a seal count: those of stores that version 0.2 made.
  [[nodiscard]] bool takes_unsealed() const { return takes_unsealed_; }

  /// Whether these are the seals of the same store after more inputs have joined.
  [[nodiscard]] bool continue_those_of(const StoreSeals& earlier) const;

 private:
  std::vector<std::string> identities_;  ///< SHA-256 of what identifies the store after each step.
  bool takes_unsealed_;
};

}  // namespace widelimit::store

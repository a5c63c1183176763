#include "store/store_seals.hpp"

#include <algorithm>

#include "widelimit/store/sha256.hpp"

namespace widelimit::store {
namespace {

/// The digest of what identifies a store that has the first `count` steps of these facts.
std::string identity_of(const StoreFacts& facts, std::size_t count) {
  nlohmann::json identity{{"format_version", facts.format_version()}};
  for (const char* fact : identifying_facts) identity[fact] = facts.document().value(fact, nlohmann::json());
  nlohmann::json& steps = identity["rows"]["steps"];
  steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(count), steps.end());
  const std::string text = identity.dump();
  return sha256_of(text.data(), text.size());
}

}  // namespace

StoreSeals::StoreSeals(const StoreFacts& facts)
    : takes_unsealed_{facts.format_version() == unsealed_format_version} {
  for (std::size_t count = 1; count <= facts.steps().size(); ++count)
    identities_.push_back(identity_of(facts, count));
}

std::string StoreSeals::of(std::string_view text, Index steps) const {
  constexpr std::size_t digits = 32;
  Sha256 sum;
  const std::string& identity = identities_.at(static_cast<std::size_t>(steps - 1));
  sum.add(identity.data(), identity.size());
  sum.add(text.data(), text.size());
  return sum.digest().substr(0, digits);
}

bool StoreSeals::continue_those_of(const StoreSeals& earlier) const {
  return identities_.size() >= earlier.identities_.size() &&
         std::equal(earlier.identities_.begin(), earlier.identities_.end(), identities_.begin());
}

}  // namespace widelimit::store

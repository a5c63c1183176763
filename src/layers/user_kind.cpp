#include "layers/user_kind.hpp"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <mutex>
#include <utility>

#include "widelimit/error.hpp"
#include "widelimit/layers/kinds.hpp"

namespace widelimit::layers {
namespace {

/// A name without case and blanks, as a hurried reader takes it.
std::string plain(const std::string& kind) {
  std::string text;
  for (const char letter : kind) {
    const int c = static_cast<unsigned char>(letter);
    if (std::isspace(c) == 0) text.push_back(static_cast<char>(std::tolower(c)));
  }
  return text;
}

/// Numbers the objects of each kind from 1 on. An address may be used again, so that those of objects that are gone are
/// forgotten.
std::size_t number_of(const std::string& kind, const std::shared_ptr<const void>& object) {
  struct Numbers {
    std::size_t last = 0;
    std::map<const void*, std::pair<std::weak_ptr<const void>, std::size_t>> living;
  };
  static std::mutex mutex;
  static std::map<std::string, Numbers> kinds;
  const std::scoped_lock lock(mutex);
  Numbers& numbers = kinds[kind];
  std::erase_if(numbers.living, [](const auto& entry) { return entry.second.first.expired(); });
  const auto found = numbers.living.find(object.get());
  if (found != numbers.living.end()) return found->second.second;
  numbers.living.emplace(object.get(), std::pair(std::weak_ptr(object), ++numbers.last));
  return numbers.last;
}

}  // namespace

void check_user_kind(const std::string& kind) {
  const std::string name = plain(kind);
  if (name.empty()) throw ArgumentError("a layer of your own needs a kind, got an empty name");
  // The weights of attention are named by a kind or by one of these words.
  if (builtin_kind(name) != nullptr || name == "softmax" || name == "softmax1")
    throw ArgumentError(
        fmt::format("{}: this kind is a layer of the library; choose another name for your own", kind));
}

UserKind::UserKind(std::string kind, std::optional<nlohmann::ordered_json> parameters,
                   const std::shared_ptr<const void>& object)
    : name_{std::move(kind)}, parameters_(std::move(parameters)), number_{number_of(name_, object)} {
  check_user_kind(name_);
  if (!parameters_) return;
  if (!parameters_->is_object())
    throw ArgumentError(
        fmt::format("{}: parameters must be a JSON object, got {}", name_, parameters_->dump()));
  if (parameters_->contains("layer"))
    throw ArgumentError(
        fmt::format("{}: parameters must not have a member \"layer\", which names the kind", name_));
}

nlohmann::ordered_json UserKind::fields(const char* what) const {
  return parameters_ ? *parameters_ : nlohmann::ordered_json{{what, number_}};
}

void UserKind::check_writable(const std::string& path) const {
  if (!parameters_)
    throw NetworkError(
        fmt::format("{} ({}): cannot be written, because it is a layer of your own, made from a function or "
                    "object that no file "
                    "can hold; in C++, give pair_layer(), row_layer() or nonlinearity() its parameters; in "
                    "Python, keep the code "
                    "that makes the network",
                    path, name_));
}

}  // namespace widelimit::layers

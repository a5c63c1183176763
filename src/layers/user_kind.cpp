#include "layers/user_kind.hpp"

#include <fmt/format.h>

#include <cctype>
#include <utility>

#include "network/registry.hpp"
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

}  // namespace

void check_user_kind(const std::string& kind) {
  const std::string name = plain(kind);
  if (name.empty()) throw ArgumentError("a layer of your own needs a kind, got an empty name");
  // The weights of attention are named by a kind or by one of these words.
  if (builtin_kind(name) != nullptr || name == "softmax" || name == "softmax1")
    throw ArgumentError(
        fmt::format("{}: this kind is a layer of the library; choose another name for your own", kind));
}

UserKind::UserKind(std::string kind, std::optional<nlohmann::ordered_json> parameters)
    : name_{std::move(kind)}, parameters_(std::move(parameters)) {
  check_user_kind(name_);
  if (!parameters_) return;
  if (!parameters_->is_object())
    throw ArgumentError(
        fmt::format("{}: parameters must be a JSON object, got {}", name_, parameters_->dump()));
  if (parameters_->contains("layer"))
    throw ArgumentError(
        fmt::format("{}: parameters must not have a member \"layer\", which names the kind", name_));
}

nlohmann::ordered_json UserKind::fields(const char* what, const void* address) const {
  return parameters_ ? *parameters_ : nlohmann::ordered_json{{what, fmt::format("{}", address)}};
}

void UserKind::check_writable(const std::string& path) const {
  if (!parameters_)
    throw NetworkError(fmt::format(
        "{} ({}): cannot be written, because its parameters are not known; pass them where the layer is made",
        path, name_));
  if (!is_registered(name_))
    throw NetworkError(
        fmt::format("{} ({}): cannot be written, because it could not be read back; register "
                    "the kind with register_layer_kind()",
                    path, name_));
}

}  // namespace widelimit::layers

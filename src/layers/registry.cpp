#include "network/registry.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "layers/kind_rows.hpp"
#include "layers/user_kind.hpp"
#include "network/layer_model.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit {
namespace {

/// Layers that people bring from elsewhere, and why they have no kernel; null for others.
const char* why_without_kernel(const std::string& kind) {
  static const std::map<std::string, const char*> reasons{
      {"batch_norm",
       "what it makes of an input depends on all inputs of the batch, so that there is no kernel of two "
       "inputs (Yang et "
       "al. 2019, arXiv:1902.08129, whose limit has a covariance of the whole batch); layer_norm and "
       "rms_norm have one"},
      {"max_pool",
       "the maximum over positions is no sum or mean of what is Gaussian, and its covariances have no closed "
       "form; "
       "average_pool has one"},
      {"embedding", "give one-hot inputs to a dense layer, whose kernel is that of an embedding"}};
  const auto found = reasons.find(kind);
  return found == reasons.end() ? nullptr : found->second;
}

class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  void add(const std::string& kind, LayerReader reader) {
    const std::scoped_lock lock(mutex_);
    if (!readers_.emplace(kind, std::move(reader)).second)
      throw ArgumentError(
          fmt::format("register_layer_kind: the kind \"{}\" exists already; choose another name", kind));
  }

  LayerReader find(const std::string& kind, const std::string& path) const {
    const std::scoped_lock lock(mutex_);
    const auto found = readers_.find(kind);
    if (found != readers_.end()) return found->second;
    if (const char* reason = why_without_kernel(kind))
      throw NetworkError(fmt::format("{}.layer: \"{}\" has no kernel: {}", path, kind, reason));
    throw NetworkError(
        fmt::format("{}.layer: unknown kind \"{}\"; known are {}", path, kind, joined_kinds()));
  }

  bool contains(const std::string& kind) const {
    const std::scoped_lock lock(mutex_);
    return readers_.contains(kind);
  }

  std::vector<std::string> kinds() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [kind, reader] : readers_) names.push_back(kind);
    return names;
  }

 private:
  Registry() {
    for (const layers::KindRow& row : layers::kind_rows())
      readers_[row.kind.name] = [&row](FieldReader& reader) {
        layers::KindFields fields(reader, row.kind);
        return row.make(fields);
      };
  }

  std::string joined_kinds() const {
    std::string text;
    for (const auto& [kind, reader] : readers_) text += (text.empty() ? "" : ", ") + kind;
    return text;
  }

  mutable std::mutex mutex_;
  std::map<std::string, LayerReader> readers_;
};

}  // namespace

Layer read_layer(const nlohmann::json& object, const std::string& path) {
  FieldReader reader(object, path);
  std::string kind = reader.text("layer");
  // A kind of somebody's own, by functions of Python: one reader, which the Python package has registered, is for all.
  if (!is_registered(kind) && reader.has(python_kind)) {
    if (!is_registered(python_kind))
      reader.fail(
          python_kind,
          fmt::format("the layer \"{}\" calls functions of Python, so that only the Python package can use "
                      "it: read it there, with widelimit.Network.read(FILE, functions=...) or "
                      "widelimit.Model.load(FOLDER, functions=...)",
                      kind));
    kind = python_kind;
  }
  try {
    Layer layer = Registry::instance().find(kind, path)(reader);
    reader.finish();
    return layer;
  } catch (const ArgumentError& error) {
    throw NetworkError(fmt::format("{}: {}", path, error.what()));
  }
}

Layers read_layers(const nlohmann::json& array, const std::string& path) {
  if (!array.is_array())
    throw NetworkError(fmt::format("{}: expected a list of layers, got {}", path, array.type_name()));
  // Before any of them is made.
  if (static_cast<double>(array.size()) > most_layers)
    throw NetworkError(
        fmt::format("{}: expected at most {} layers in a list, got {}", path, most_layers, array.size()));
  Layers layers;
  for (std::size_t i = 0; i < array.size(); ++i)
    layers.push_back(read_layer(array[i], fmt::format("{}[{}]", path, i)));
  return layers;
}

void register_layer_kind(const std::string& kind, LayerReader reader) {
  if (!is_registered(kind)) layers::check_user_kind(kind);
  Registry::instance().add(kind, std::move(reader));
}

bool is_registered(const std::string& kind) { return Registry::instance().contains(kind); }

std::vector<std::string> layer_kinds() { return Registry::instance().kinds(); }

}  // namespace widelimit

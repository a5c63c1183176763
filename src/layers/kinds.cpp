#include "widelimit/layers/kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "layers/kind_rows.hpp"
#include "network/registry.hpp"

namespace widelimit::layers {
namespace {

KindRows made_rows() {
  KindRows rows;
  add_dense_kinds(rows);
  add_convolution_kinds(rows);
  add_transposed_convolution_kinds(rows);
  add_activation_kinds(rows);
  add_exp_normalized_kinds(rows);
  add_matern_kinds(rows);
  add_pooling_kinds(rows);
  add_position_kinds(rows);
  add_graph_kinds(rows);
  add_norm_kinds(rows);
  add_dropout_kinds(rows);
  add_attention_kinds(rows);
  add_recurrent_kinds(rows);
  add_branch_kinds(rows);
  return rows;
}

std::vector<LayerKind> made_kinds() {
  std::vector<LayerKind> kinds;
  for (const KindRow& row : kind_rows()) kinds.push_back(row.kind);
  return kinds;
}

}  // namespace

std::string_view group_name(KindGroup group) {
  switch (group) {
    case KindGroup::weights:
      return "weights";
    case KindGroup::activation:
      return "activation";
    case KindGroup::pooling:
      return "pooling";
    case KindGroup::positions:
      return "positions";
    case KindGroup::graph:
      return "graph";
    case KindGroup::normalisation:
      return "normalisation";
    case KindGroup::dropout:
      return "dropout";
    case KindGroup::attention:
      return "attention";
    case KindGroup::branches:
      return "branches";
  }
  return {};
}

std::string_view type_name(FieldType type) {
  switch (type) {
    case FieldType::number:
      return "number";
    case FieldType::integer:
      return "integer";
    case FieldType::boolean:
      return "true or false";
    case FieldType::text:
      return "text";
    case FieldType::numbers:
      return "list of numbers";
    case FieldType::integers:
      return "list of integers";
    case FieldType::integers_null:
      return "list of integers and nulls";
    case FieldType::names:
      return "list of names and integers";
    case FieldType::matrix:
      return "list of rows";
    case FieldType::matrices:
      return "list of matrices";
    case FieldType::object:
      return "object or text";
    case FieldType::layers:
      return "list of layers or branches";
  }
  return {};
}

std::string KindField::range() const {
  const bool below = std::isfinite(minimum), above = std::isfinite(maximum);
  if (below && above)
    return above_minimum ? fmt::format("in ({:g}, {:g}]", minimum, maximum)
                         : fmt::format("{:g} .. {:g}", minimum, maximum);
  if (below) return fmt::format("{} {:g}", above_minimum ? ">" : ">=", minimum);
  return above ? fmt::format("<= {:g}", maximum) : std::string{};
}

const KindRows& kind_rows() {
  static const KindRows rows = made_rows();
  return rows;
}

const std::vector<LayerKind>& builtin_kinds() {
  static const std::vector<LayerKind> kinds = made_kinds();
  return kinds;
}

const LayerKind* builtin_kind(std::string_view name) {
  const auto& kinds = builtin_kinds();
  const auto found = std::ranges::find(kinds, name, &LayerKind::name);
  return found == kinds.end() ? nullptr : &*found;
}

Layer layer_of_kind(const std::string& name) { return read_layer({{"layer", name}}, "layer"); }

std::string example_of(const LayerKind& kind) {
  nlohmann::ordered_json layer{{"layer", kind.name}};
  layer.update(nlohmann::ordered_json::parse(kind.example));
  return layer.dump();
}

const KindField& KindFields::field(std::string_view name) const {
  const auto found = std::ranges::find(kind_.fields, name, &KindField::name);
  if (found == kind_.fields.end())
    throw std::logic_error(fmt::format("the row of {} has no field {}", kind_.name, name));
  return *found;
}

template <typename T>
T KindFields::default_of(const KindField& field) const {
  return nlohmann::json::parse(field.default_value).get<T>();
}

double KindFields::number(std::string_view name) {
  const KindField& row = field(name);
  return row.required() || has(name) ? reader_.number(name) : default_of<double>(row);
}

Index KindFields::integer(std::string_view name) {
  const KindField& row = field(name);
  return row.required() || has(name) ? reader_.integer(name) : default_of<Index>(row);
}

bool KindFields::boolean(std::string_view name) {
  const KindField& row = field(name);
  return row.required() || has(name) ? reader_.boolean(name) : default_of<bool>(row);
}

std::string KindFields::word(std::string_view name) {
  const KindField& row = field(name);
  if (!row.required() && !has(name)) return default_of<std::string>(row);
  const std::string word = reader_.text(name);
  if (std::ranges::find(row.words, word) == row.words.end())
    fail(name, fmt::format("expected one of {}, got \"{}\"", fmt::join(row.words, ", "), word));
  return word;
}

std::vector<double> KindFields::numbers(std::string_view name) {
  static_cast<void>(field(name));
  return reader_.numbers(name);
}

std::vector<Index> KindFields::integers(std::string_view name) {
  const KindField& row = field(name);
  if (!row.required() && !has(name)) return {};
  return reader_.integers(name);
}

bool KindFields::has(std::string_view name) {
  static_cast<void>(field(name));
  return reader_.has(name);
}

FieldReader& KindFields::reader(std::string_view name) {
  static_cast<void>(field(name));
  return reader_;
}

void KindFields::fail(std::string_view name, const std::string& message) { reader_.fail(name, message); }

}  // namespace widelimit::layers

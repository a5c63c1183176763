#include "kinds.hpp"

#include <nanobind/stl/string.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "widelimit/layers/kinds.hpp"

namespace widelimit::python {
namespace {

using layers::DualForm;
using layers::KindField;
using layers::LayerKind;
using nlohmann::ordered_json;

/// Bounds that there are not are null.
ordered_json bound(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(); }

ordered_json json_of(const KindField& field) {
  return {{"name", field.name},
          {"type", layers::type_name(field.type)},
          {"required", field.required()},
          {"default", field.required() ? ordered_json() : ordered_json::parse(field.default_value)},
          {"minimum", bound(field.minimum)},
          {"maximum", bound(field.maximum)},
          {"range", field.range()},
          {"words", field.words},
          {"meaning", field.meaning},
          {"by_name", field.by_name}};
}

ordered_json json_of(const LayerKind& kind) {
  ordered_json fields = ordered_json::array(), tangents;
  for (const KindField& field : kind.fields) fields.push_back(json_of(field));
  if (const auto& theirs = kind.neural_tangents; !theirs.function.empty())
    tangents = {{"function", theirs.function},
                {"arguments", theirs.arguments},
                {"ignored", theirs.ignored},
                {"does", theirs.does}};
  return {{"name", kind.name},
          {"group", layers::group_name(kind.group)},
          {"fields", fields},
          {"does", kind.does},
          {"nngp", kind.nngp},
          {"ntk", kind.ntk},
          {"limits", kind.limits},
          {"cost", kind.cost},
          {"source", kind.source},
          {"by_quadrature", kind.dual == DualForm::quadrature},
          {"example", ordered_json::parse(kind.example)},
          {"neural_tangents", tangents}};
}

std::string layer_kinds() {
  ordered_json kinds = ordered_json::array();
  for (const LayerKind& kind : layers::builtin_kinds()) kinds.push_back(json_of(kind));
  return kinds.dump();
}

}  // namespace

void bind_kinds(nanobind::module_& module) {
  module.def("layer_kinds", &layer_kinds,
             "The table of built-in layers, a JSON list of one object a kind: what functions and pages are "
             "made from.");
}

}  // namespace widelimit::python

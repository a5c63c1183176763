#include "network/weights_form.hpp"

#include <algorithm>

#include "network/leading_outputs.hpp"

namespace widelimit {
namespace {

bool has_attention(const LinearTree& tree) {
  return std::holds_alternative<LinearSandwich>(tree.operation) ||
         std::any_of(tree.inputs.begin(), tree.inputs.end(), has_attention);
}

}  // namespace

WeightsForm form_before(const LinearTree& tree, WeightsForm form, const LinearTree& input) {
  const bool makes_factors =
      form == WeightsForm::diagonal && std::holds_alternative<LinearSandwich>(tree.operation);
  if (!makes_factors && form != WeightsForm::factors) return form;
  return has_attention(input) ? WeightsForm::factors : WeightsForm::full;
}

bool multiplies(const LinearTree& tree, WeightsForm form) {
  const auto* layer = std::get_if<LinearSandwich>(&tree.operation);
  if (layer != nullptr && form != WeightsForm::outer && layer->sandwich->has_value_positions()) return true;
  return form != WeightsForm::full &&
         std::any_of(tree.inputs.begin(), tree.inputs.end(), [&](const LinearTree& input) {
           return form_before(tree, form, input) == WeightsForm::full;
         });
}

bool has_leading_outputs(const LinearTree& tree, WeightsForm form) {
  return form == WeightsForm::diagonal && std::holds_alternative<LinearSandwich>(tree.operation) &&
         std::holds_alternative<LinearInput>(tree.inputs[0].operation);
}

bool keeps_leading_outputs(const LinearTree& tree, WeightsForm form, Index d) {
  if (has_leading_outputs(tree, form)) return leading_size(d) > 0;
  return std::any_of(tree.inputs.begin(), tree.inputs.end(), [&](const LinearTree& input) {
    return keeps_leading_outputs(input, form_before(tree, form, input), d);
  });
}

}  // namespace widelimit

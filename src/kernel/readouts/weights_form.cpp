#include "kernel/readouts/weights_form.hpp"

#include <algorithm>

#include "kernel/readouts/leading_outputs.hpp"

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

Index scratch_matrices(const LinearTree& tree, WeightsForm form) {
  const bool scales = std::holds_alternative<LinearScaling>(tree.operation) && form == WeightsForm::full;
  Index below = 0;
  for (const LinearTree& input : tree.inputs)
    below = std::max(below, scratch_matrices(input, form_before(tree, form, input)));
  return (scales || multiplies(tree, form) ? 1 : 0) + below;
}

double flops_below(const LinearTree& tree, WeightsForm form, const PairSize& pair) {
  const auto d = static_cast<double>(pair.left), e = static_cast<double>(pair.right);
  double flops = 0;
  if (std::holds_alternative<LinearInput>(tree.operation))
    flops = 2 * pair.kernels() * (form == WeightsForm::diagonal ? std::min(d, e) : d * e);
  if (std::holds_alternative<LinearScaling>(tree.operation) && form == WeightsForm::full) flops = 2 * d * e;
  if (multiplies(tree, form)) flops = 2 * d * d * e;
  for (const LinearTree& input : tree.inputs)
    flops += flops_below(input, form_before(tree, form, input), pair);
  return flops;
}

Index scratch_of_leading(const LinearTree& tree, WeightsForm form, Index d) {
  if (has_leading_outputs(tree, form)) return leading_scratch(d);
  Index most = 0;
  for (const LinearTree& input : tree.inputs)
    most = std::max(most, scratch_of_leading(input, form_before(tree, form, input), d));
  return most;
}

}  // namespace widelimit

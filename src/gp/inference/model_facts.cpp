// What a model says of itself, as it stands in its state.
#include <variant>

#include "gp/inference/model_state.hpp"
#include "widelimit/gp/input_range.hpp"
#include "widelimit/gp/model.hpp"

namespace widelimit::gp {

const TargetScale& Model::target_scale() const { return state_->scale; }

Index Model::train_size() const { return state_->targets.rows(); }
Index Model::outputs() const { return state_->targets.cols(); }

const Network& Model::network() const {
  return std::visit([](const auto& kernel) -> const Network& { return kernel.network(); }, state_->kernel);
}

bool Model::is_float() const { return std::holds_alternative<ModelKernel<float>>(state_->kernel); }

bool Model::flips() const {
  return std::visit([](const auto& kernel) { return kernel.flips(); }, state_->kernel);
}

const std::vector<std::string>& Model::class_names() const { return state_->class_names; }
const Preprocessing& Model::preprocessing() const { return state_->preprocessing; }
const std::string& Model::preparation() const { return state_->preparation; }
const std::vector<Selection>& Model::selections() const { return state_->selections; }
const FeatureMap& Model::feature_map() const { return state_->map; }
const std::optional<LearnedInputs>& Model::learned() const { return state_->learned; }

template <typename Scalar>
std::string Model::range_warning(const Inputs<Scalar>& x) const {
  return std::visit(
      [&](const auto& kernel) {
        return gp::range_warning(kernel.train(), state_->map.apply(x), state_->preprocessing);
      },
      state_->kernel);
}

template std::string Model::range_warning(const Inputs<float>&) const;
template std::string Model::range_warning(const Inputs<double>&) const;

}  // namespace widelimit::gp

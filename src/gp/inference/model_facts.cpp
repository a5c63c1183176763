// What a model says of itself, as it stands in its state.
#include <algorithm>
#include <functional>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <variant>
#include <vector>

#include "gp/inference/model_state.hpp"
#include "kernel/inputs/copied_inputs.hpp"
#include "widelimit/gp/input_range.hpp"
#include "widelimit/gp/model.hpp"

namespace widelimit::gp {
namespace {

/// Equal inputs have equal numbers; 0 and -0 are one number.
template <typename Scalar>
std::size_t hash_of(const Inputs<Scalar>& x, Index i) {
  std::vector<Scalar> numbers;
  for (const Scalar number : x[i]) numbers.push_back(number + Scalar{0});
  return std::hash<std::string_view>{}(
      {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Scalar)});
}

template <typename Scalar>
Index equal_inputs(const Inputs<Scalar>& train, const Inputs<Scalar>& x) {
  if (x.is_masked() || train.is_masked() || !x.graphs().empty() || !train.graphs().empty()) return 0;
  std::unordered_map<std::size_t, Index> known;
  for (Index i = 0; i < train.size(); ++i) known.try_emplace(hash_of(train, i), i);
  Index count = 0;
  for (Index i = 0; i < x.size(); ++i) {
    const auto found = known.find(hash_of(x, i));
    if (found == known.end() || train.shape(found->second) != x.shape(i)) continue;
    count += std::ranges::equal(train[found->second], x[i]) ? 1 : 0;
  }
  return count;
}

}  // namespace

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

template <typename Scalar>
Index Model::training_inputs_among(const Inputs<Scalar>& x) const {
  return std::visit(
      [&]<typename Own>(const ModelKernel<Own>& kernel) {
        if constexpr (std::is_same_v<Own, Scalar>) return equal_inputs(kernel.train(), state_->map.apply(x));
        return equal_inputs(kernel.train(), state_->map.apply(copied_inputs<Own, Scalar>({&x})));
      },
      state_->kernel);
}

template Index Model::training_inputs_among(const Inputs<float>&) const;
template Index Model::training_inputs_among(const Inputs<double>&) const;
template std::string Model::range_warning(const Inputs<float>&) const;
template std::string Model::range_warning(const Inputs<double>&) const;

}  // namespace widelimit::gp

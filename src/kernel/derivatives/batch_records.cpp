#include "kernel/derivatives/batch_records.hpp"

#include <algorithm>

#include "kernel/derivatives/feature_adjoints.hpp"
#include "kernel/features.hpp"
#include "kernel/multiples.hpp"

namespace widelimit {
namespace {

const std::vector<FeatureTransform>& transforms_of(const DerivativePlan& plan, NodeId id) {
  return std::get<InputNode>(plan.program.graph.nodes[id].operation).transforms;
}

template <typename Scalar>
std::vector<NodeId> input_nodes(const DerivativePlan& plan) {
  std::vector<NodeId> nodes;
  for (NodeId id = 0; id < plan.program.graph.nodes.size(); ++id)
    if (std::holds_alternative<InputNode>(plan.program.graph.nodes[id].operation)) nodes.push_back(id);
  return nodes;
}

template <typename Scalar>
Features<Scalar> features_of(const DerivativePlan& plan, const Inputs<Scalar>& x, Index i, NodeId node) {
  return transformed_features(x[i], x.shape(i), x.channels(), transforms_of(plan, node), x.mask(i));
}

/// Where an input of a padded batch begins along the leading axes is the same for all: the sizes of the largest.
template <typename Scalar>
Shape largest_sizes(const Inputs<Scalar>& x) {
  Shape largest = x.shape(0);
  for (Index i = 1; i < x.size(); ++i)
    for (std::size_t k = 0; k < largest.size(); ++k) largest[k] = std::max(largest[k], x.shape(i)[k]);
  return largest;
}

}  // namespace

template <typename Scalar>
BatchRecords<Scalar>::BatchRecords(const DerivativePlan& plan, const Inputs<Scalar>& x,
                                   const StopRequest& stop)
    : vectors(plan.vector_inputs.size()) {
  const std::vector<NodeId> nodes = input_nodes<Scalar>(plan);
  masks.resize(plan.masks == InputMasks::present ? static_cast<std::size_t>(x.size()) : 0);
  for (Index i = 0; i < x.size(); ++i) {
    stop.check();
    InputRecord<Scalar>& record = inputs.emplace_back(plan.records.at(x.shape(i)));
    record.graph = x.graph(i);
    if (plan.masks == InputMasks::present) {
      const auto counts = x.mask(i);
      const auto place = static_cast<std::size_t>(i);
      record.mask = &masks[place].emplace(
          counts.empty() ? full_mask(x.shape(i)) : PositionMask{x.shape(i), {counts.begin(), counts.end()}});
    }
    for (const NodeId node : nodes) {
      const Features<Scalar> features = features_of(plan, x, i, node);
      const auto vector = std::find(plan.vector_inputs.begin(), plan.vector_inputs.end(), node);
      if (vector == plan.vector_inputs.end()) {
        std::copy(features.values.begin(), features.values.end(), record.features(node, 0));
        continue;
      }
      VectorFeatures<Scalar>& of_node =
          vectors[static_cast<std::size_t>(vector - plan.vector_inputs.begin())];
      if (i == 0) of_node.rows.resize(x.size(), features.channels);
      std::copy(features.values.begin(), features.values.end(), of_node.rows.row(i).data());
      of_node.variances.push_back(
          static_cast<Scalar>(vector_variance(std::span<const Scalar>(features.values))));
    }
  }
}

template <typename Scalar>
BatchAdjoints<Scalar>::BatchAdjoints(const DerivativePlan& /*plan*/, const BatchRecords<Scalar>& records,
                                     const StopRequest& stop) {
  for (const InputRecord<Scalar>& record : records.inputs) {
    stop.check();
    inputs.emplace_back(*record.layout);
  }
  for (const VectorFeatures<Scalar>& vector : records.vectors)
    vectors.push_back(Matrix<Scalar>::Zero(vector.rows.rows(), vector.rows.cols()));
}

template <typename Scalar>
void BatchAdjoints<Scalar>::add(const BatchAdjoints& others) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t k = 0; k < inputs[i].values.size(); ++k)
      inputs[i].values[k] += others.inputs[i].values[k];
  for (std::size_t v = 0; v < vectors.size(); ++v) vectors[v] += others.vectors[v];
}

template <typename Scalar>
xt::xarray<Scalar> input_gradient(const DerivativePlan& plan, const Inputs<Scalar>& x,
                                  BatchAdjoints<Scalar>& adjoints) {
  const Shape largest = largest_sizes(x);
  std::vector<std::size_t> dimensions{static_cast<std::size_t>(x.size())};
  dimensions.insert(dimensions.end(), largest.begin(), largest.end());
  dimensions.push_back(static_cast<std::size_t>(x.channels()));
  xt::xarray<Scalar> gradient = xt::zeros<Scalar>(dimensions);
  std::vector<Scalar> of_input;
  const Index3 sizes = three_axes(largest);
  for (Index i = 0; i < x.size(); ++i) {
    const Index3 own = three_axes(x.shape(i));
    of_input.assign(static_cast<std::size_t>(product(own) * x.channels()), Scalar{0});
    for (const NodeId node : input_nodes<Scalar>(plan)) {
      const auto vector = std::find(plan.vector_inputs.begin(), plan.vector_inputs.end(), node);
      RecordAdjoint<Scalar>& record = adjoints.inputs[static_cast<std::size_t>(i)];
      const bool is_vector = vector != plan.vector_inputs.end();
      const Scalar* first =
          is_vector
              ? adjoints.vectors[static_cast<std::size_t>(vector - plan.vector_inputs.begin())].row(i).data()
              : record.features(node, 0);
      const Index count =
          is_vector ? adjoints.vectors[static_cast<std::size_t>(vector - plan.vector_inputs.begin())].cols()
                    : record.layout->channels[node] * record.layout->positions[node];
      add_feature_adjoint(x[i], x.shape(i), x.channels(), transforms_of(plan, node), x.mask(i),
                          std::vector<double>(first, first + count), of_input.data());
    }
    // Masked positions are not read.
    const auto counts = x.mask(i);
    for (std::size_t a = 0; a < counts.size(); ++a)
      if (counts[a] == 0)
        std::fill_n(of_input.begin() + static_cast<std::ptrdiff_t>(a) * x.channels(), x.channels(),
                    Scalar{0});
    const Scalar* row = of_input.data();
    for (Index a = 0; a < own[0]; ++a)
      for (Index b = 0; b < own[1]; ++b) {
        const Index place = ((i * sizes[0] + a) * sizes[1] + b) * sizes[2] * x.channels();
        std::copy_n(row, own[2] * x.channels(), gradient.data() + place);
        row += own[2] * x.channels();
      }
  }
  return gradient;
}

template struct BatchRecords<float>;
template struct BatchRecords<double>;
template struct BatchAdjoints<float>;
template struct BatchAdjoints<double>;
template xt::xarray<float> input_gradient(const DerivativePlan&, const Inputs<float>&, BatchAdjoints<float>&);
template xt::xarray<double> input_gradient(const DerivativePlan&, const Inputs<double>&,
                                           BatchAdjoints<double>&);

}  // namespace widelimit

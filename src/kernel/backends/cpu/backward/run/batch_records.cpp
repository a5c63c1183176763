#include "kernel/backends/cpu/backward/run/batch_records.hpp"

#include <algorithm>
#include <functional>

#include "kernel/backends/cpu/backward/planes/feature_adjoints.hpp"
#include "kernel/inputs/features.hpp"
#include "kernel/inputs/multiples.hpp"

namespace widelimit {
namespace {

const std::vector<FeatureTransform>& transforms_of(const BackwardPlan& plan, NodeId id) {
  return *input_transforms(plan.program.graph.nodes[id].operation);
}

template <typename Scalar>
Features<Scalar> features_of(const BackwardPlan& plan, const Inputs<Scalar>& x, Index i, NodeId node) {
  return transformed_features(x[i], x.shape(i), x.channels(), transforms_of(plan, node), x.mask(i));
}

/// True if the node's vector is the input itself, so that no copy is made.
template <typename Scalar>
bool is_taken_as_it_is(const BackwardPlan& plan, const Inputs<Scalar>& x, Index i, NodeId node) {
  return transforms_of(plan, node).empty() && x.shape(i).empty();
}

template <typename Scalar>
void take_vector(const BackwardPlan& plan, const Inputs<Scalar>& x, Index i, NodeId node,
                 VectorFeatures<Scalar>& of_node) {
  const auto take = [&](std::span<const Scalar> vector) {
    of_node.channels = static_cast<Index>(vector.size());
    of_node.variances.push_back(static_cast<Scalar>(vector_variance(vector)));
  };
  if (is_taken_as_it_is(plan, x, i, node)) {
    // The vectors of a batch are already consecutive, like the rows of a matrix.
    if (i == 0) of_node.first = x[i].data();
    return take(x[i]);
  }
  const Features<Scalar> features = features_of(plan, x, i, node);
  take(features.values);
  if (i == 0) of_node.made.resize(x.size(), of_node.channels);
  of_node.first = of_node.made.data();
  std::copy(features.values.begin(), features.values.end(), of_node.made.row(i).data());
}

/// The largest size along each axis. The gradients of shorter inputs are padded to these sizes at their ends.
template <typename Scalar>
Shape largest_sizes(const Inputs<Scalar>& x) {
  Shape largest = x.shape(0);
  for (Index i = 1; i < x.size(); ++i)
    for (std::size_t k = 0; k < largest.size(); ++k) largest[k] = std::max(largest[k], x.shape(i)[k]);
  return largest;
}

}  // namespace

template <typename Scalar>
BatchRecords<Scalar>::BatchRecords(const BackwardPlan& plan, const Inputs<Scalar>& x, const StopRequest& stop)
    : vectors(plan.vector_count) {
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
    // Features with positions are part of a record; vectors are kept as rows of a matrix, so that all pairs of a tile
    // are one product.
    for (const auto& [node, vector_place] : plan.sources) {
      if (vector_place) {
        take_vector(plan, x, i, node, vectors[*vector_place]);
        continue;
      }
      const Features<Scalar> features = features_of(plan, x, i, node);
      std::copy(features.values.begin(), features.values.end(), record.features(node, 0));
    }
  }
}

template <typename Scalar>
BatchAdjoints<Scalar>::BatchAdjoints(const BatchRecords<Scalar>& records, const StopRequest& stop) {
  for (const InputRecord<Scalar>& record : records.inputs) {
    stop.check();
    inputs.emplace_back(*record.layout);
  }
  vectors.resize(records.vectors.size());
}

template <typename Scalar>
void BatchAdjoints<Scalar>::add(const BatchAdjoints& others) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t k = 0; k < inputs[i].values.size(); ++k)
      inputs[i].values[k] += others.inputs[i].values[k];
}

namespace {

/// The derivative with respect to input i, [positions, C], summed over everything that input nodes made of it.
template <typename Scalar>
std::vector<Scalar> gradient_of_input(const BackwardPlan& plan, const Inputs<Scalar>& x, Index i,
                                      BatchAdjoints<Scalar>& adjoints) {
  const Index channels = x.channels();
  std::vector<Scalar> gradient(x[i].size(), Scalar{0});
  RecordAdjoint<Scalar>& record = adjoints.inputs[static_cast<std::size_t>(i)];
  for (const auto& [node, vector_place] : plan.sources) {
    std::span<const Scalar> adjoint;
    if (vector_place) {
      const auto row = adjoints.vectors[*vector_place].row(i);
      adjoint = {row.data(), static_cast<std::size_t>(row.size())};
    } else {
      const Index numbers = record.layout->channels[node] * record.layout->positions[node];
      adjoint = {record.features(node, 0), static_cast<std::size_t>(numbers)};
    }
    if (is_taken_as_it_is(plan, x, i, node)) {
      std::transform(adjoint.begin(), adjoint.end(), gradient.begin(), gradient.begin(), std::plus<>{});
      continue;
    }
    add_feature_adjoint(x[i], x.shape(i), channels, transforms_of(plan, node), x.mask(i),
                        std::vector<double>(adjoint.begin(), adjoint.end()), gradient.data());
  }
  // The network does not read masked positions, so the derivatives there are 0, whatever rounding left.
  const auto counts = x.mask(i);
  for (std::size_t a = 0; a < counts.size(); ++a)
    if (counts[a] == 0)
      std::fill_n(gradient.begin() + static_cast<std::ptrdiff_t>(a) * channels, channels, Scalar{0});
  return gradient;
}

/// Copies the gradient of one input, of its own sizes, into a batch padded to the largest sizes.
template <typename Scalar>
void put_input(const std::vector<Scalar>& from, const Index3& own, const Index3& largest, Index channels,
               Scalar* to) {
  const Scalar* row = from.data();
  for (Index a = 0; a < own[0]; ++a)
    for (Index b = 0; b < own[1]; ++b) {
      std::copy_n(row, own[2] * channels, to + (a * largest[1] + b) * largest[2] * channels);
      row += own[2] * channels;
    }
}

}  // namespace

template <typename Scalar>
xt::xarray<Scalar> input_gradient(const BackwardPlan& plan, const Inputs<Scalar>& x,
                                  BatchAdjoints<Scalar>& adjoints) {
  const Shape largest = largest_sizes(x);
  std::vector<std::size_t> dimensions{static_cast<std::size_t>(x.size())};
  dimensions.insert(dimensions.end(), largest.begin(), largest.end());
  dimensions.push_back(static_cast<std::size_t>(x.channels()));
  // For networks of vectors the adjoints of the rows already are the gradient.
  if (plan.sources.size() == 1 && is_taken_as_it_is(plan, x, 0, plan.sources[0].node)) {
    const Matrix<Scalar>& vectors = adjoints.vectors[0];
    xt::xarray<Scalar> gradient = xt::xarray<Scalar>::from_shape(dimensions);
    std::copy_n(vectors.data(), vectors.size(), gradient.data());
    return gradient;
  }
  xt::xarray<Scalar> gradient = xt::zeros<Scalar>(dimensions);
  const Index3 sizes = three_axes(largest);
  for (Index i = 0; i < x.size(); ++i)
    put_input(gradient_of_input(plan, x, i, adjoints), three_axes(x.shape(i)), sizes, x.channels(),
              gradient.data() + i * product(sizes) * x.channels());
  return gradient;
}

template struct BatchRecords<float>;
template struct BatchRecords<double>;
template struct BatchAdjoints<float>;
template struct BatchAdjoints<double>;
template xt::xarray<float> input_gradient(const BackwardPlan&, const Inputs<float>&, BatchAdjoints<float>&);
template xt::xarray<double> input_gradient(const BackwardPlan&, const Inputs<double>&,
                                           BatchAdjoints<double>&);

}  // namespace widelimit

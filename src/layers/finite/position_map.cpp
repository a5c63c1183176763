#include "layers/finite/position_map.hpp"

#include <Eigen/SparseCore>
#include <optional>

namespace widelimit::finite {
namespace {

template <typename Scalar>
using Sparse = Eigen::SparseMatrix<Scalar, Eigen::RowMajor>;

/// The matrix over all positions, in row-major order of the axes: the Kronecker product of the maps of the axes.
template <typename Scalar>
Sparse<Scalar> whole_matrix(const std::vector<layers::AxisMap>& maps) {
  struct Entry {
    Index row, column;
    double weight;
  };
  // Begins with the map of no axes, of one position, and multiplies one axis on after the other.
  std::vector<Entry> entries{{0, 0, 1}};
  Index rows = 1, columns = 1;
  for (const layers::AxisMap& map : maps) {
    std::vector<Entry> wider;
    for (const Entry& entry : entries)
      for (Index a = 0; a < map.rows(); ++a)
        for (Index t = 0; t < map.width; ++t)
          if (const double weight = map.weights[static_cast<std::size_t>(a * map.width + t)]; weight != 0)
            wider.push_back({entry.row * map.rows() + a,
                             entry.column * map.columns + map.first[static_cast<std::size_t>(a)] + t,
                             entry.weight * weight});
    entries = std::move(wider);
    rows *= map.rows();
    columns *= map.columns;
  }
  std::vector<Eigen::Triplet<Scalar, Index>> triplets;
  triplets.reserve(entries.size());
  for (const Entry& entry : entries)
    triplets.emplace_back(entry.row, entry.column, static_cast<Scalar>(entry.weight));
  Sparse<Scalar> matrix(rows, columns);
  matrix.setFromTriplets(triplets.begin(), triplets.end());
  return matrix;
}

/// The layer is linear and has no parameters, so it leaves nothing on the tape.
template <typename Scalar>
class PositionMapping final : public FiniteLayer<Scalar> {
 public:
  PositionMapping(const Site& site, const layers::PositionMapPointer& map, OneAxisLeaves one_axis)
      : input_{site.input.shape},
        output_{map->output_shape(site.input.shape), site.input.channels},
        matrix_(whole_matrix<Scalar>(map->axis_maps(site.input.shape))) {
    if (one_axis == OneAxisLeaves::vectors && input_.size() == 1) output_.shape.clear();
  }

  Form output() const override { return output_; }

  Activations<Scalar> forward(const Scalar*, Activations<Scalar> input, Tape<Scalar>&) const override {
    return mapped(matrix_, input, output_.shape);
  }

  Activations<Scalar> backward(const Scalar*, const Tape<Scalar>&, Activations<Scalar> gradient,
                               GradientSink<Scalar>&) const override {
    return mapped(Sparse<Scalar>(matrix_.transpose()), gradient, input_);
  }

  Activations<Scalar> tangent(const Scalar*, const Tape<Scalar>&, Activations<Scalar> direction,
                              const Scalar*) const override {
    return mapped(matrix_, direction, output_.shape);
  }

 private:
  // Every channel of every input is mapped alike.
  static Activations<Scalar> mapped(const Sparse<Scalar>& matrix, const Activations<Scalar>& batch,
                                    const Shape& shape) {
    Matrix<Scalar> values(batch.inputs * matrix.rows(), batch.values.cols());
    for (Index i = 0; i < batch.inputs; ++i)
      values.middleRows(i * matrix.rows(), matrix.rows()) =
          matrix * batch.values.middleRows(i * matrix.cols(), matrix.cols());
    return batch.with(std::move(values), shape);
  }

  Shape input_;
  Form output_;
  Sparse<Scalar> matrix_;
};

/// A map, then a convolution, whose tape and parameters are those of the layer, and then perhaps another map.
template <typename Scalar>
class MappedConvolution final : public FiniteLayer<Scalar> {
 public:
  MappedConvolution(const Site& site, const layers::PositionMapPointer& map,
                    const CounterpartPointer& convolution, const layers::PositionMapPointer& behind)
      : map_(site, map, OneAxisLeaves::positions) {
    Site between = site;
    between.input = map_.output();
    if constexpr (std::is_same_v<Scalar, float>)
      convolution_ = convolution->make_float(between);
    else
      convolution_ = convolution->make_double(between);
    if (!behind) return;
    between.input = convolution_->output();
    behind_.emplace(between, behind, OneAxisLeaves::positions);
  }

  Form output() const override { return behind_ ? behind_->output() : convolution_->output(); }
  Index parameter_count() const override { return convolution_->parameter_count(); }
  void initialise(Scalar* parameters) const override { convolution_->initialise(parameters); }

  Activations<Scalar> forward(const Scalar* parameters, Activations<Scalar> input,
                              Tape<Scalar>& tape) const override {
    auto values = convolution_->forward(parameters, map_.forward(nullptr, std::move(input), tape), tape);
    return behind_ ? behind_->forward(nullptr, std::move(values), tape) : values;
  }

  Activations<Scalar> backward(const Scalar* parameters, const Tape<Scalar>& tape,
                               Activations<Scalar> gradient, GradientSink<Scalar>& sink) const override {
    if (behind_) gradient = behind_->backward(nullptr, tape, std::move(gradient), sink);
    return map_.backward(nullptr, tape, convolution_->backward(parameters, tape, std::move(gradient), sink),
                         sink);
  }

  Activations<Scalar> tangent(const Scalar* parameters, const Tape<Scalar>& tape,
                              Activations<Scalar> direction,
                              const Scalar* parameter_direction) const override {
    auto values = convolution_->tangent(
        parameters, tape, map_.tangent(nullptr, tape, std::move(direction), nullptr), parameter_direction);
    return behind_ ? behind_->tangent(nullptr, tape, std::move(values), nullptr) : values;
  }

 private:
  PositionMapping<Scalar> map_;
  std::unique_ptr<FiniteLayer<Scalar>> convolution_;
  std::optional<PositionMapping<Scalar>> behind_;
};

}  // namespace

CounterpartPointer position_map_counterpart(layers::PositionMapPointer map, OneAxisLeaves one_axis) {
  return finite_counterpart<PositionMapping>(OutputChannels::kept, std::move(map), one_axis);
}

CounterpartPointer mapped_convolution_counterpart(layers::PositionMapPointer map,
                                                  CounterpartPointer convolution,
                                                  layers::PositionMapPointer behind) {
  return finite_counterpart<MappedConvolution>(OutputChannels::chosen, std::move(map), std::move(convolution),
                                               std::move(behind));
}

}  // namespace widelimit::finite

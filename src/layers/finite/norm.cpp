#include "layers/finite/norm.hpp"

#include "network/graph.hpp"

namespace widelimit::finite {
namespace {

/// The norm of layers::NormOptions. Its tape has the output and the inverse roots.
template <typename Scalar>
class Norm final : public FiniteLayer<Scalar> {
 public:
  Norm(const Site& site, Centring centring, const layers::NormOptions& options)
      : form_{site.input}, norm_(centring, options.epsilon) {
    const NormedAxes axes{options.axes == layers::NormAxes::channels_and_space, options.spatial_axes};
    const auto groups = axes.groups(site.input.shape);
    row_length_ = site.input.channels * static_cast<Index>(groups.front().size());
    if (axes.some.empty()) return;
    for (const auto& group : groups) order_.insert(order_.end(), group.begin(), group.end());
  }

  Form output() const override { return form_; }

  Activations<Scalar> forward(const Scalar*, Activations<Scalar> input, Tape<Scalar>& tape) const override {
    Matrix<Scalar> grouped = in_groups(std::move(input.values));
    Matrix<Scalar> roots = norm_.normalise(rows(grouped));
    tape.saved = {grouped, std::move(roots)};
    return input.with(in_places(std::move(grouped)));
  }

  Activations<Scalar> backward(const Scalar*, const Tape<Scalar>& tape, Activations<Scalar> gradient,
                               GradientSink<Scalar>&) const override {
    return differentiated(tape, std::move(gradient));
  }

  Activations<Scalar> tangent(const Scalar*, const Tape<Scalar>& tape, Activations<Scalar> direction,
                              const Scalar*) const override {
    return differentiated(tape, std::move(direction));
  }

 private:
  Activations<Scalar> differentiated(const Tape<Scalar>& tape, Activations<Scalar> direction) const {
    Matrix<Scalar> grouped = in_groups(std::move(direction.values));
    norm_.differentiate(rows(tape.saved[0]), tape.saved[1], rows(grouped));
    return direction.with(in_places(std::move(grouped)));
  }

  /// Reorders positions such that those which are normalised together follow one another, input by input.
  Matrix<Scalar> in_groups(Matrix<Scalar> values) const {
    if (order_.empty()) return values;
    Matrix<Scalar> grouped(values.rows(), values.cols());
    for_each_place(values.rows(), [&](Index place, Index row) { grouped.row(place) = values.row(row); });
    return grouped;
  }
  Matrix<Scalar> in_places(Matrix<Scalar> grouped) const {
    if (order_.empty()) return grouped;
    Matrix<Scalar> values(grouped.rows(), grouped.cols());
    for_each_place(grouped.rows(), [&](Index place, Index row) { values.row(row) = grouped.row(place); });
    return values;
  }
  template <typename Body>
  void for_each_place(Index count, const Body& body) const {
    const auto d = static_cast<Index>(order_.size());
    for (Index place = 0; place < count; ++place)
      body(place, place / d * d + order_[static_cast<std::size_t>(place % d)]);
  }

  Eigen::Map<Matrix<Scalar>> rows(Matrix<Scalar>& values) const {
    return {values.data(), values.size() / row_length_, row_length_};
  }
  Eigen::Map<const Matrix<Scalar>> rows(const Matrix<Scalar>& values) const {
    return {values.data(), values.size() / row_length_, row_length_};
  }

  Form form_;
  Index row_length_ = 1;
  std::vector<Index> order_;  ///< Positions in the order of groups; empty if they are so already.
  NormalisedRows<Scalar> norm_;
};

}  // namespace

CounterpartPointer norm_counterpart(Centring centring, const layers::NormOptions& options) {
  return finite_counterpart<Norm>(OutputChannels::kept, centring, options);
}

}  // namespace widelimit::finite

#include "finite/branch_layers.hpp"

namespace widelimit::finite {
namespace {

/// What all layers made of layers share: the parts, and where their parameters begin. Tape: theirs.
template <typename Scalar>
class Compound : public FiniteLayer<Scalar> {
 public:
  explicit Compound(Parts<Scalar> parts) : parts_{std::move(parts)} {
    for (const auto& part : parts_) {
      offsets_.push_back(parameter_count_);
      parameter_count_ += part->parameter_count();
    }
  }

  Index parameter_count() const override { return parameter_count_; }
  void initialise(Scalar* parameters) const override {
    for (std::size_t i = 0; i < count(); ++i) parts_[i]->initialise(parameters + offsets_[i]);
  }

 protected:
  [[nodiscard]] std::size_t count() const { return parts_.size(); }
  [[nodiscard]] const FiniteLayer<Scalar>& part(std::size_t i) const { return *parts_[i]; }

  Activations<Scalar> part_forward(std::size_t i, const Scalar* parameters, Activations<Scalar> input,
                                   Tape<Scalar>& tape) const {
    input.stop.check();
    return parts_[i]->forward(parameters + offsets_[i], std::move(input), tape.parts[i]);
  }
  Activations<Scalar> part_backward(std::size_t i, const Scalar* parameters, const Tape<Scalar>& tape,
                                    Activations<Scalar> gradient, GradientSink<Scalar>& sink) const {
    gradient.stop.check();
    // In the sink, too, the part's parameters begin at its offset.
    const typename GradientSink<Scalar>::Scope scope(sink, offsets_[i]);
    return parts_[i]->backward(parameters + offsets_[i], tape.parts[i], std::move(gradient), sink);
  }
  Activations<Scalar> part_tangent(std::size_t i, const Scalar* parameters, const Tape<Scalar>& tape,
                                   Activations<Scalar> direction, const Scalar* parameter_direction) const {
    direction.stop.check();
    return parts_[i]->tangent(parameters + offsets_[i], tape.parts[i], std::move(direction),
                              parameter_direction + offsets_[i]);
  }
  /// The sum of part_of(i) over all parts.
  template <typename PartOf>
  Activations<Scalar> summed(const PartOf& part_of) const {
    Activations<Scalar> total = part_of(0);
    for (std::size_t i = 1; i < count(); ++i) total.values += part_of(i).values;
    return total;
  }

 private:
  Parts<Scalar> parts_;
  std::vector<Index> offsets_;
  Index parameter_count_ = 0;
};

/// Runs layers one after another; without layers it is the identity.
template <typename Scalar>
class Sequence final : public Compound<Scalar> {
 public:
  Sequence(Form input, Parts<Scalar> parts) : Compound<Scalar>(std::move(parts)), input_{std::move(input)} {}

  Form output() const override {
    return this->count() == 0 ? input_ : this->part(this->count() - 1).output();
  }

  Activations<Scalar> forward(const Scalar* parameters, Activations<Scalar> input,
                              Tape<Scalar>& tape) const override {
    tape.parts.resize(this->count());
    for (std::size_t i = 0; i < this->count(); ++i)
      input = this->part_forward(i, parameters, std::move(input), tape);
    return input;
  }

  Activations<Scalar> backward(const Scalar* parameters, const Tape<Scalar>& tape,
                               Activations<Scalar> gradient, GradientSink<Scalar>& sink) const override {
    for (std::size_t i = this->count(); i-- > 0;)
      gradient = this->part_backward(i, parameters, tape, std::move(gradient), sink);
    return gradient;
  }

  Activations<Scalar> tangent(const Scalar* parameters, const Tape<Scalar>& tape,
                              Activations<Scalar> direction,
                              const Scalar* parameter_direction) const override {
    for (std::size_t i = 0; i < this->count(); ++i)
      direction = this->part_tangent(i, parameters, tape, std::move(direction), parameter_direction);
    return direction;
  }

 private:
  Form input_;
};

/// Adds up the branches' outputs times their scales.
template <typename Scalar>
class Sum final : public Compound<Scalar> {
 public:
  Sum(Parts<Scalar> branches, const std::vector<double>& scales)
      : Compound<Scalar>(std::move(branches)), scales_(scales.begin(), scales.end()) {}

  Form output() const override { return this->part(0).output(); }

  Activations<Scalar> forward(const Scalar* parameters, Activations<Scalar> input,
                              Tape<Scalar>& tape) const override {
    tape.parts.resize(this->count());
    return added([&](std::size_t i) { return this->part_forward(i, parameters, input, tape); });
  }

  Activations<Scalar> backward(const Scalar* parameters, const Tape<Scalar>& tape,
                               Activations<Scalar> gradient, GradientSink<Scalar>& sink) const override {
    return this->summed([&](std::size_t i) {
      return this->part_backward(i, parameters, tape, gradient.with(scales_[i] * gradient.values), sink);
    });
  }

  Activations<Scalar> tangent(const Scalar* parameters, const Tape<Scalar>& tape,
                              Activations<Scalar> direction,
                              const Scalar* parameter_direction) const override {
    return added([&](std::size_t i) {
      return this->part_tangent(i, parameters, tape, direction, parameter_direction);
    });
  }

 private:
  template <typename Part>
  Activations<Scalar> added(const Part& part) const {
    Activations<Scalar> total = part(0);
    total.values *= scales_[0];
    for (std::size_t i = 1; i < this->count(); ++i) total.values += scales_[i] * part(i).values;
    return total;
  }

  std::vector<Scalar> scales_;
};

/// Tape: for every branch the product of all the other outputs, scales included.
template <typename Scalar>
class Product final : public Compound<Scalar> {
 public:
  Product(Parts<Scalar> branches, const std::vector<double>& scales) : Compound<Scalar>(std::move(branches)) {
    for (const double scale : scales) scale_ *= static_cast<Scalar>(scale);
  }

  Form output() const override { return this->part(0).output(); }

  Activations<Scalar> forward(const Scalar* parameters, Activations<Scalar> input,
                              Tape<Scalar>& tape) const override {
    tape.parts.resize(this->count());
    std::vector<Activations<Scalar>> outputs;
    for (std::size_t i = 0; i < this->count(); ++i)
      outputs.push_back(this->part_forward(i, parameters, input, tape));
    const Matrix<Scalar>& first = outputs[0].values;
    for (std::size_t i = 0; i < this->count(); ++i) {
      // The product of the others is formed anew, because the whole product divided by one
      // output fails where that is 0.
      Matrix<Scalar> others = Matrix<Scalar>::Constant(first.rows(), first.cols(), scale_);
      for (std::size_t j = 0; j < this->count(); ++j)
        if (j != i) others.array() *= outputs[j].values.array();
      tape.saved.push_back(std::move(others));
    }
    // An output times the product of the others is the product of all.
    outputs[0].values.array() *= tape.saved[0].array();
    return std::move(outputs[0]);
  }

  Activations<Scalar> backward(const Scalar* parameters, const Tape<Scalar>& tape,
                               Activations<Scalar> gradient, GradientSink<Scalar>& sink) const override {
    return this->summed([&](std::size_t i) {
      const Matrix<Scalar> share = gradient.values.cwiseProduct(tape.saved[i]);
      return this->part_backward(i, parameters, tape, gradient.with(share), sink);
    });
  }

  Activations<Scalar> tangent(const Scalar* parameters, const Tape<Scalar>& tape,
                              Activations<Scalar> direction,
                              const Scalar* parameter_direction) const override {
    return this->summed([&](std::size_t i) {
      auto part = this->part_tangent(i, parameters, tape, direction, parameter_direction);
      part.values.array() *= tape.saved[i].array();
      return part;
    });
  }

 private:
  Scalar scale_ = 1;
};

/// Puts the channels of the branches side by side.
template <typename Scalar>
class Concatenation final : public Compound<Scalar> {
 public:
  explicit Concatenation(Parts<Scalar> branches) : Compound<Scalar>(std::move(branches)) {
    for (std::size_t i = 0; i < this->count(); ++i) {
      first_channel_.push_back(channels_);
      channels_ += this->part(i).output().channels;
    }
  }

  Form output() const override { return {this->part(0).output().shape, channels_}; }

  Activations<Scalar> forward(const Scalar* parameters, Activations<Scalar> input,
                              Tape<Scalar>& tape) const override {
    tape.parts.resize(this->count());
    return joined(input, [&](std::size_t i) { return this->part_forward(i, parameters, input, tape); });
  }

  Activations<Scalar> backward(const Scalar* parameters, const Tape<Scalar>& tape,
                               Activations<Scalar> gradient, GradientSink<Scalar>& sink) const override {
    return this->summed([&](std::size_t i) {
      const Index channels = this->part(i).output().channels;
      const Matrix<Scalar> share = gradient.values.middleCols(first_channel_[i], channels);
      return this->part_backward(i, parameters, tape, gradient.with(share), sink);
    });
  }

  Activations<Scalar> tangent(const Scalar* parameters, const Tape<Scalar>& tape,
                              Activations<Scalar> direction,
                              const Scalar* parameter_direction) const override {
    return joined(direction, [&](std::size_t i) {
      return this->part_tangent(i, parameters, tape, direction, parameter_direction);
    });
  }

 private:
  template <typename Part>
  Activations<Scalar> joined(const Activations<Scalar>& input, const Part& part) const {
    const Shape shape = output().shape;
    auto all = input.with(Matrix<Scalar>(input.inputs * position_count(shape), channels_), shape);
    for (std::size_t i = 0; i < this->count(); ++i)
      all.values.middleCols(first_channel_[i], this->part(i).output().channels) = part(i).values;
    return all;
  }

  std::vector<Index> first_channel_;
  Index channels_ = 0;
};

/// Puts branches side by side along an axis of positions. All positions before the axis are rows of a matrix, in which
/// each branch has a block of columns.
template <typename Scalar>
class PositionConcatenation final : public Compound<Scalar> {
 public:
  PositionConcatenation(Parts<Scalar> branches, std::size_t axis) : Compound<Scalar>(std::move(branches)) {
    output_ = this->part(0).output();
    output_.shape[axis] = 0;
    for (std::size_t i = 0; i < this->count(); ++i) output_.shape[axis] += this->part(i).output().shape[axis];
    for (std::size_t k = 0; k < axis; ++k) rows_ *= output_.shape[k];
    Index first = 0;
    for (std::size_t i = 0; i < this->count(); ++i) {
      first_.push_back(first);
      first += columns(i);
    }
  }

  Form output() const override { return output_; }

  Activations<Scalar> forward(const Scalar* parameters, Activations<Scalar> input,
                              Tape<Scalar>& tape) const override {
    tape.parts.resize(this->count());
    return joined(input, [&](std::size_t i) { return this->part_forward(i, parameters, input, tape); });
  }

  Activations<Scalar> backward(const Scalar* parameters, const Tape<Scalar>& tape,
                               Activations<Scalar> gradient, GradientSink<Scalar>& sink) const override {
    const auto all = as_rows(gradient.values, gradient.inputs);
    return this->summed([&](std::size_t i) {
      const Shape shape = this->part(i).output().shape;
      Matrix<Scalar> values(gradient.inputs * position_count(shape), output_.channels);
      as_rows(values, gradient.inputs) = all.middleCols(first_[i], columns(i));
      return this->part_backward(i, parameters, tape, gradient.with(std::move(values), shape), sink);
    });
  }

  Activations<Scalar> tangent(const Scalar* parameters, const Tape<Scalar>& tape,
                              Activations<Scalar> direction,
                              const Scalar* parameter_direction) const override {
    return joined(direction, [&](std::size_t i) {
      return this->part_tangent(i, parameters, tape, direction, parameter_direction);
    });
  }

 private:
  /// Numbers of a branch in a row.
  [[nodiscard]] Index columns(std::size_t i) const {
    const Form form = this->part(i).output();
    return position_count(form.shape) / rows_ * form.channels;
  }

  /// The numbers as a matrix: rows are inputs times the positions before the axis.
  [[nodiscard]] Eigen::Map<Matrix<Scalar>> as_rows(Matrix<Scalar>& values, Index inputs) const {
    return {values.data(), inputs * rows_, values.size() / (inputs * rows_)};
  }

  template <typename Part>
  Activations<Scalar> joined(const Activations<Scalar>& input, const Part& part) const {
    auto all = input.with(Matrix<Scalar>(input.inputs * position_count(output_.shape), output_.channels),
                          output_.shape);
    auto rows = as_rows(all.values, input.inputs);
    for (std::size_t i = 0; i < this->count(); ++i) {
      auto branch = part(i);
      rows.middleCols(first_[i], columns(i)) = as_rows(branch.values, input.inputs);
    }
    return all;
  }

  Form output_;
  Index rows_ = 1;
  std::vector<Index> first_;
};

}  // namespace

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_sequence(const Form& input, Parts<Scalar> parts) {
  return std::make_unique<Sequence<Scalar>>(input, std::move(parts));
}

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_sum(Parts<Scalar> branches, const std::vector<double>& scales) {
  return std::make_unique<Sum<Scalar>>(std::move(branches), scales);
}

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_product(Parts<Scalar> branches, const std::vector<double>& scales) {
  return std::make_unique<Product<Scalar>>(std::move(branches), scales);
}

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_concatenation(Parts<Scalar> branches) {
  return std::make_unique<Concatenation<Scalar>>(std::move(branches));
}

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_position_concatenation(Parts<Scalar> branches, std::size_t axis) {
  return std::make_unique<PositionConcatenation<Scalar>>(std::move(branches), axis);
}

template std::unique_ptr<FiniteLayer<float>> make_sequence(const Form&, Parts<float>);
template std::unique_ptr<FiniteLayer<double>> make_sequence(const Form&, Parts<double>);
template std::unique_ptr<FiniteLayer<float>> make_sum(Parts<float>, const std::vector<double>&);
template std::unique_ptr<FiniteLayer<double>> make_sum(Parts<double>, const std::vector<double>&);
template std::unique_ptr<FiniteLayer<float>> make_product(Parts<float>, const std::vector<double>&);
template std::unique_ptr<FiniteLayer<double>> make_product(Parts<double>, const std::vector<double>&);
template std::unique_ptr<FiniteLayer<float>> make_concatenation(Parts<float>);
template std::unique_ptr<FiniteLayer<float>> make_position_concatenation(Parts<float>, std::size_t);
template std::unique_ptr<FiniteLayer<double>> make_position_concatenation(Parts<double>, std::size_t);
template std::unique_ptr<FiniteLayer<double>> make_concatenation(Parts<double>);

}  // namespace widelimit::finite

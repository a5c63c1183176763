// What a user's pair stage may do wrong, and what the errors say.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_vjp.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

/// Copies the covariance. It may claim another shape, and leave entry (last, last) out of one of the kernels.
class CarelessStage final : public PairStageOf<CarelessStage> {
 public:
  enum class Forgets { nothing, nngp, ntk };
  explicit CarelessStage(Forgets forgets) : forgets_{forgets} {}
  explicit CarelessStage(Shape shape) : shape_{std::move(shape)}, changes_shape_{true} {}

  StageRules rules() const override { return {.leaves = StageRules::Leaves::as_it_was}; }
  Shape output_shape(const Shape& input) const override { return changes_shape_ ? shape_ : input; }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}
  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const Index last = pair.nngp.rows() - 1;
    const auto copy = [&](const auto& from, auto& to, bool forgets) {
      for (Index i = 0; i < from.rows(); ++i)
        for (Index j = 0; j < from.cols(); ++j)
          if (!(forgets && i == last && j == last)) to(i, j) = from(i, j);
    };
    copy(pair.nngp, result.nngp, forgets_ == Forgets::nngp);
    copy(pair.ntk, result.ntk, forgets_ == Forgets::ntk);
  }
  template <typename Scalar>
  void adjoint_pair(const PairView<Scalar>&, const PairAdjoint<Scalar>& adjoint) const {
    Eigen::Map<Matrix<Scalar>> nngp = adjoint.nngp, ntk = adjoint.ntk;
    nngp += adjoint.nngp_after;
    if (ntk.size() > 0) ntk += adjoint.ntk_after;
  }

 private:
  Shape shape_;
  bool changes_shape_ = false;
  Forgets forgets_ = Forgets::nothing;
};

const Layer filter = conv({.filter = {3}, .weight_variance = 1.5});

Network with_stage(CarelessStage stage) {
  return Network({filter, pair_layer("careless", std::make_shared<CarelessStage>(std::move(stage))), filter,
                  global_average_pool(), dense()});
}

std::string gram_error(const Network& network) {
  return error_message<Error>([&] { static_cast<void>(gram<double>(network, random_inputs(1, {2, 4, 3}))); });
}

TEST_CASE("a pair stage whose output shape is none is an error that names layer and shape") {
  for (const Shape& shape : {Shape{-1}, Shape{0}, Shape{2, -3}, Shape{1, 1, 1, 1}}) {
    const std::string message = gram_error(with_stage(CarelessStage(shape)));
    CAPTURE(message);
    CHECK(message.find("output_shape() must have at most 3 axes of at least one position each, got") !=
          std::string::npos);
    CHECK(message.find("layers[1]") != std::string::npos);
    CHECK(message.find(std::to_string(shape[0])) != std::string::npos);
  }
}

TEST_CASE("entries that a pair stage does not write are named") {
  using Forgets = CarelessStage::Forgets;
  CHECK_NOTHROW(static_cast<void>(
      gram<double>(with_stage(CarelessStage(Forgets::nothing)), random_inputs(1, {2, 4, 3}))));
  for (const auto& [forgets, name] : {std::pair{Forgets::nngp, "NNGP"}, {Forgets::ntk, "NTK"}}) {
    const Network network = with_stage(CarelessStage(forgets));
    const std::string expected = std::string("the stage's apply() did not write entry (3, 3) of the ") +
                                 name + " [4, 4], of which all entries";
    CAPTURE(gram_error(network));
    CHECK(gram_error(network).find(expected) != std::string::npos);
    CHECK(gram_error(network).find("layers[1]") != std::string::npos);
    const auto of_float = error_message<Error>([&] {
      static_cast<void>(gram<float>(network, random_inputs<float>(1, {2, 4, 3})));
    });
    CHECK(of_float == gram_error(network));
    const Matrix<double> ones = Matrix<double>::Ones(2, 2);
    const auto of_vjp = error_message<Error>([&] {
      static_cast<void>(gram_vjp<double>(network, random_inputs(1, {2, 4, 3}), {ones, ones}));
    });
    CAPTURE(of_vjp);
    CHECK(of_vjp.find(expected) != std::string::npos);
  }
}

TEST_CASE("entries that a pair stage does not write are named without positions and on the diagonal alone") {
  using Forgets = CarelessStage::Forgets;
  const Layer stage = pair_layer("careless", std::make_shared<CarelessStage>(Forgets::ntk));
  const auto of_vectors = error_message<Error>([&] {
    static_cast<void>(gram<double>(Network({dense(), stage, dense()}), random_inputs(1, {2, 3})));
  });
  CAPTURE(of_vectors);
  CHECK(of_vectors.find("did not write entry (0, 0) of the NTK [1, 1]") != std::string::npos);
  const auto of_flatten = gram_error(Network({filter, stage, flatten(), dense()}));
  CAPTURE(of_flatten);
  CHECK(of_flatten.find("did not write entry (3, 3) of the NTK [4, 4], of which the diagonal is wanted") !=
        std::string::npos);
}

}  // namespace
}  // namespace widelimit::testing

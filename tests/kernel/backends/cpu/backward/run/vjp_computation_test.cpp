// The backward pass of whole Gram matrices: one part of them against another, on any number of threads.
#include "kernel/backends/cpu/backward/run/vjp_computation.hpp"

#include <doctest/doctest.h>

#include "kernel/run/gram_run.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::vjp_computation_test {
namespace {

Matrix<double> random_cotangent(unsigned seed, Index rows, Index columns) {
  const auto numbers = random_inputs(seed, {rows, columns});
  return Eigen::Map<const Matrix<double>>(numbers.data(), rows, columns);
}

/// One batch, and the gradients by it of parts of its Gram matrix.
class BatchGradient {
 public:
  BatchGradient(const std::string& layers, const std::vector<Index>& dimensions)
      : x_(random_inputs(31, dimensions)),
        plan_{make_backward_plan(parse_network(R"({"widelimit": 1, "layers": )" + layers + "}"),
                                 {shapes_of(x_, "x"), shapes_of(x_, "x"), x_.channels(), InputMasks::absent},
                                 true)} {}

  [[nodiscard]] Index size() const { return x_.size(); }

  /// `run(computation, left, right)`: some pairs.
  template <typename Chain>
  xt::xarray<double> gradient(int threads, const Chain& run) const {
    RunControl control;
    control.threads = threads;
    RecordedBatch<double> batch(plan_, x_, "x", {});
    VjpComputation<double> computation(plan_, control);
    computation.record(batch);
    BatchAdjoints<double> adjoints(batch.records), as_right(batch.records);
    const TileBatch<double> left{x_, batch.records, adjoints}, right{x_, batch.records, as_right};
    run(computation, left, right);
    adjoints.add(as_right);
    computation.self_backward(left);
    return input_gradient(plan_, x_, adjoints);
  }
  [[nodiscard]] xt::xarray<double> symmetric(const KernelCotangents<double>& cotangents,
                                             int threads = 1) const {
    return gradient(threads, [&](auto& computation, const auto& left, const auto& right) {
      computation.symmetric(left, right, cotangents);
    });
  }
  [[nodiscard]] xt::xarray<double> diagonal(const KernelCotangents<double>& cotangents) const {
    return gradient(1, [&](auto& computation, const auto& left, const auto& right) {
      computation.diagonal(left, right, cotangents);
    });
  }

 private:
  Inputs<double> x_;
  BackwardPlan plan_;
};

void check_near(const xt::xarray<double>& one, const xt::xarray<double>& other) {
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK(one.flat(i) == doctest::Approx(other.flat(i)).epsilon(1e-11).scale(1e-3));
}

const std::string images = R"([{"layer": "conv", "filter": [3, 3], "weight_variance": 2}, {"layer": "relu"},
  {"layer": "conv", "filter": [3, 3], "strides": [2, 1]}, {"layer": "erf"}, {"layer": "global_average_pool"}])";
const std::string vectors =
    R"([{"layer": "dense", "weight_variance": 2}, {"layer": "relu"}, {"layer": "dense"}, {"layer": "erf"}])";

TEST_CASE("VjpComputation: the bits do not depend on the threads") {
  for (const BatchGradient& batch : {BatchGradient(images, {20, 4, 3, 2}), BatchGradient(vectors, {40, 5})}) {
    const KernelCotangents<double> cotangents{random_cotangent(1, batch.size(), batch.size()),
                                              random_cotangent(2, batch.size(), batch.size())};
    const xt::xarray<double> one = batch.symmetric(cotangents, 1), three = batch.symmetric(cotangents, 3);
    CHECK(one == three);
  }
}

TEST_CASE("VjpComputation: the diagonal is the whole matrix with cotangents on its diagonal alone") {
  for (const BatchGradient& batch : {BatchGradient(images, {5, 4, 3, 2}), BatchGradient(vectors, {7, 5})}) {
    const Matrix<double> nngp = random_cotangent(3, batch.size(), 1),
                         ntk = random_cotangent(4, batch.size(), 1);
    const Matrix<double> whole_nngp = nngp.col(0).asDiagonal(), whole_ntk = ntk.col(0).asDiagonal();
    check_near(batch.diagonal({nngp, ntk}), batch.symmetric({whole_nngp, whole_ntk}));
  }
}

TEST_CASE("VjpComputation: only the symmetric part of the cotangents counts") {
  const BatchGradient batch(images, {6, 4, 3, 2});
  const Matrix<double> cotangent = random_cotangent(5, 6, 6);
  const Matrix<double> turned = cotangent.transpose(), symmetric = (cotangent + turned) / 2;
  check_near(batch.symmetric({cotangent, turned}), batch.symmetric({symmetric, symmetric}));
}

TEST_CASE("VjpComputation: gradients are linear in the cotangents") {
  const BatchGradient batch(vectors, {6, 4});
  const Matrix<double> one = random_cotangent(6, 6, 6), other = random_cotangent(7, 6, 6);
  const Matrix<double> sum = 2 * one - other;
  const xt::xarray<double> expected = 2 * batch.symmetric({one, {}}) - batch.symmetric({other, {}});
  check_near(batch.symmetric({sum, {}}), expected);
}

TEST_CASE("VjpComputation: progress counts every pair") {
  const Inputs<double> x(random_inputs(8, {9, 3}));
  const BackwardPlan plan =
      make_backward_plan(parse_network(R"({"widelimit": 1, "layers": )" + vectors + "}"),
                         {shapes_of(x, "x"), shapes_of(x, "x"), 3, InputMasks::absent}, true);
  RunControl control;
  std::vector<std::pair<Index, Index>> reports;
  control.progress = [&](Index done, Index total) { reports.emplace_back(done, total); };
  RecordedBatch<double> batch(plan, x, "x", {});
  VjpComputation<double> computation(plan, control);
  computation.record(batch);
  BatchAdjoints<double> adjoints(batch.records), as_right(batch.records);
  computation.symmetric({x, batch.records, adjoints}, {x, batch.records, as_right},
                        {random_cotangent(9, 9, 9), {}});
  REQUIRE_FALSE(reports.empty());
  CHECK(reports.back() == std::pair<Index, Index>(45, 45));
}

}  // namespace
}  // namespace widelimit::testing::vjp_computation_test

#include "widelimit/gp/stored_operator.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "data/temporary_folder.hpp"
#include "gp/problem.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/iterative_regression.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/store/gram_store.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using store::GramStore;
using store::StoredGram;

namespace {

Network small_network() {
  using namespace layers;
  return Network({conv({{3, 3}, {}, Padding::same, 1.5, 0.1}), relu(), global_average_pool(), dense()});
}

template <typename Scalar>
Inputs<Scalar> small_images(Index count, unsigned seed) {
  return Inputs<Scalar>(xt::xarray<Scalar>(testing::random_inputs(seed, {count, 4, 4, 2})));
}

/// Stores of n = 23 inputs in tiles of 7, and of 9 others with them.
template <typename Scalar>
struct Stores {
  TemporaryFolder folder;
  Inputs<Scalar> x = small_images<Scalar>(23, 1), others = small_images<Scalar>(9, 2);

  [[nodiscard]] std::shared_ptr<const StoredGram> train() const {
    static_cast<void>(
        GramStore<Scalar>(folder.path() / "train", small_network(), x, {.tile_side = 7}).compute());
    return std::make_shared<const StoredGram>(folder.path() / "train");
  }
  [[nodiscard]] std::shared_ptr<const StoredGram> cross() const {
    static_cast<void>(
        GramStore<Scalar>(folder.path() / "cross", small_network(), others, x, {.tile_side = 4}).compute());
    return std::make_shared<const StoredGram>(folder.path() / "cross");
  }
};

}  // namespace

TEST_CASE("stored operator: multiplies as the matrix does, for stores of float and double") {
  const auto check = [](auto scalar) {
    using Scalar = decltype(scalar);
    const Stores<Scalar> stores;
    const StoredOperator stored(stores.train(), "ntk");
    const Matrix<double> k = gram(small_network(), stores.x).ntk.template cast<double>();
    const Matrix<double> v = random_matrix(23, 5, 7);
    CHECK(stored.size() == 23);
    CHECK(relative_difference(stored.multiply(v), k * v) < 1e-14);
    CHECK((stored.diagonal() - k.diagonal()).isZero(0));
    const std::vector<Index> chosen{22, 0, 8};
    CHECK((stored.columns(chosen) - k(Eigen::all, chosen)).isZero(0));
    CHECK(stored.epsilon() == std::numeric_limits<Scalar>::epsilon());
  };
  check(float{});
  check(double{});
}

TEST_CASE("stored operator: the same bits for any number of threads") {
  const Stores<float> stores;
  const auto train = stores.train();
  const Matrix<double> v = random_matrix(23, 5, 9);
  const std::vector<Index> chosen{3, 21, 9};
  const StoredOperator alone(train, "nngp", 1);
  const Matrix<double> product = alone.multiply(v), columns = alone.columns(chosen);
  for (const int threads : {0, 2, 3, 8}) {
    CAPTURE(threads);
    const StoredOperator stored(train, "nngp", threads);
    for (int turn = 0; turn < 5; ++turn) CHECK(stored.multiply(v) == product);
    CHECK(stored.columns(chosen) == columns);
  }
  CHECK_THROWS_AS(StoredOperator(train, "nngp", -1), ArgumentError);
}

TEST_CASE("stored operator: predictions from stores are those of the matrices") {
  const Stores<double> stores;
  const auto ntk = std::make_shared<const StoredOperator>(stores.train(), "ntk");
  const CrossGram cross = stored_cross_gram(stores.cross(), "ntk");
  const Matrix<double> y = random_matrix(23, 2, 8);
  const Noise noise = RelativeRegulariser(1e-2);
  const auto found = IterativeRegression::fit(ntk, y, noise);
  const auto expected = Regression::fit(gram(small_network(), stores.x).ntk, y, noise);
  const Matrix<double> k = gram(small_network(), stores.others, stores.x).ntk;
  const Vector<double> prior = gram_diagonal(small_network(), stores.others).ntk.col(0);
  CHECK(relative_difference(found.mean(cross), expected.mean(k)) < 1e-8);
  CHECK(relative_difference(found.variance(cross, prior), expected.variance(k, prior)) < 1e-8);
}

TEST_CASE("stored operator: what is not there is an error") {
  const Stores<float> stores;
  CHECK_THROWS_AS(StoredOperator(stores.cross(), "ntk"), ArgumentError);
  CHECK_THROWS_AS(StoredOperator(stores.train(), "ntk_error"), ArgumentError);
  CHECK_THROWS_AS((void)stored_cross_gram(stores.cross(), "other"), ArgumentError);
  const StoredOperator stored(stores.train(), "nngp");
  std::filesystem::remove(stores.folder.path() / "train" / "nngp" / "c" / "1" / "2");
  CHECK_THROWS_WITH_AS((void)stored.multiply(Matrix<double>::Ones(23, 1)),
                       doctest::Contains("tile (1, 2) is not computed yet"), DataError);
}

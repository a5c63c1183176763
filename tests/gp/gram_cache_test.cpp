// Gram matrices that are kept: read where they fit, and only there.
#include "widelimit/gp/gram_cache.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>

#include "data/temporary_folder.hpp"
#include "gp/folders/file_sum.hpp"
#include "gp/problem.hpp"
#include "support/equal_checksum.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/kernel/devices.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/graphs.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/models/named_networks.hpp"
#include "widelimit/version.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using widelimit::gp_test::random_matrix;

namespace {

Network stored_network(double weight_variance = 2) {
  return models::named_network("fcn", {{"axes", 0}, {"depth", 1}, {"weight_variance", weight_variance}});
}

/// Asks a cache, with a computation that says whether it was needed.
template <typename Scalar>
GramResult<Scalar> ask(GramCache& cache, const Network& network, const Inputs<Scalar>& x,
                       const std::type_identity_t<Inputs<Scalar>>* x2, Kernels kernels,
                       bool expect_computed) {
  bool computed = false;
  const GramOptions options{.kernels = kernels};
  auto result = cache.get<Scalar>(network, x, x2, kernels, [&] {
    computed = true;
    return x2 != nullptr ? gram(network, x, *x2, options) : gram(network, x, options);
  });
  CHECK(computed == expect_computed);
  return result;
}

}  // namespace

TEST_CASE("gram cache: the same matrix comes back, a different one never") {
  const TemporaryFolder folder;
  const Matrix<double> a = random_matrix(8, 3, 1), b = random_matrix(5, 3, 2);
  const Inputs<double> x(a), other(b);
  GramCache cache(folder.path() / "grams");
  const auto first = ask(cache, stored_network(), x, nullptr, Kernels::both, true);
  const auto again = ask(cache, stored_network(), x, nullptr, Kernels::both, false);
  CHECK(again.nngp == first.nngp);
  CHECK(again.ntk == first.ntk);
  const auto one = ask(cache, stored_network(), x, nullptr, Kernels::nngp, false);
  CHECK(one.nngp == first.nngp);
  CHECK(one.ntk.size() == 0);

  ask(cache, stored_network(2.5), x, nullptr, Kernels::both, true);
  ask(cache, stored_network(), other, nullptr, Kernels::both, true);
  const auto cross = ask(cache, stored_network(), x, &other, Kernels::nngp, true);
  ask(cache, stored_network(), other, &x, Kernels::nngp, true);
  CHECK(ask(cache, stored_network(), x, &other, Kernels::nngp, false).nngp == cross.nngp);
  // What was kept with one kernel is computed again for both, and then serves both.
  ask(cache, stored_network(), x, &other, Kernels::both, true);
  ask(cache, stored_network(), x, &other, Kernels::ntk, false);
  const Matrix<float> rounded = a.cast<float>();
  ask(cache, stored_network(), Inputs<float>(rounded), nullptr, Kernels::both, true);
  const Matrix<double> sequence = random_matrix(8, 3, 1);
  const Inputs<double> as_sequences(sequence.data(), {4, 2, 3});
  ask(cache, models::named_network("conv-gap", {{"axes", 1}}), as_sequences, nullptr, Kernels::nngp, true);
  CHECK(cache.read() == 4);
  CHECK(cache.computed() == 8);
  const auto diagonal = [&](bool expect_computed) {
    bool computed = false;
    const auto result = cache.get_diagonal<double>(stored_network(), x, Kernels::nngp, [&] {
      computed = true;
      return gram_diagonal(stored_network(), x, {.kernels = Kernels::nngp});
    });
    CHECK(computed == expect_computed);
    return result.nngp;
  };
  const Matrix<double> kept = diagonal(true);
  CHECK(diagonal(false) == kept);
}

TEST_CASE("gram cache: as many inputs with other numbers are others, wherever they differ") {
  const TemporaryFolder folder;
  GramCache cache(folder.path());
  const Matrix<double> vectors = random_matrix(6, 8, 1);
  const Network pooled({layers::dense(), layers::relu(), layers::global_average_pool(), layers::dense()});
  const auto sequences = [](const Matrix<double>& x) { return Inputs<double>(x.data(), {6, 4, 2}); };
  ask(cache, stored_network(), Inputs<double>(vectors), nullptr, Kernels::nngp, true);
  ask(cache, pooled, sequences(vectors), nullptr, Kernels::nngp, true);
  for (const Index row : {0, 3, 5}) {
    Matrix<double> changed = vectors;
    changed(row, 7) += 1e-9;
    ask(cache, stored_network(), Inputs<double>(changed), nullptr, Kernels::nngp, true);
    ask(cache, pooled, sequences(changed), nullptr, Kernels::nngp, true);
  }
  ask(cache, stored_network(), Inputs<double>(vectors), nullptr, Kernels::nngp, false);
  ask(cache, pooled, sequences(vectors), nullptr, Kernels::nngp, false);
}

TEST_CASE("gram cache: inputs of equal CRC-32 are others") {
  const TemporaryFolder folder;
  GramCache cache(folder.path());
  const Matrix<double> x = random_matrix(6, 3, 1), test = random_matrix(4, 3, 2);
  Matrix<double> other = x;
  other(1, 2) = testing::of_equal_crc32(x(1, 2));
  REQUIRE((other - x).cwiseAbs().maxCoeff() > 1e-3);
  REQUIRE(sum_with(0, x.data(), sizeof(double) * 18) == sum_with(0, other.data(), sizeof(double) * 18));
  const Inputs<double> new_inputs(test), forged_inputs(other), inputs(x);
  ask(cache, stored_network(), inputs, nullptr, Kernels::both, true);
  ask(cache, stored_network(), forged_inputs, nullptr, Kernels::both, true);
  ask(cache, stored_network(), new_inputs, &inputs, Kernels::both, true);
  ask(cache, stored_network(), new_inputs, &forged_inputs, Kernels::both, true);
}

TEST_CASE(
    "gram cache: what another version kept is refused, and told how to be made anew; 0.2.0 is gone on with") {
  const TemporaryFolder folder;
  const Matrix<double> a = random_matrix(8, 3, 1);
  const Inputs<double> x(a);
  const auto refused = [&](const std::string& message) {
    GramCache cache(folder.path());
    CHECK_THROWS_WITH_AS((void)ask(cache, stored_network(), x, nullptr, Kernels::nngp, false),
                         doctest::Contains(message.c_str()), DataError);
  };
  {
    GramCache cache(folder.path());
    ask(cache, stored_network(), x, nullptr, Kernels::nngp, true);
  }
  const auto document = std::filesystem::directory_iterator(folder.path())->path() / "gram.json";
  std::ifstream stream(document);
  auto json = nlohmann::json::parse(stream);
  CHECK(json["of"]["library_version"] == version);
  const auto write_as_of = [&](const char* earlier) {
    json["of"]["library_version"] = earlier;
    json.erase("crc32");
    const std::string text = json.dump();
    json["crc32"] = sum_text(sum_with(0, text.data(), text.size()));
    std::ofstream(document) << json.dump();
  };
  write_as_of("0.2.0");
  {
    GramCache cache(folder.path());
    ask(cache, stored_network(), x, nullptr, Kernels::nngp, false);
  }
  write_as_of("0.0.9");
  refused("library_version is \"0.0.9\" there and \"" + std::string(version) +
          "\" here; remove it and it is computed anew");

  const auto earlier = folder.path() / "gram-0123abcd";
  std::filesystem::create_directory(earlier);
  std::ofstream(earlier / "gram.json") << R"({"format": "widelimit Gram matrix", "format_version": 2})";
  refused("gram-0123abcd: holds a Gram matrix in format 2, expected 3; remove ");
}

TEST_CASE("gram cache: inputs that differ in masks or graphs only are others") {
  const TemporaryFolder folder;
  GramCache cache(folder.path() / "grams");
  const auto numbers = random_matrix(12, 2, 1);
  const xt::xarray<double> values =
      xt::adapt(numbers.data(), {std::size_t{3}, std::size_t{4}, std::size_t{2}});
  const Inputs<double> x(values);
  const Network pooled({layers::dense(), layers::relu(), layers::global_average_pool(), layers::dense()});
  xt::xarray<bool> holes = xt::ones<bool>({3, 4});
  holes(1, 2) = false;
  const Inputs<double> masked(x, holes);
  holes(0, 0) = false;
  ask(cache, pooled, x, nullptr, Kernels::both, true);
  ask(cache, pooled, masked, nullptr, Kernels::both, true);
  ask(cache, pooled, Inputs<double>(x, holes), nullptr, Kernels::both, true);
  ask(cache, pooled, masked, nullptr, Kernels::both, false);

  const Network graphs({layers::dense(), layers::aggregate(), layers::global_sum_pool(), layers::dense()});
  const auto with_edge = [&](double weight) {
    const std::vector<GraphEdge> edges{{0, 1, weight}};
    return Inputs<double>(x, std::vector<InputGraph>(3, InputGraph(4, edges)));
  };
  ask(cache, graphs, with_edge(1), nullptr, Kernels::both, true);
  ask(cache, graphs, with_edge(2), nullptr, Kernels::both, true);
  ask(cache, graphs, with_edge(1), nullptr, Kernels::both, false);
}

TEST_CASE("gram cache: standard errors of sampled layers come back with their matrices") {
  const TemporaryFolder folder;
  const auto numbers = random_matrix(12, 2, 1);
  const xt::xarray<double> values =
      xt::adapt(numbers.data(), {std::size_t{3}, std::size_t{4}, std::size_t{2}});
  layers::AttentionOptions attention;
  attention.scaling = layers::AttentionScaling::inverse_sqrt_width;
  attention.samples = 64;
  const Network sampled({layers::attention(attention), layers::global_average_pool(), layers::dense()});
  GramCache cache(folder.path());
  const auto first = ask(cache, sampled, Inputs<double>(values), nullptr, Kernels::both, true);
  REQUIRE(first.nngp_error.maxCoeff() > 0);
  const auto again = ask(cache, sampled, Inputs<double>(values), nullptr, Kernels::both, false);
  CHECK(again.nngp_error == first.nngp_error);
  CHECK(again.ntk_error == first.ntk_error);
  const auto one = ask(cache, sampled, Inputs<double>(values), nullptr, Kernels::nngp, false);
  CHECK(one.nngp_error == first.nngp_error);
  CHECK(one.ntk_error.size() == 0);
}

TEST_CASE("gram cache: kernels that something else was done to are others") {
  const TemporaryFolder folder;
  const Matrix<double> x = random_matrix(8, 3, 1);
  GramCache plain(folder.path()), treated(folder.path(), "mean over flips");
  ask(plain, stored_network(), Inputs<double>(x), nullptr, Kernels::nngp, true);
  ask(treated, stored_network(), Inputs<double>(x), nullptr, Kernels::nngp, true);
  ask(plain, stored_network(), Inputs<double>(x), nullptr, Kernels::nngp, false);
  ask(treated, stored_network(), Inputs<double>(x), nullptr, Kernels::nngp, false);
}

TEST_CASE("gram cache: a device's kernels are others") {
  GramOptions options;
  CHECK(treatment_of(false, options).empty());
  CHECK(treatment_of(true, options) == mean_over_flips);
  options.device = "cpu";
  CHECK(treatment_of(false, options).empty());
  options.device = "pocl";
  CHECK(treatment_of(false, options) == "computed by " + device_in_full("pocl"));
  options.exact_attention = true;
  CHECK(treatment_of(true, options) ==
        "mean over flips, exact attention, computed by " + device_in_full("pocl"));
  options.device = "no such device";
  CHECK_THROWS_AS((void)treatment_of(false, options), DeviceError);
}

TEST_CASE("gram cache: what was changed is an error") {
  const TemporaryFolder folder;
  const Matrix<double> a = random_matrix(8, 3, 1);
  const Inputs<double> x(a);
  GramCache cache(folder.path());
  ask(cache, stored_network(), x, nullptr, Kernels::nngp, true);
  const auto place = std::filesystem::directory_iterator(folder.path())->path();
  std::ofstream(place / "nngp.npy", std::ios::app) << "x";
  CHECK_THROWS_WITH_AS((void)ask(cache, stored_network(), x, nullptr, Kernels::nngp, false),
                       doctest::Contains("nngp.npy: is damaged"), DataError);
  std::filesystem::remove(place / "gram.json");
  CHECK_THROWS_WITH_AS((void)ask(cache, stored_network(), x, nullptr, Kernels::nngp, false),
                       doctest::Contains("expected gram.json"), DataError);
}

TEST_CASE("gram cache: a model fitted with kept matrices is the same") {
  const TemporaryFolder folder;
  const Matrix<double> x = random_matrix(20, 3, 3), more = random_matrix(6, 3, 4),
                       test = random_matrix(4, 3, 5);
  const LabelledInputs<double> train{Inputs<double>(x), x.leftCols(1)},
      validation{Inputs<double>(more), more.leftCols(1)};
  for (const ModelKind kind : {ModelKind::bayesian, ModelKind::trained}) {
    ModelOptions options{.kind = kind, .criterion = Criterion::mean_squared_error, .refit = true};
    const Matrix<double> expected =
        Model::fit(stored_network(), train, validation, options).mean(Inputs<double>(test));
    options.gram_folder = folder.path() / "grams";
    for (int i = 0; i < 2; ++i)
      CHECK(Model::fit(stored_network(), train, validation, options).mean(Inputs<double>(test)) == expected);
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path() / "grams"),
                      std::filesystem::directory_iterator()) == 3);
}

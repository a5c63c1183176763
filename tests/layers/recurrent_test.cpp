// Recurrent layers: identities, laws, derivatives, sampled networks. The naive kernel of the random cases computes
// them by loops of its own.
#include "widelimit/layers/recurrent.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>
#include <xtensor/xview.hpp>

#include "kernel/differences.hpp"
#include "layers/layer_errors.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/finite/check_limit.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_vjp.hpp"
#include "widelimit/kernel/laws.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/layers/positions.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::recurrent_test {
namespace {

using namespace widelimit::layers;

constexpr double w = 0.8, r = 1.3, b = 0.2;

RecurrentOptions options_of(Layer nonlinearity, RecurrentDirection direction = RecurrentDirection::forward) {
  return {w, r, b, std::move(nonlinearity), direction};
}

void check_near(const Matrix<double>& found, const Matrix<double>& expected, double tolerance = 1e-13) {
  CAPTURE(found);
  CAPTURE(expected);
  CHECK((found - expected).cwiseAbs().maxCoeff() <= tolerance * expected.cwiseAbs().maxCoeff());
}

Network last_of(const RecurrentOptions& options) {
  return Network({recurrent(options), index_position(0, -1), dense()});
}

TEST_CASE("a recurrent layer on one position is a dense layer and its nonlinearity") {
  const auto x = random_inputs(1, {4, 1, 3});
  for (const Layer& nonlinearity : {relu(), erf(), tanh()}) {
    const auto found = gram<double>(Network({recurrent(options_of(nonlinearity)), flatten(), dense()}), x),
               expected = gram<double>(Network({dense({w, b}), nonlinearity, flatten(), dense()}), x);
    check_near(found.nngp, expected.nngp);
    check_near(found.ntk, expected.ntk);
  }
}

TEST_CASE("without weights of the state positions are apart, as behind a dense layer") {
  const auto x = random_inputs(2, {3, 5, 2});
  RecurrentOptions options = options_of(erf());
  options.recurrent_variance = 0;
  const auto found = gram<double>(Network({recurrent(options), global_average_pool(), dense()}), x),
             expected = gram<double>(Network({dense({w, b}), erf(), global_average_pool(), dense()}), x);
  check_near(found.nngp, expected.nngp);
  check_near(found.ntk, expected.ntk);
}

// Tied weights have the limit of untied ones where only the last state is read: here a network of dense layers.
TEST_CASE("the last state of sequences whose inputs end after the first position is a dense network") {
  const Index d = 4;
  xt::xarray<double> x = random_inputs(3, {5, d, 3});
  for (Index t = 1; t < d; ++t) xt::view(x, xt::all(), t, xt::all()) = 0;
  const xt::xarray<double> first = xt::view(x, xt::all(), 0, xt::all());
  const auto found = gram<double>(last_of(options_of(relu())), x);
  Layers layers{dense({w, b}), relu()};
  for (Index t = 1; t < d; ++t) {
    layers.push_back(dense({r, b}));
    layers.push_back(relu());
  }
  layers.push_back(dense());
  const auto expected = gram<double>(Network(layers), first);
  check_near(found.nngp, expected.nngp);
  check_near(found.ntk, expected.ntk);
}

TEST_CASE("the opposite direction is that of the reversed sequence") {
  const auto x = random_inputs(4, {4, 6, 2});
  const xt::xarray<double> reversed =
      xt::view(x, xt::all(), xt::range(5, xt::placeholders::_, -1), xt::all());
  const Network forward({recurrent(options_of(gelu())), global_average_pool(), dense()});
  const Network backward(
      {recurrent(options_of(gelu(), RecurrentDirection::backward)), global_average_pool(), dense()});
  check_near(gram<double>(forward, x).ntk, gram<double>(backward, reversed).ntk);
  check_near(gram<double>(forward, x).nngp, gram<double>(backward, reversed).nngp);
}

TEST_CASE("masked positions are passed over") {
  const auto whole = random_inputs(5, {3, 4, 2});
  xt::xarray<double> padded = xt::zeros<double>({3, 7, 2});
  const std::vector<Index> places{1, 2, 4, 6};
  xt::xarray<bool> mask = xt::zeros<bool>({3, 7});
  for (std::size_t i = 0; i < places.size(); ++i) {
    xt::view(padded, xt::all(), places[i], xt::all()) = xt::view(whole, xt::all(), i, xt::all());
    xt::view(mask, xt::all(), places[i]) = true;
  }
  const Network network({recurrent(options_of(erf())),
                         recurrent(options_of(relu(), RecurrentDirection::backward)), global_average_pool(),
                         dense()});
  const Inputs<double> x(whole), masked(Inputs<double>(padded), mask);
  check_near(gram<double>(network, masked).ntk, gram<double>(network, x).ntk);
  check_near(gram<double>(network, masked).nngp, gram<double>(network, x).nngp);
}

// Zeros behind a sequence change none of the states before them, of which index reads one.
TEST_CASE("sequences of different lengths: a state is that of the sequence so far") {
  const auto x = random_inputs(6, {2, 5, 2});
  const Layers front{recurrent(options_of(relu())), recurrent(options_of(erf()))};
  const auto read = [&](Index position) {
    Layers layers = front;
    layers.push_back(index_position(0, position));
    layers.push_back(dense());
    return Network(layers);
  };
  const std::vector<xt::xarray<double>> both{xt::view(x, 0), xt::view(x, 1, xt::range(0, 3))};
  const auto ragged = gram<double>(read(-1), Inputs<double>(both));
  // The first input's last state, and the second one's third, as states of whole sequences.
  CHECK(ragged.ntk(0, 0) == doctest::Approx(gram<double>(read(-1), x).ntk(0, 0)).epsilon(1e-14));
  CHECK(ragged.ntk(1, 1) == doctest::Approx(gram<double>(read(2), x).ntk(1, 1)).epsilon(1e-14));
  const std::vector<xt::xarray<double>> exchanged{both[1], both[0]};
  CHECK(gram<double>(read(-1), Inputs<double>(exchanged)).ntk(0, 1) ==
        doctest::Approx(ragged.ntk(1, 0)).epsilon(1e-14));
}

TEST_CASE("derivatives of recurrent layers are those of differences") {
  for (const Layer& nonlinearity : {erf(), relu(), tanh()}) {
    const Network network({recurrent(options_of(nonlinearity)),
                           recurrent(options_of(nonlinearity, RecurrentDirection::backward)),
                           global_average_pool(), dense()});
    const auto x = random_inputs(8, {3, 4, 2});
    const Matrix<double> weights = Matrix<double>::Random(3, 3);
    const KernelCotangents<double> cotangents{weights, 2 * weights.transpose()};
    const xt::xarray<double> found = gram_vjp<double>(network, x, cotangents);
    const auto loss = [&](const xt::xarray<double>& at) {
      const auto kernels = gram<double>(network, at);
      return kernels.nngp.cwiseProduct(cotangents.nngp).sum() +
             kernels.ntk.cwiseProduct(cotangents.ntk).sum();
    };
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double step = 1e-5;
      xt::xarray<double> up = x, down = x;
      up.flat(k) += step;
      down.flat(k) -= step;
      CHECK(found.flat(k) == doctest::Approx((loss(up) - loss(down)) / (2 * step)).epsilon(2e-7));
    }
  }
}

TEST_CASE("recurrent layers keep the laws of stages, and are the limit of sampled networks") {
  const Network network({recurrent(options_of(erf())), global_average_pool(), dense()});
  const auto laws = check_laws(recurrent(options_of(relu())));
  CHECK_MESSAGE(laws.passed(), to_string(laws));
  for (const auto& limit : {finite::check_limit(network), finite::check_limit(recurrent(options_of(relu())))})
    CHECK_MESSAGE(limit.passed(), to_string(limit));
}

TEST_CASE("recurrent layers in files, and errors") {
  const Network network =
      parse_network(R"({"widelimit": 1, "layers": [{"layer": "recurrent", "weight_variance": 0.5,
    "nonlinearity": {"layer": "erf", "a": 1.2}, "direction": "backward"}, {"layer": "global_average_pool"}, {"layer": "dense"}]})");
  CHECK(parse_network(to_json(network)) == network);
  const auto message = [](const std::string& fields) {
    return error_message<Error>([&] {
      static_cast<void>(
          parse_network(R"({"widelimit": 1, "layers": [{"layer": "recurrent", )" + fields + "}]}"));
    });
  };
  CHECK(message(R"("nonlinearity": "dense")").find("nonlinearity") != std::string::npos);
  CHECK(message(R"("nonlinearity": "rellu")").find("did you mean \"relu\"?") != std::string::npos);
  CHECK(message(R"("direction": "both")").find("direction") != std::string::npos);
  CHECK(message(R"("recurrent_variance": -1)").find("recurrent_variance") != std::string::npos);
  const std::string images = error_message<NetworkError>([] {
    static_cast<void>(
        gram<double>(Network({recurrent(), flatten(), dense()}), random_inputs(1, {2, 3, 3, 1})));
  });
  CHECK(images.find("expected sequences, inputs with one axis") != std::string::npos);
}

}  // namespace
}  // namespace widelimit::testing::recurrent_test

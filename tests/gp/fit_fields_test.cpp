#include "widelimit/gp/fit_fields.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"

using namespace widelimit;
using numerics::RandomStream;
using namespace widelimit::gp;

namespace {

constexpr Door doors[] = {Door::program, Door::cpp, Door::python};

std::string refusal_of(const FitRequest& request, Door door = Door::program) {
  const auto refusal = fit_refusal(request, door);
  return refusal ? refusal->text() : "";
}

/// Any request, also one that no door can make.
FitRequest drawn_request(RandomStream& stream) {
  const auto coin = [&stream] { return stream.uniform() < 0.3; };
  FitRequest request;
  for (bool* fact : {&request.trained, &request.is_model, &request.gives_time, &request.gives_regulariser,
                     &request.gives_noise, &request.knows_noise, &request.weighs, &request.gives_candidates,
                     &request.has_amplitude, &request.refits, &request.searches, &request.relevance,
                     &request.features, &request.diagonal, &request.flips, &request.keeps_matrices,
                     &request.stores_matrices, &request.gives_residual})
    *fact = coin();
  if (coin()) request.criterion = criterion_words()[static_cast<std::size_t>(5 * stream.uniform())].second;
  if (coin()) request.solver = static_cast<Solver>(static_cast<int>(3 * stream.uniform()));
  if (coin()) request.kind = coin() ? TargetKind::classes : TargetKind::numbers;
  if (coin()) request.has_validation = coin();
  if (coin()) request.inputs = 5;
  if (coin()) request.outputs = coin() ? 3 : 10;
  return request;
}

}  // namespace

TEST_CASE("fit fields: names are different, and sentences have no braces left in any door") {
  std::set<std::string> names, options;
  for (const FitField& field : fit_fields()) {
    CAPTURE(field.name);
    CHECK(names.insert(field.name).second);
    CHECK((*field.option == '\0' || options.insert(field.option).second));
    CHECK(&fit_field(field.name) == &field);
    CHECK(field.is_flag() == field.values.hold(true) * field.values.is_checked());
    for (const Door door : doors)
      for (const std::string& text : {field.meaning, field.default_value}) {
        const std::string said = in_words_of(door, text);
        CHECK(said.find_first_of("{}") == std::string::npos);
        CHECK(!said.empty());
      }
  }
  CHECK_THROWS_AS((void)fit_field("depth"), std::out_of_range);
}

TEST_CASE("fit fields: each door has its own words") {
  CHECK(in_words_of(Door::program, "{kind=trained}, {grid}, {solver=cg}") ==
        "--kernel ntk, --candidates, --solver cg");
  CHECK(in_words_of(Door::python, "{kind=trained}, {grid}, {noise_variances}") ==
        "kind='trained', grid, noise_variance");
  CHECK(in_words_of(Door::cpp, "{kind=trained}, {grid}, {solver=cg}") ==
        "the kind trained, grid, the solver cg");
  CHECK(refusal_of({.gives_time = true}) == "--time: gradient flow needs the NTK: --kernel ntk");
  CHECK(refusal_of({.gives_time = true}, Door::python) ==
        "time: gradient flow needs the NTK: kind='trained'");
}

TEST_CASE("fit fields: what is refused, and what beside it is not") {
  using Solver::conjugate_gradients;
  CHECK(refusal_of({}).empty());
  CHECK(refusal_of({.gives_regulariser = true, .gives_noise = true})
            .starts_with("--noise-variance: expected it"));
  CHECK(refusal_of({.gives_regulariser = true, .criterion = Criterion::evidence}) ==
        "--criterion: there is nothing to choose with --regulariser");
  CHECK(refusal_of({.gives_regulariser = true, .criterion = Criterion::evidence, .searches = true}).empty());
  CHECK(refusal_of({.gives_regulariser = true, .gives_candidates = true}).starts_with("--candidates: "));
  CHECK(refusal_of({.trained = true, .criterion = Criterion::evidence}).starts_with("--criterion: trained"));
  CHECK(refusal_of({.criterion = Criterion::accuracy, .kind = TargetKind::numbers})
            .starts_with("--criterion: accuracy"));
  CHECK(refusal_of({.criterion = Criterion::accuracy, .kind = TargetKind::classes}).empty());
  CHECK(refusal_of({.criterion = Criterion::accuracy, .has_validation = false})
            .starts_with("--criterion: it is measured"));
  CHECK(refusal_of({.criterion = Criterion::evidence, .has_validation = false}).empty());
  CHECK(refusal_of({.refits = true, .has_validation = false}).starts_with("--refit: it takes validation"));
  CHECK(refusal_of({.trained = true, .weighs = true}).starts_with("--weight: they are for Bayesian"));
  CHECK(refusal_of({.knows_noise = true, .weighs = true}).starts_with("--weight: give them or"));
  CHECK(refusal_of({.relevance = true, .features = true}).starts_with("--learn-features: "));
  CHECK(refusal_of({.diagonal = true}) == "--diagonal: it is for --learn-features only");
  CHECK(refusal_of({.keeps_matrices = true, .stores_matrices = true})
            .starts_with("--store: it and --gram both keep"));
  CHECK(refusal_of({.gives_residual = true}).empty());
  CHECK(refusal_of({.is_model = true, .gives_residual = true}) == "--residual: it is for --solver cg");
  CHECK(refusal_of({.solver = conjugate_gradients}).empty());
  CHECK(refusal_of({.solver = conjugate_gradients, .has_validation = false})
            .starts_with("--solver: cg chooses the regulariser"));
  CHECK(refusal_of({.gives_regulariser = true, .solver = conjugate_gradients, .has_validation = false})
            .empty());
  CHECK(refusal_of({.solver = conjugate_gradients, .inputs = 5, .outputs = 6})
            .starts_with("--solver: cg solves for no more"));
  CHECK(refusal_of({.is_model = true, .solver = Solver::distributed}).starts_with("--solver: a model keeps"));
  CHECK(refusal_of({.solver = Solver::distributed}).empty());
  CHECK_THROWS_WITH_AS(require_fit({.diagonal = true}, Door::cpp, "Model::fit"),
                       "Model::fit: diagonal: it is for learn_features only", ArgumentError);
}

TEST_CASE("fit fields: any request is refused for the same reason in every door, in whole sentences") {
  RandomStream stream(1, 0);
  int refused = 0;
  for (int draw = 0; draw < 3000; ++draw) {
    const FitRequest request = drawn_request(stream);
    const auto first = fit_refusal(request, Door::program);
    refused += first.has_value();
    for (const Door door : doors) {
      const auto refusal = fit_refusal(request, door);
      REQUIRE(refusal.has_value() == first.has_value());
      if (refusal) CHECK(refusal->text().find_first_of("{}") == std::string::npos);
    }
  }
  CHECK(refused > 1000);
  CHECK(refused < 3000);
}

TEST_CASE("fit fields: the page's table is that of the rows") {
  std::ifstream file(WIDELIMIT_SOURCE_DIR "/docs/inference.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  REQUIRE(!page.empty());
  INFO("docs/inference.md should have these lines:\n", fit_fields_page());
  CHECK(page.find(fit_fields_page()) != std::string::npos);
}

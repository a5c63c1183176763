// Models in folders: the same bits come back, and nothing else is taken for a model.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "data/temporary_folder.hpp"
#include "gp/problem.hpp"
#include "gp/same_predictions.hpp"
#include "support/error_message.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/models/named_networks.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using widelimit::gp_test::check_same_predictions;
using widelimit::gp_test::random_matrix;

namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void put_bytes(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

/// CRC-32, as folders have it.
std::string sum_of(const std::string& bytes) {
  std::uint32_t sum = 0xffffffff;
  for (const char byte : bytes) {
    sum ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum % 2 != 0 ? 0xedb88320 : 0);
  }
  std::ostringstream text;
  text << std::hex << std::setw(8) << std::setfill('0') << ~sum;
  return text.str();
}

std::size_t entries_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

Network saved_network() { return models::named_network("fcn", {{"axes", 0}, {"depth", 1}}); }

Preprocessing some_preprocessing() {
  xt::xarray<double> images = xt::xarray<double>::from_shape({6, 2, 2, 1});
  for (std::size_t i = 0; i < images.size(); ++i) images.flat(i) = std::sin(1.7 * static_cast<double>(i * i));
  return Preprocessing::fit(PreprocessingKind::zca, images);
}

Model saved_model(const ModelOptions& options = {}) {
  const Matrix<double> x = random_matrix(14, 3, 1);
  return Model::fit(saved_network(), Inputs<double>(x), x.leftCols(2), options);
}

}  // namespace

TEST_CASE("model files: what is loaded predicts the same bits, of either kind") {
  const TemporaryFolder folder;
  const Matrix<double> test = random_matrix(4, 3, 2);
  ModelOptions options;
  options.class_names = {"a", "b"};
  options.preparation = R"({"mean":[0.1,0.2],"scope":"pixel"})";
  options.preprocessing = some_preprocessing();
  for (const ModelKind kind : {ModelKind::bayesian, ModelKind::trained}) {
    options.kind = kind;
    options.time = kind == ModelKind::trained ? 3.5 : infinite_time;
    const Model model = saved_model(options);
    model.save(folder.path() / "model");
    const Model loaded = Model::load(folder.path() / "model");
    check_same_predictions(model, loaded, Inputs<double>(test));
    CHECK(loaded.class_names() == model.class_names());
    CHECK(loaded.preparation() == model.preparation());
    CHECK(loaded.preprocessing().to_json() == model.preprocessing().to_json());
    CHECK(loaded.preprocessing().offsets() == model.preprocessing().offsets());
    CHECK(loaded.preprocessing().factors() == model.preprocessing().factors());
    CHECK(loaded.network() == model.network());
    CHECK(loaded.kind() == kind);
    CHECK(loaded.time() == model.time());
    CHECK(loaded.selections().empty());
    if (kind == ModelKind::bayesian)
      CHECK(loaded.log_marginal_likelihood() == model.log_marginal_likelihood());
  }
  CHECK(entries_in(folder.path()) == 1);  // the second replaced the first, nothing stayed behind
  options.time = infinite_time;
  saved_model(options).save(folder.path() / "converged" / "");
  CHECK(Model::load(folder.path() / "converged").time() == infinite_time);
}

TEST_CASE("model files: the law of observations is kept, and normal in models of before") {
  const TemporaryFolder folder;
  const fs::path place = folder.path() / "model";
  const Inputs<double> test(random_matrix(4, 3, 2));
  saved_model().save(place);
  CHECK(Model::load(place).predict(test).law == ObservationLaw::of_fitted_amplitude(14, true));
  const auto saved = nlohmann::json::parse(bytes_of(place / "model.json"));
  const auto rewrite = [&](const auto& change) {
    auto changed = saved;
    change(changed);
    changed.erase("crc32");
    changed["crc32"] = sum_of(changed.dump());
    put_bytes(place / "model.json", changed.dump());
  };
  rewrite([](auto& document) { document.erase("observation_law"); });
  CHECK(Model::load(place).predict(test).law.is_normal());
  rewrite([](auto& document) { document["observation_law"]["scale"] = 0; });
  CHECK_THROWS_WITH_AS((void)Model::load(place), doctest::Contains("expected positive degrees of freedom"),
                       DataError);
  ModelOptions given;
  given.amplitude = 2;
  saved_model(given).save(place);
  CHECK_FALSE(nlohmann::json::parse(bytes_of(place / "model.json")).contains("observation_law"));
  CHECK(Model::load(place).predict(test).law.is_normal());
}

TEST_CASE("model files: float inputs and sequences of different length") {
  const TemporaryFolder folder;
  const Matrix<float> x = random_matrix(9, 3, 4).cast<float>();
  const Model of_float = Model::fit(saved_network(), Inputs<float>(x), random_matrix(9, 1, 5));
  of_float.save(folder.path() / "float");
  check_same_predictions(of_float, Model::load(folder.path() / "float"),
                         Inputs<double>(random_matrix(3, 3, 6)));

  std::vector<Matrix<double>> sequences, others;
  for (const Index length : {4, 7, 4, 5, 9, 6})
    sequences.push_back(random_matrix(length, 2, 10 + sequences.size()));
  for (const Index length : {3, 7, 11}) others.push_back(random_matrix(length, 2, 20 + others.size()));
  const Model ragged = Model::fit(models::named_network("conv-gap", {{"axes", 1}}), Inputs<double>(sequences),
                                  random_matrix(6, 1, 7));
  ragged.save(folder.path() / "ragged");
  check_same_predictions(ragged, Model::load(folder.path() / "ragged"), Inputs<double>(others));
}

TEST_CASE("model files: inputs with masks") {
  const TemporaryFolder folder;
  const Network network = models::named_network("conv-gap", {{"axes", 1}, {"depth", 2}});
  const auto masked = [](Index count, std::uint64_t seed) {
    const Matrix<double> numbers = random_matrix(count, 6 * 2, seed);
    const auto n = static_cast<std::size_t>(count);
    xt::xarray<double> x = xt::xarray<double>::from_shape({n, 6, 2});
    std::copy_n(numbers.data(), numbers.size(), x.begin());
    xt::xarray<bool> mask = xt::ones<bool>({n, std::size_t{6}});
    for (std::size_t i = 0; i < n; ++i) mask(i, i % 6) = mask(i, (2 * i + seed) % 6) = false;
    return Inputs<double>(Inputs<double>(std::move(x)), mask);
  };
  const Inputs<double> train = masked(8, 1);
  const Model model = Model::fit(network, train, random_matrix(8, 1, 2));
  model.save(folder.path() / "model");
  const Model loaded = Model::load(folder.path() / "model");
  check_same_predictions(model, loaded, masked(5, 3));
  // The mask is part of the model: without it the predictions are others.
  const Matrix<double> values = random_matrix(8, 6 * 2, 1);
  xt::xarray<double> bare = xt::xarray<double>::from_shape({8, 6, 2});
  std::copy_n(values.data(), values.size(), bare.begin());
  const Model without = Model::fit(network, Inputs<double>(bare), random_matrix(8, 1, 2));
  CHECK((without.mean(masked(5, 3)) - loaded.mean(masked(5, 3))).cwiseAbs().maxCoeff() > 1e-3);
}

TEST_CASE("model files: inputs with graphs, of one size and of different sizes") {
  const TemporaryFolder folder;
  const Network network = models::named_network("gntk", {{"blocks", 1}});
  const auto with_graphs = [](bool ragged, std::size_t count, std::uint64_t seed) {
    std::vector<Matrix<double>> features;
    std::vector<InputGraph> graphs;
    for (std::size_t i = 0; i < count; ++i) {
      const Index nodes = ragged ? 3 + static_cast<Index>(i % 4) : 4;
      features.push_back(random_matrix(nodes, 2, seed + i));
      std::vector<GraphEdge> edges;
      for (Index a = 1; a < nodes; ++a) {
        const double weight = 0.5 + static_cast<double>(i + 1) / static_cast<double>(a + 1);
        edges.push_back({a - 1, a, weight});
        if ((static_cast<Index>(i) + a) % 3 != 0) edges.push_back({a, a - 1, weight});
      }
      graphs.emplace_back(nodes, i == 1 || seed == 0 ? std::vector<GraphEdge>{} : edges);
    }
    if (ragged) return Inputs<double>(Inputs<double>(std::move(features)), std::move(graphs));
    Matrix<double> all(static_cast<Index>(count), 4 * 2);
    for (std::size_t i = 0; i < count; ++i)
      all.row(static_cast<Index>(i)) = features[i].reshaped<Eigen::RowMajor>().transpose();
    xt::xarray<double> x = xt::xarray<double>::from_shape({count, 4, 2});
    std::copy_n(all.data(), all.size(), x.begin());
    return Inputs<double>(Inputs<double>(std::move(x)), std::move(graphs));
  };
  for (const bool ragged : {false, true}) {
    CAPTURE(ragged);
    const Model model = Model::fit(network, with_graphs(ragged, 9, 1), random_matrix(9, 1, 2));
    model.save(folder.path() / "model");
    check_same_predictions(model, Model::load(folder.path() / "model"), with_graphs(ragged, 5, 30));
    // No edge at all: arrays without numbers.
    const Model edgeless = Model::fit(network, with_graphs(ragged, 9, 0), random_matrix(9, 1, 2));
    edgeless.save(folder.path() / "model");
    check_same_predictions(edgeless, Model::load(folder.path() / "model"), with_graphs(ragged, 5, 30));
  }
}

TEST_CASE("model files: NumPy's arrays and a document") {
  const TemporaryFolder folder;
  const Model model = saved_model();
  model.save(folder.path() / "model");
  const auto document = nlohmann::json::parse(bytes_of(folder.path() / "model" / "model.json"));
  CHECK(document["format"] == "widelimit model");
  CHECK(document["format_version"] == 4);
  CHECK(document["precision"] == "double");
  CHECK(document["inputs"]["count"] == 14);
  CHECK(document["files"].size() == 4);
  const auto factor = data::read_npy<double>(folder.path() / "model" / "factor.npy");
  CHECK(factor.shape(0) == 14);
  CHECK(factor(3, 1) == 0);
  CHECK(data::read_npy<double>(folder.path() / "model" / "x.npy").shape(1) == 3);
}

TEST_CASE("model files: damaged, incomplete and foreign folders are named") {
  const TemporaryFolder folder;
  const fs::path place = folder.path() / "model";
  const auto fails = [&](const char* message) {
    CHECK_THROWS_WITH_AS((void)Model::load(place), doctest::Contains(message), DataError);
  };
  fails("expected the folder of a widelimit model, there is none");
  fs::create_directory(place);
  fails("expected model.json in the folder of a widelimit model, it is missing");
  put_bytes(place / "model.json", "{\"format\": \"recipes\"}");
  fails("model.json: expected \"format\": \"widelimit model\", this is something else");
  put_bytes(place / "model.json", "{");
  fails("model.json");
  fs::remove_all(place);

  saved_model().save(place);
  const std::string document = bytes_of(place / "model.json");
  const auto with = [&](const char* key, const nlohmann::json& value) {
    auto changed = nlohmann::json::parse(document);
    changed[key] = value;
    changed.erase("crc32");
    changed["crc32"] = sum_of(changed.dump());
    put_bytes(place / "model.json", changed.dump());
  };
  with("format_version", 1);
  fails("expected format_version 4, got 1");
  {
    std::string changed = document;
    const std::size_t at = changed.find("\"lambda\": ") + 11;
    changed[at] = changed[at] == '1' ? '2' : '1';
    put_bytes(place / "model.json", changed);
    fails("model.json: is damaged: expected the checksum (CRC-32)");
  }
  with("precision", "half");
  fails("precision: expected \"float\" or \"double\", got \"half\"");
  const auto with_posterior = [&](const char* key, const nlohmann::json& value) {
    auto posteriors = nlohmann::json::parse(document)["posteriors"];
    posteriors[0][key] = value;
    with("posteriors", posteriors);
  };
  with_posterior("kind", "oracle");
  fails("kind: expected \"bayesian\", \"trained\" or \"iterative\", got \"oracle\"");
  with_posterior("lambda", "much");
  fails("lambda: expected a number");
  with("class_names", {"one"});
  fails("the files do not fit each other");
  with_posterior("outputs", {0, 5});
  fails("the files do not fit each other");
  with_posterior("amplitudes", {-1, 1});
  fails("the files do not fit each other");
  with("target_offsets", {0});
  fails("TargetScale: expected a finite offset");
  with("files", nlohmann::json::object());
  fails("expected the file x.npy, it is not listed");
  put_bytes(place / "model.json", document);

  for (const char* name : {"x.npy", "y.npy", "factor.npy", "weights.npy"}) {
    CAPTURE(name);
    const std::string whole = bytes_of(place / name);
    std::string changed = whole;
    changed[changed.size() - 2] = static_cast<char>(changed[changed.size() - 2] ^ 1);
    put_bytes(place / name, changed);
    fails("is damaged: expected the checksum (CRC-32)");
    put_bytes(place / name, whole.substr(0, whole.size() - 8));
    fails("is damaged: expected ");
    fs::remove(place / name);
    fails("expected a file, found none");
    put_bytes(place / name, whole);
    CHECK_NOTHROW((void)Model::load(place));
  }
}

TEST_CASE("model files: pipes, devices and sparse files in the place of arrays are refused at once") {
  const TemporaryFolder folder;
  const fs::path place = folder.path() / "model";
  saved_model().save(place);
  for (const char* name : {"model.json", "x.npy", "y.npy", "factor.npy", "weights.npy"}) {
    CAPTURE(name);
    const fs::path file = place / name;
    const std::string whole = bytes_of(file);
    const auto fails = [&](const char* message) {
      CHECK_THROWS_WITH_AS((void)Model::load(place), doctest::Contains(message), DataError);
      // Nor does a writer that looks whether it may replace the folder wait or read without end.
      if (name == std::string("model.json")) CHECK_THROWS_AS(saved_model().save(place), DataError);
    };
    const bool is_array = name != std::string("model.json");
    const char* const no_file = is_array
                                    ? "expected a regular file, found a folder, pipe or device"
                                    : "expected model.json in the folder of a widelimit model, it is missing";
    fs::remove(file);
    REQUIRE(mkfifo(file.c_str(), 0600) == 0);
    fails(no_file);
    fs::remove(file);
    fs::create_symlink("/dev/zero", file);
    fails(no_file);
    fs::remove(file);
    put_bytes(file, whole);
    fs::resize_file(file, std::uintmax_t{1} << 40);
    fails(is_array ? "is damaged: expected " : "expected a JSON file of at most 256 MiB, found more");
    put_bytes(file, whole);
    CHECK_NOTHROW((void)Model::load(place));
  }
}

TEST_CASE("model files: numbers that are not finite are refused, also where every checksum is right") {
  const TemporaryFolder folder;
  const fs::path place = folder.path() / "model";
  for (const ModelKind kind : {ModelKind::bayesian, ModelKind::trained}) {
    ModelOptions options;
    options.preprocessing = some_preprocessing();
    options.kind = kind;
    saved_model(options).save(place);
    const std::string document = bytes_of(place / "model.json");
    for (const auto& entry : fs::directory_iterator(place)) {
      if (entry.path().extension() != ".npy") continue;
      const std::string name = entry.path().filename(), whole = bytes_of(entry.path());
      CAPTURE(name);
      for (const double wrong :
           {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
        std::string changed = whole;
        std::memcpy(changed.data() + changed.size() - sizeof wrong, &wrong, sizeof wrong);
        put_bytes(entry.path(), changed);
        auto sealed = nlohmann::json::parse(document);
        sealed["files"][name]["crc32"] = sum_of(changed);
        sealed.erase("crc32");
        sealed["crc32"] = sum_of(sealed.dump());
        put_bytes(place / "model.json", sealed.dump());
        const std::string message = testing::error_message<Error>([&] { return Model::load(place); });
        CHECK(message.find("finite") != std::string::npos);
      }
      put_bytes(entry.path(), whole);
    }
    put_bytes(place / "model.json", document);
    CHECK_NOTHROW((void)Model::load(place));
  }
}

TEST_CASE("model files: every bit of every file counts") {
  const TemporaryFolder folder;
  const fs::path place = folder.path() / "model";
  ModelOptions options;
  options.preprocessing = some_preprocessing();
  for (const ModelKind kind : {ModelKind::bayesian, ModelKind::trained}) {
    options.kind = kind;
    saved_model(options).save(place);
    for (const auto& entry : fs::directory_iterator(place)) {
      const std::string name = entry.path().filename();
      if (name == "model.json") continue;
      CAPTURE(name);
      const std::string whole = bytes_of(entry.path());
      for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 40) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
        put_bytes(place / name, changed);
        CHECK_THROWS_WITH_AS((void)Model::load(place), doctest::Contains((name + ": is damaged").c_str()),
                             DataError);
      }
      put_bytes(place / name, whole);
    }
    const std::string document = bytes_of(place / "model.json");
    for (std::size_t at = 0; at < document.size(); at += 3) {
      CAPTURE(at);
      std::string changed = document;
      changed[at] = static_cast<char>(changed[at] ^ 2);
      // Beyond the digits of a double a number is the same.
      if (nlohmann::json::accept(changed) &&
          nlohmann::json::parse(changed) == nlohmann::json::parse(document))
        continue;
      put_bytes(place / "model.json", changed);
      CHECK_THROWS_WITH_AS((void)Model::load(place), doctest::Contains("model"), DataError);
    }
    put_bytes(place / "model.json", document.substr(0, document.size() / 2));
    CHECK_THROWS_WITH_AS((void)Model::load(place), doctest::Contains("model.json"), DataError);
    put_bytes(place / "model.json", document);
  }
}

TEST_CASE("model files: files of another model are no part of this one") {
  const TemporaryFolder folder;
  const fs::path one = folder.path() / "one", other = folder.path() / "other";
  saved_model().save(one);
  const Matrix<double> x = random_matrix(14, 3, 8);
  Model::fit(saved_network(), Inputs<double>(x), x.leftCols(2)).save(other);
  for (const char* name : {"x.npy", "y.npy", "factor.npy", "weights.npy"}) {
    CAPTURE(name);
    const std::string own = bytes_of(one / name);
    fs::copy_file(other / name, one / name, fs::copy_options::overwrite_existing);
    CHECK_THROWS_WITH_AS((void)Model::load(one), doctest::Contains("is damaged: expected the checksum"),
                         DataError);
    put_bytes(one / name, own);
  }
  fs::copy_file(other / "model.json", one / "model.json", fs::copy_options::overwrite_existing);
  CHECK_THROWS_AS((void)Model::load(one), DataError);
}

TEST_CASE("model files: a folder with anything else in it is left alone") {
  const TemporaryFolder folder;
  const Model model = saved_model();
  const fs::path place = folder.path() / "model";
  model.save(place);
  put_bytes(place / "notes.txt", "mine");
  CHECK_THROWS_WITH_AS(model.save(place),
                       doctest::Contains("holds notes.txt, which is no part of a widelimit model"),
                       DataError);
  CHECK(bytes_of(place / "notes.txt") == "mine");
  CHECK_NOTHROW((void)Model::load(place));
  put_bytes(folder.path() / "file", "x");
  CHECK_THROWS_WITH_AS(model.save(folder.path() / "file"), doctest::Contains("found a file or a link"),
                       DataError);
  CHECK_THROWS_AS(model.save(folder.path()), DataError);
  CHECK_THROWS_AS(model.save(folder.path() / "file" / "model"), DataError);
  CHECK_THROWS_AS(model.save(""), DataError);
  CHECK(entries_in(folder.path()) == 2);
  fs::create_directory(folder.path() / "empty");
  CHECK_NOTHROW(model.save(folder.path() / "empty"));
}

TEST_CASE(
    "model files: the times that predictions are asked for at are kept, and a model of any time has them "
    "all") {
  const TemporaryFolder folder;
  const Matrix<double> test = random_matrix(4, 3, 2);
  const std::vector<double> times{0, 2.5, infinite_time};
  const Model model = saved_model({.kind = ModelKind::trained, .times = times});
  model.save(folder.path() / "model");
  const Model loaded = Model::load(folder.path() / "model");
  CHECK(loaded.times() == times);
  CHECK(loaded.time() == infinite_time);
  for (const double time : times)
    check_same_predictions(loaded.at_time(time), model.at_time(time), Inputs<double>(test));
  CHECK(saved_model().times().empty());
  CHECK_THROWS_AS(static_cast<void>(saved_model({.times = {1}})), ArgumentError);
}

#include <array>
#include <stdexcept>
#include <string>

#include "cli/output/output_folder.hpp"
#include "cli/program/given_arguments.hpp"
#include "memory_file.hpp"
#include "scratch_folder.hpp"
#include "widelimit/data/graph_folder.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/store/gram_store.hpp"
#include "widelimit/store/stored_gram.hpp"

namespace widelimit::fuzz {
namespace {

namespace fs = std::filesystem;

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// Of sequences: stores of vectors have tiles of 512 inputs a side and more.
Network small_network() {
  return Network({layers::conv({.filter = {2}}), layers::relu(), layers::flatten(), layers::dense({})});
}

constexpr std::array numbers{0.1, 0.2, 1.1, -0.4, -0.7, 0.9, 0.3, -1.2, 0.8, 0.5};

/// [5, 2, 1]
Inputs<double> five_inputs() { return {numbers.data(), {5, 2, 1}}; }

GramOptions one_thread() {
  GramOptions options;
  options.threads = 1;
  return options;
}

void make_model(const fs::path& folder) {
  const std::array labels{0, 1, 0, 1, 1};
  gp::ModelOptions options;
  options.gram = one_thread();
  gp::Model::fit(small_network(), five_inputs(), labels, options).save(folder);
  static_cast<void>(gp::Model::load(folder, one_thread()));  // Whole, it is read.
}

void make_store(const fs::path& folder) {
  store::StoreOptions options;
  options.gram = one_thread();
  options.tile_side = 2;
  store::GramStore<double>(folder, small_network(), five_inputs(), options).compute();
  require(store::StoredGram(folder).check().is_complete(), "whole, it is read");
}

void make_graphs(const fs::path& folder) {
  data::GraphFolder<double> graphs;
  graphs.features = {xt::xarray<double>{{1.0, 2.0}, {3.0, 4.0}}, xt::xarray<double>{{5.0, 6.0}}};
  const std::array edges{GraphEdge{0, 1, 0.5}, GraphEdge{1, 0, 2.0}};
  graphs.graphs = {InputGraph(2, edges), InputGraph(1, {})};
  data::write_graphs(folder, graphs);
  require(data::read_graphs<double>(folder).graphs.size() == 2, "whole, it is read");
}

}  // namespace

void model_folder(Bytes bytes) {
  static DamagedFolder folder(make_model);
  const fs::path& damaged = folder.with(bytes);
  expect_our_errors([&] {
    const gp::Model loaded = gp::Model::load(damaged, one_thread());
    expect_our_errors([&] { static_cast<void>(loaded.predict(five_inputs(), one_thread())); });
  });
}

void gram_store(Bytes bytes) {
  static DamagedFolder folder(make_store);
  const fs::path& damaged = folder.with(bytes);
  expect_our_errors([&] {
    const store::StoredGram stored(damaged);
    static_cast<void>(stored.progress());
    const bool complete = stored.check().is_complete();
    expect_our_errors([&] {
      const auto matrix = stored.matrix<double>();
      require(complete && matrix.nngp.rows() == stored.grid().rows(), "a matrix is read of whole tiles only");
    });
  });
}

void graph_folder(Bytes bytes) {
  static DamagedFolder folder(make_graphs);
  const fs::path& damaged = folder.with(bytes);
  expect_our_errors([&] {
    const auto read = data::read_graphs<double>(damaged);
    require(read.features.size() == read.graphs.size(), "features for each graph");
  });
  expect_our_errors([&] { static_cast<void>(data::read_graphs<float>(damaged)); });
}

/// What a stranger's run.json makes of a folder into which another run writes: files beside the folder stay.
void run_record(Bytes bytes) {
  static const ScratchFolder scratch;
  const fs::path folder = scratch.path() / "run", outside = scratch.path() / "outside.csv";
  const std::array<std::uint8_t, 4> text{'k', 'e', 'p', 't'};
  fs::remove_all(folder);
  fs::create_directories(folder / "inner");
  write_bytes(outside, text);
  for (const char* name : {"a.csv", "inner/b.csv"}) write_bytes(folder / name, text);
  const fs::path record = folder / cli::record_name;
  write_bytes(record, bytes);
  expect_our_errors([&] { require(!cli::words_in(read_json(record), record).empty(), "a run has words"); });
  expect_our_errors([&] {
    cli::OutputFolder output(folder, {"a.csv"}, cli::OtherFiles::kept);
    output.write("a.csv", "new");
    output.commit({.command = "widelimit gp", .network = nullptr, .shapes = nullptr});
    require(read_bytes(folder / "a.csv").size() == 3, "what was written is there");
  });
  require(read_bytes(outside).size() == text.size(), "files outside of the folder stay as they are");
}

}  // namespace widelimit::fuzz

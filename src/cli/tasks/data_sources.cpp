#include "cli/tasks/data_sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"

namespace widelimit::cli {
namespace {

TextChoice text_choice(const DataArguments& arguments) {
  TextChoice choice = arguments.texts;
  choice.counts = {.train = arguments.images.train,
                   .validation = arguments.images.validation,
                   .test = arguments.images.test};
  choice.seed = arguments.images.seed;
  return choice;
}

/// read.operator()<Scalar>(arguments) is the task.
template <typename Read>
DataSource source(DataSource row, const Read& read) {
  row.read_float = [read](const DataArguments& arguments) {
    return read.template operator()<float>(arguments);
  };
  row.read_double = [read](const DataArguments& arguments) {
    return read.template operator()<double>(arguments);
  };
  return row;
}

using Options = std::vector<std::string_view>;

std::vector<DataSource> all_sources() {
  const Options drawn{"--train", "--validation", "--test"},
      prepared{"--preprocess", "--zca-regulariser", "--flip"};
  const auto with = [](Options options, std::initializer_list<Options> more) {
    for (const Options& one : more) options.insert(options.end(), one.begin(), one.end());
    return options;
  };
  const Options images = with({"--size"}, {drawn, prepared});
  return {
      source({.name = "sample", .what = "generated images", .options = images},
             []<typename Scalar>(const DataArguments& a) { return sample_task<Scalar>(a.images); }),
      source({.name = "reviews", .what = "generated texts", .options = with({"--max-length"}, {drawn})},
             []<typename Scalar>(const DataArguments& a) { return reviews_task<Scalar>(text_choice(a)); }),
      source({.name = "cifar10",
              .what = "binary files",
              .files = "a folder of data_batch_*.bin and test_batch.bin",
              .options = images},
             []<typename Scalar>(const DataArguments& a) { return cifar10_task<Scalar>(a.path, a.images); }),
      source({.name = "mnist",
              .what = "IDX files",
              .files =
                  "a folder of train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
                  "t10k-labels-idx1-ubyte, plain or .gz; without the training files the test files are split",
              .options = images},
             []<typename Scalar>(const DataArguments& a) { return mnist_task<Scalar>(a.path, a.images); }),
      source({.name = "imdb",
              .what = "aclImdb",
              .files = "a folder of train/pos/ID_RATING.txt, train/neg/..., test/... and optional val/...",
              .options = with({"--max-length", "--vectors", "--dimensions", "--skip-bad-lines"}, {drawn}),
              .required = {"--vectors"}},
             []<typename Scalar>(const DataArguments& a) {
               return imdb_task<Scalar>(a.path, a.vectors, text_choice(a));
             }),
      source(
          {.name = "npy",
           .what = "arrays",
           .files = "a folder of x_train.npy, y_train.npy (integer labels [n] or targets [n, M]), x_test.npy "
                    "and optional y_test.npy, x_validation.npy, y_validation.npy (mask_train.npy, "
                    "mask_test.npy, mask_validation.npy [n, spatial...] are false where a position does not "
                    "count, whatever x holds there), or of x.npy and y.npy, which are split; or an .npz or "
                    ".safetensors "
                    "file of arrays with these names",
           .options = with({"--targets", "--stratify"}, {drawn, prepared}),
           .validation = "x_validation.npy and y_validation.npy",
           .it = "them"},
          []<typename Scalar>(const DataArguments& a) {
            return npy_task<Scalar>(a.path, a.targets, a.split, a.test_needed);
          }),
      source(
          {.name = "csv",
           .what = "tables",
           .files =
               "a CSV file, which is split, or a folder of train.csv, test.csv and optional validation.csv",
           .options = with({"--targets", "--target", "--stratify", "--id", "--ignore", "--categorical",
                            "--categories", "--missing", "--unknown", "--separator", "--decimal", "--strip"},
                           {drawn, prepared}),
           .required = {"--target"},
           .validation = "validation rows (validation.csv)",
           .it = "them"},
          []<typename Scalar>(const DataArguments& a) {
            return csv_task<Scalar>(a.path, a.encoding, a.targets, a.split, a.test_needed);
          }),
      source({.name = "graphs",
              .what = "arrays of graphs (docs/graphs.md)",
              .files = "a folder of folders train, test and optional validation, each of node_features.npy, "
                       "graph_offsets.npy, edges.npy, optional edge_weights.npy, and labels.npy",
              .options = {"--targets"},
              .validation = "folder validation",
              .it = "it"},
             []<typename Scalar>(const DataArguments& a) { return graph_task<Scalar>(a.path, a.targets); })};
}

}  // namespace

void DataSource::require_folder(const std::filesystem::path& path) const {
  const std::string_view wanted(files);
  if (wanted.find(".npz") != std::string_view::npos && data::is_array_archive(path)) return;
  if (wanted.starts_with("a folder") && std::filesystem::is_regular_file(path))
    throw DataError(fmt::format("{}: --path: expected {} ..., found a file (see --help)", path.string(),
                                wanted.substr(0, wanted.find(", "))));
}

bool DataSource::takes(std::string_view option) const {
  return std::ranges::find(options, option) != options.end();
}

const std::vector<DataSource>& data_sources() {
  static const std::vector<DataSource> sources = all_sources();
  return sources;
}

const DataSource& data_source(std::string_view name) {
  return *std::ranges::find_if(data_sources(), [&](const DataSource& source) { return source.name == name; });
}

std::string where_option_is_for(std::string_view option) {
  std::vector<const char*> names;
  for (const DataSource& source : data_sources())
    if (source.takes(option)) names.push_back(source.name);
  if (names.empty() || names.size() == data_sources().size()) return "";
  std::string text = fmt::format("for --data {}", names.front());
  for (std::size_t k = 1; k < names.size(); ++k)
    text += fmt::format("{}{}", k + 1 < names.size() ? ", " : " and ", names[k]);
  return text + " only";
}

}  // namespace widelimit::cli

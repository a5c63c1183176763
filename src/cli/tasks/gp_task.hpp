#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>

#include "cli/tasks/row_split.hpp"
#include "cli/tasks/table_encoding.hpp"
#include "widelimit/data/imdb.hpp"
#include "widelimit/data/word_vectors.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/inference.hpp"
#include "widelimit/gp/preprocessing.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::cli {

/// Inputs with what is known about them.
template <typename Scalar>
struct GpSet {
  xt::xarray<Scalar> x = {};                       ///< [n, spatial..., channels], or
  std::vector<xt::xarray<Scalar>> sequences = {};  ///< inputs of different length, each [length, channels].
  std::optional<Matrix<double>> targets = {};      ///< [n, outputs]
  std::vector<std::string> names = {};             ///< n: the record that each input comes from.
  std::vector<InputGraph> graphs = {};             ///< Of the sequences, if they carry graphs.
  std::optional<xt::xarray<bool>> mask = {};       ///< [n, spatial...] of x: true where a position counts.

  [[nodiscard]] std::size_t size() const {
    return sequences.empty() ? (x.dimension() == 0 ? 0 : x.shape(0)) : sequences.size();
  }

  /// Refers to the memory of this set. Throws ArgumentError for a mask that does not fit.
  [[nodiscard]] Inputs<Scalar> inputs() const {
    if (mask) return Inputs<Scalar>(Inputs<Scalar>(x), *mask);
    if (!graphs.empty()) return {sequences, graphs};
    return sequences.empty() ? Inputs<Scalar>(x) : Inputs<Scalar>(sequences);
  }
};

using gp::TargetKind;

/// What people see of inputs: pictures or texts, as many as inputs, or neither.
struct GpFaces {
  xt::xtensor<float, 4> pictures;  ///< [n, height, width, 1 or 3], in [0, 1], as they came.
  std::vector<std::string> texts;
};

/// What is known of the data of a task in any precision.
struct GpTaskFacts {
  std::string description;         ///< For people: what, how many, of which shape.
  std::vector<std::string> notes;  ///< For people: what was left out, a line each.
  /// Where the user does not say. Left out of the description where it is `none`.
  gp::PreprocessingKind default_preprocessing = gp::PreprocessingKind::none;
  std::string default_reason;  ///< For people: why it is not the usual one; else empty.
  /// Of tables, which channels are 0 or 1 for a category or a missing cell: they are not standardised.
  std::vector<bool> indicators;
  gp::Preprocessing preprocessing;  ///< Fitted to the training inputs and applied to all.
  TargetKind kind = TargetKind::classes;
  std::vector<std::string> class_names;        ///< Of classes, two for a single output; empty for numbers.
  std::vector<std::string> target_names = {};  ///< Of the columns of numbers of a table; else none.
  GpFaces test_faces;
  std::vector<std::string> channel_names = {};  ///< Of the numbers of a table; else none.
  std::vector<Index> channel_groups = {};  ///< Of each number of a table the place of its column; else none.
  Vector<double> noise_variances = {};     ///< Known ones of the training rows; else none.
  Vector<double> weights = {};             ///< Of the training rows; else none.
  std::vector<Index> groups = {};          ///< Of the training rows, which are left out together; else none.
  Index repeated_rows = 0;  ///< Training rows whose inputs an earlier one has, once note_repeats() counted.
  nlohmann::ordered_json missing =
      {};  ///< What was done about missing cells of tables, for results.json; else null.
  nlohmann::ordered_json unknown = {};  ///< The same of unknown categories.
  nlohmann::ordered_json columns = {};  ///< How the columns of a table were read; else null.
  /// What was done to the inputs before, for those who prepare others: an object.
  nlohmann::ordered_json preparation = nlohmann::ordered_json::object();
};

/// Data of a regression or classification.
template <typename Scalar>
struct GpTask : GpTaskFacts {
  GpSet<Scalar> train;                      ///< With targets.
  std::optional<GpSet<Scalar>> validation;  ///< With targets.
  GpSet<Scalar> test;
};

/// How images are chosen and prepared.
struct ImageChoice {
  std::size_t train = 0;
  std::size_t validation = 0;  ///< May be 0.
  std::size_t test = 0;
  std::size_t size = 32;  ///< Height and width after anti-aliased downsampling.
  std::uint64_t seed = 0;
};

/// What is done to the inputs of a task before kernels are computed.
struct PreprocessingChoice {
  std::optional<gp::PreprocessingKind> kind;  ///< Absent: the default of the task.
  double zca_regulariser = gp::Preprocessing::default_zca_regulariser;
};

/// Fits a preprocessing to the training inputs, with their mirror images where kernels are averaged over flips, and
/// puts all inputs through it; the description says so. Sequences of different length only take `none`. Standard error
/// tells where numbers of validation or test inputs lie far outside of those of the training inputs.
template <typename Scalar>
void prepare_inputs(GpTask<Scalar>& task, const PreprocessingChoice& choice, bool flip);

/// Notes how many training rows repeat others, and in how many groups rows are left out.
template <typename Scalar>
void note_repeats(GpTask<Scalar>& task);

/// A task in another precision; the same where it has it already. DataError, naming file and row, for numbers of which
/// nothing would be left (gp::lost_in_float()).
template <typename Scalar, typename Read>
[[nodiscard]] GpTask<Scalar> in_precision_of(GpTask<Read> task);

/// ArgumentError unless the inputs are images, which have mirror images.
template <typename Scalar>
void require_images_for_flips(const GpTask<Scalar>& task) {
  constexpr std::size_t axes_of_images = 4;  // [n, height, width, channels]
  if (task.train.x.dimension() < axes_of_images)
    throw ArgumentError(
        fmt::format("--flip needs images [n, height, width, channels], got inputs with {} axes",
                    task.train.x.dimension()));
}

/// Images of the generated sample, downsampled.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> sample_task(const ImageChoice& choice);

/// CIFAR-10 from the binary files in `folder`: training and validation images from data_batch_*.bin, test
/// images from test_batch.bin, all balanced over the classes; downsampled.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> cifar10_task(const std::filesystem::path& folder, const ImageChoice& choice);

/// MNIST from the files in `folder`: training and validation images from the training files, test images from
/// the test files, all balanced over the classes; downsampled. Where there are no training files, all are drawn from
/// the test files, disjoint, and a note says so.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> mnist_task(const std::filesystem::path& folder, const ImageChoice& choice);

/// How reviews are chosen and prepared.
struct TextChoice {
  data::ReviewCounts counts;
  std::size_t max_length = 1000;          ///< Known words; the last ones stay.
  std::optional<std::size_t> dimensions;  ///< Leading numbers of each word vector; absent: all.
  data::BadLines bad_lines = data::BadLines::reject;
  std::uint64_t seed = 0;
};

/// Reviews of the generated corpus with their word vectors. Targets are 1/2 for a kind review, -1/2 else.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> reviews_task(const TextChoice& choice);

/// Film reviews in the layout of aclImdb, balanced over the classes, with the word vectors of a text file;
/// see data::read_imdb and data::embed. The same targets. The notes say what was dropped.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> imdb_task(const std::filesystem::path& folder,
                                       const std::filesystem::path& vectors, const TextChoice& choice);

/// x_train.npy, y_train.npy, x_test.npy and, where they exist, y_test.npy, x_validation.npy, y_validation.npy, as they
/// are; of targets, TargetReader says what they mean. Where there is x.npy in place of x_train.npy, its rows and those
/// of y.npy are split; where there is no x_test.npy and it is not needed, there are no test inputs. Throws DataError
/// that names the file.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> npy_task(const std::filesystem::path& folder, std::optional<TargetKind> kind,
                                      const SplitChoice& split, bool test_needed = true);

/// Tables: a file, whose rows are split, or a folder of train.csv, test.csv and perhaps validation.csv. The test table
/// may lack the column of targets. Targets that are no numbers are classes, named by their texts; whole numbers are an
/// error unless `kind` says what they are. Throws DataError that names file, line and column.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> csv_task(const std::filesystem::path& path, const EncodingChoice& choice,
                                      std::optional<TargetKind> kind, const SplitChoice& split,
                                      bool test_needed = true);

/// Graphs of the folders train, test and, where it exists, validation, each as data::read_graphs() reads it, as they
/// are. Each holds labels.npy, with labels or targets as above; the test folder need not. Throws DataError that names
/// the file.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> graph_task(const std::filesystem::path& folder,
                                        std::optional<TargetKind> kind = std::nullopt);

}  // namespace widelimit::cli

#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>
#include <xtensor/xarray.hpp>

#include "cli/options/named_files.hpp"
#include "cli/plots/gnuplot.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/files/folder_lock.hpp"
#include "widelimit/files/permissions.hpp"
#include "widelimit/files/replacing_file.hpp"
#include "widelimit/files/temporary_path.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::cli {

/// What run.json says about a run besides its files.
struct RunRecord {
  std::string command;             ///< The command line, as a shell reads it.
  nlohmann::ordered_json network;  ///< As network files say it; null if there is none.
  nlohmann::ordered_json shapes;   ///< Of inputs and what else the run had, by name.
};

/// The name of the file that tells about a run.
inline constexpr const char* record_name = "run.json";

/// Whether a folder may hold files that no run wrote.
enum class OtherFiles { refused, kept };

/// A folder for the results of one run.
///
/// It is opened before the work begins, so that whatever is wrong with it shows then, and one run has it at a time.
/// Files are written to temporary ones beside their places; commit() puts all of them in their places together, removes
/// the files of the run before and says in run.json which ones are there. Without a commit, or where one fails, the
/// folder is left as it was. The folder may be a stranger's: no link in it is followed.
class OutputFolder {
 public:
  /// Makes the folder if need be. `names` are all files that may be written, relative to the folder, perhaps
  /// in folders of their own.
  ///
  /// Throws DataError if the folder or a file cannot be written, a link stands in the place of one, another run has the
  /// folder, or it holds files that are not listed in a run.json there and `others` refuses them.
  OutputFolder(std::filesystem::path folder, const std::vector<std::string>& names, OtherFiles others);

  /// ArgumentError if a file of the run before, or one that may be written, is one that the command reads: it would be
  /// lost. Call it before anything is written.
  void check_inputs(const std::vector<NamedFile>& read) const;

  /// One more file that may be written; throws as the constructor.
  void announce(const std::string& name);

  /// Writes a file. Throws DataError.
  void write(const std::string& name, std::string_view text);

  /// Writes a matrix as [rows, columns].
  template <typename Scalar>
  void write(const std::string& name, const Matrix<Scalar>& matrix) {
    write_array(name, matrix.data(), {matrix.rows(), matrix.cols()});
  }

  /// A matrix and the name of its file.
  template <typename Scalar>
  struct NamedMatrix {
    std::string name;
    const Matrix<Scalar>* matrix;
  };

  /// Writes matrices, each by a thread of its own unless `threads` is 1.
  template <typename Scalar>
  void write_matrices(const std::vector<NamedMatrix<Scalar>>& matrices, int threads) {
    std::vector<Contents> files;
    for (const auto& [name, matrix] : matrices)
      files.push_back(array_contents(name, matrix->data(), {matrix->rows(), matrix->cols()}));
    write_all(files, threads);
  }

  /// Writes a file in pieces: fill(write) calls write(bytes, count) for each.
  using WriteBytes = std::function<void(const void*, std::size_t)>;
  void write_pieces(const std::string& name, const std::function<void(const WriteBytes&)>& fill);

  /// Writes a vector as [size].
  template <typename Scalar>
  void write(const std::string& name, const Vector<Scalar>& vector) {
    write_array(name, vector.data(), {vector.size()});
  }

  /// Writes an array of any number of dimensions.
  template <typename Scalar>
  void write(const std::string& name, const xt::xarray<Scalar>& array) {
    write_array(name, array.data(), {array.shape().begin(), array.shape().end()});
  }

  /// Writes numbers in row-major order as an array of this shape.
  template <typename Scalar>
  void write_array(const std::string& name, const Scalar* values, const std::vector<std::ptrdiff_t>& shape) {
    write_all({array_contents(name, values, shape)}, 1);
  }

  /// Writes what a gnuplot script draws; nothing where that fails (see Gnuplot).
  void draw(const std::string& name, const std::string& script, Gnuplot& gnuplot);

  /// Writes a run.json for the files of a folder in this one, `inner` with its "/".
  void write_inner_record(const std::string& inner, const RunRecord& record);

  /// Puts what was written since the last commit in place, and run.json. Throws DataError, and leaves the folder as the
  /// last commit did.
  void commit(const RunRecord& record);

 private:
  using Names = std::set<std::string>;

  struct Contents {
    std::string name;
    std::string head;
    std::string_view body;
  };

  template <typename Scalar>
  static Contents array_contents(const std::string& name, const Scalar* values,
                                 const std::vector<std::ptrdiff_t>& shape) {
    const std::vector<std::size_t> extents(shape.begin(), shape.end());
    std::size_t bytes = sizeof(Scalar);
    for (const std::size_t extent : extents) bytes *= extent;
    return {name,
            data::npy_header_bytes(data::npy_type_of<Scalar>(), extents),
            {reinterpret_cast<const char*>(values), bytes}};
  }

  /// Each by a thread of its own unless `threads` is 1.
  void write_all(const std::vector<Contents>& wanted, int threads);

  void make_folder(const std::filesystem::path& folder);
  files::ReplacingFile& stage(const std::string& name);
  void remember(const std::filesystem::path& name);

  void require_still_ours(const std::string& name) const;

  std::filesystem::path folder_;
  OtherFiles others_;
  std::optional<files::FolderLock> lock_;
  Names announced_;
  Names earlier_;  ///< Files of the run before that are there.
  Names committed_;
  std::list<files::TemporaryPath> made_folders_;  ///< Removed again if they stay empty.
  /// Of files and folders that went with the run before, in case they come again.
  std::map<std::filesystem::path, files::Permissions> gone_;
  struct Staged {
    Staged(const std::string& file_name, const std::filesystem::path& target,
           std::optional<files::Permissions> permissions)
        : name{file_name}, file{target, files::Links::refused, permissions} {}
    std::string name;
    files::ReplacingFile file;
  };
  std::list<Staged> staged_;
};

/// A file outside of any output folder: --out FILE. Empty paths, for outputs that are not wanted, pass.
/// Throws DataError now if the file could not be written later.
void check_output_file(const std::filesystem::path& file);

/// Draws a picture outside of any output folder, in the format that its ending names; see Gnuplot.
void draw_output_file(const std::filesystem::path& file, const std::string& script, std::stop_token stop);

}  // namespace widelimit::cli

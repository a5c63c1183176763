#pragma once

#include <cstddef>
#include <filesystem>
#include <list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json/json_value.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/files/temporary_path.hpp"
#include "widelimit/matrix.hpp"

/// Folders of arrays with a document that lists them: written whole or not at all, and read only as they were written.
/// The document has checksums of the files and of itself.
namespace widelimit::gp {

/// Says what a folder holds; a reader takes no other.
struct FolderFormat {
  std::string name;      ///< "format" in the document.
  int version;           ///< "format_version"
  std::string document;  ///< The document's file name.
};

/// The document of a folder as it stands there, whatever it says; null where there is none that can be read.
[[nodiscard]] nlohmann::json any_document(const std::filesystem::path& folder, const FolderFormat& format);

/// Writes into a temporary folder beside the place of the folder, named as temporary files are
/// (files/replacing_file.hpp), which takes that place in the end. An earlier folder of the same format that holds
/// nothing else is replaced. Errors are DataErrors.
class ArrayFolderWriter {
 public:
  /// Throws if the place is taken by something else or cannot be written to.
  ArrayFolderWriter(std::filesystem::path folder, FolderFormat format);

  template <typename T>
  void write(const std::string& name, const T* values, const std::vector<std::size_t>& shape) {
    std::size_t bytes = sizeof(T);
    for (const std::size_t extent : shape) bytes *= extent;
    write_bytes(name, data::npy_header_bytes(data::npy_type_of<T>(), shape),
                {reinterpret_cast<const char*>(values), bytes});
  }
  void write(const std::string& name, const Matrix<double>& matrix);
  void write(const std::string& name, const Vector<double>& vector);

  /// Writes the document, with format and list of files, and puts the folder in its place.
  void commit(nlohmann::ordered_json document);

 private:
  void write_bytes(const std::string& name, std::string_view head, std::string_view body);

  std::filesystem::path folder_;
  FolderFormat format_;
  std::list<files::TemporaryPath> temporary_;  ///< Files first, then their folder: removed in this order.
  nlohmann::ordered_json files_ = nlohmann::ordered_json::object();
};

/// Reads such a folder. Errors are DataErrors that name the folder or the file.
class ArrayFolderReader {
 public:
  /// Reads the document. Throws for a folder that has none, of another format or version.
  ArrayFolderReader(std::filesystem::path folder, const FolderFormat& format);

  [[nodiscard]] const JsonValue& document() const { return document_; }

  /// Bytes in memory while arrays of matrices are read and kept, by the document: all of them, and one a second time.
  [[nodiscard]] double bytes_to_read() const;

  /// An array as it was written; throws if it is missing or changed.
  template <typename T>
  [[nodiscard]] xt::xarray<T> array(const std::string& name) const {
    return data::read_npy<T>(checked(name));
  }
  /// An array of finite numbers with two dimensions, or with one; throws for any others.
  [[nodiscard]] Matrix<double> matrix(const std::string& name) const;
  [[nodiscard]] Vector<double> vector(const std::string& name) const;

 private:
  [[nodiscard]] xt::xarray<double> finite_array(const std::string& name) const;
  /// The path of a file whose bytes are those that were written.
  [[nodiscard]] std::filesystem::path checked(const std::string& name) const;

  std::filesystem::path folder_;
  nlohmann::json json_;
  JsonValue document_;
};

}  // namespace widelimit::gp

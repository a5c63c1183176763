#include "gp/folders/array_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <system_error>
#include <utility>

#include "gp/folders/file_sum.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/regular_file.hpp"
#include "widelimit/files/replacing_file.hpp"
#include "widelimit/files/writing_places.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/version.hpp"

namespace widelimit::gp {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& message) {
  throw DataError(fmt::format("{}: {}", path.string(), message));
}

/// The field of a document with the checksum of the others.
constexpr const char* document_sum_name = "crc32";

/// The checksum of a file, whose size is known to be right.
std::string sum_of(const files::RegularFile& file) {
  std::vector<char> buffer(std::size_t{1} << 20);
  uLong sum = 0;
  std::uint64_t offset = 0;
  while (const std::size_t count = file.read(offset, buffer.data(), buffer.size())) {
    sum = sum_with(sum, buffer.data(), count);
    offset += count;
  }
  return sum_text(sum);
}

/// The document of a folder of this format, or null.
nlohmann::json document_in(const fs::path& folder, const FolderFormat& format) {
  auto json = any_document(folder, format);
  const bool ours = json.is_object() && json.contains("format") && json["format"] == format.name &&
                    json.contains("files") && json["files"].is_object();
  return ours ? json : nlohmann::json(nullptr);
}

/// Throws unless the place is free, empty, or held by such a folder and nothing else.
void check_place(const fs::path& folder, const FolderFormat& format) {
  const auto status = fs::symlink_status(folder);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status)) fail(folder, "expected a folder or nothing there, found a file or a link");
  std::error_code error;
  if (fs::equivalent(folder, ".", error))
    fail(folder,
         "expected another folder than the working directory, which would be replaced as a whole: go to "
         "another one, "
         "or give the name of a folder in it");
  if (fs::is_empty(folder)) return;
  const auto document = document_in(folder, format);
  std::set<std::string> known{format.document};
  if (document.is_object())
    for (const auto& [name, file] : document["files"].items()) known.insert(name);
  // The whole folder goes: a link or folder in it is somebody else's, whatever the document says.
  for (const auto& entry : fs::directory_iterator(folder))
    if (!document.is_object() || !known.contains(entry.path().filename().string()) ||
        !fs::is_regular_file(entry.symlink_status()))
      fail(folder, fmt::format("holds {}, which is no part of a {}; choose another folder",
                               entry.path().filename().string(), format.name));
}

/// The folder by a name of its own: appended to "/", "." or "..", temporary names would lie in the folder itself.
fs::path named(const fs::path& folder) {
  const fs::path name = folder.filename();
  const fs::path place =
      name == "." || name == ".." ? fs::weakly_canonical(files::working_directory() / folder) : folder;
  return place.has_filename() ? place : place.parent_path();
}

template <typename Step>
void file_step(const fs::path& folder, const char* what, const Step& step) {
  std::error_code error;
  step(error);
  if (error) fail(folder, fmt::format("{}: {}", what, error.message()));
}

/// The checksum of what a document says, whatever its layout: that of a compact dump with sorted keys,
/// without the field of the sum.
std::string document_sum(nlohmann::json document) {
  document.erase(document_sum_name);
  const std::string text = document.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return sum_text(sum_with(0, text.data(), text.size()));
}

nlohmann::json read_document(const fs::path& folder, const FolderFormat& format) {
  if (!fs::is_directory(folder))
    fail(folder, fmt::format("expected the folder of a {}, there is none", format.name));
  if (!fs::is_regular_file(folder / format.document))
    fail(folder,
         fmt::format("expected {} in the folder of a {}, it is missing", format.document, format.name));
  auto json = read_json(folder / format.document);
  const JsonValue document(json, (folder / format.document).string());
  if (!json.is_object() || document.value<std::string>("format", "") != format.name)
    fail(folder / format.document,
         fmt::format("expected \"format\": \"{}\", this is something else", format.name));
  if (const Index version = document.at("format_version"); version != format.version)
    fail(folder / format.document,
         fmt::format(
             "expected format_version {}, got {}: written by widelimit {}; make it again with this version",
             format.version, version, document.value<std::string>("widelimit", "of an unknown version")));
  const std::string sum = document.at(document_sum_name);
  if (const std::string found = document_sum(json); found != sum)
    fail(folder / format.document,
         fmt::format("is damaged: expected the checksum (CRC-32) {}, found {}", sum, found));
  return json;
}

}  // namespace

nlohmann::json any_document(const fs::path& folder, const FolderFormat& format) {
  const fs::path file = folder / format.document;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return nullptr;
  try {
    return read_json(file);
  } catch (const DataError&) {
    return nullptr;
  }
}

ArrayFolderWriter::ArrayFolderWriter(fs::path folder, FolderFormat format)
    : folder_{named(folder)}, format_{std::move(format)} {
  if (folder_.empty()) throw DataError("expected the name of a folder, got nothing");
  files::require_may_write(folder_);
  try {
    check_place(folder_, format_);
  } catch (const fs::filesystem_error& error) {
    fail(folder_, error.code().message());
  }
  if (folder_.has_parent_path())
    file_step(folder_, "cannot make its parent folder",
              [&](auto& error) { fs::create_directories(folder_.parent_path(), error); });
  // The folder is written beside its place, on the same file system, and commit() moves it there whole.
  temporary_.emplace_back(files::temporary_name(folder_));
  file_step(folder_, "cannot be written",
            [&](auto& error) { fs::create_directory(temporary_.back().path(), error); });
  if (auto permissions = files::permissions_of(folder_)) {
    constexpr mode_t to_write = 0700;
    permissions->mode |= to_write;
    files::set_permissions(temporary_.back().path(), *permissions);
  }
}

void ArrayFolderWriter::write(const std::string& name, const Matrix<double>& matrix) {
  write(name, matrix.data(),
        {static_cast<std::size_t>(matrix.rows()), static_cast<std::size_t>(matrix.cols())});
}

void ArrayFolderWriter::write(const std::string& name, const Vector<double>& vector) {
  write(name, vector.data(), {static_cast<std::size_t>(vector.size())});
}

void ArrayFolderWriter::write_bytes(const std::string& name, std::string_view head, std::string_view body) {
  const fs::path path = temporary_.back().path() / name;
  // Files precede their folder in the list, because it can only be removed when it is empty.
  temporary_.emplace_front(path);
  files::ReplacingFile file(path, files::Links::refused, files::permissions_of(folder_ / name));
  file.write(head);
  file.write(body);
  file.commit();
  files_[name] = {
      {"bytes", head.size() + body.size()},
      {"crc32", sum_text(sum_with(sum_with(0, head.data(), head.size()), body.data(), body.size()))}};
}

void ArrayFolderWriter::commit(nlohmann::ordered_json document) {
  nlohmann::ordered_json whole{
      {"format", format_.name}, {"format_version", format_.version}, {"widelimit", version}};
  whole.update(document);
  whole["files"] = files_;
  whole[document_sum_name] = document_sum(whole);
  const fs::path& made = temporary_.back().path();
  temporary_.emplace_front(made / format_.document);
  files::ReplacingFile file(made / format_.document, files::Links::refused,
                            files::permissions_of(folder_ / format_.document));
  file.write(whole.dump(1) + "\n");
  file.commit();
  const files::TemporaryPathLock together;
  check_place(folder_, format_);  // again, because fitting takes a while
  // The earlier folder is only moved aside until the new one stands in its place.
  const fs::path earlier = files::temporary_name(folder_, "old");
  const bool replaces = fs::exists(folder_);
  if (replaces)
    file_step(folder_, "cannot be replaced", [&](auto& error) { fs::rename(folder_, earlier, error); });
  file_step(folder_, "cannot be put in place", [&](auto& error) {
    fs::rename(made, folder_, error);
    std::error_code ignored;
    if (error && replaces) fs::rename(earlier, folder_, ignored);
  });
  for (files::TemporaryPath& path : temporary_) path.keep();
  if (replaces)
    file_step(earlier, "the replaced folder cannot be removed",
              [&](auto& error) { fs::remove_all(earlier, error); });
}

ArrayFolderReader::ArrayFolderReader(fs::path folder, const FolderFormat& format)
    : folder_{std::move(folder)},
      json_(read_document(folder_, format)),
      document_(json_, (folder_ / format.document).string()) {}

double ArrayFolderReader::bytes_to_read() const {
  double all = 0, largest = 0;
  const JsonValue listed = document_.at("files");
  for (const auto& [name, file] : listed.raw().items()) {
    const auto bytes = static_cast<double>(listed.at(name).at("bytes").get<Index>());
    all += bytes;
    largest = std::max(largest, bytes);
  }
  return all + largest;
}

xt::xarray<double> ArrayFolderReader::finite_array(const std::string& name) const {
  auto values = array<double>(name);
  const auto* const wrong = std::find_if_not(values.data(), values.data() + values.size(),
                                             [](double value) { return std::isfinite(value); });
  if (wrong != values.data() + values.size())
    fail(folder_ / name,
         fmt::format("expected finite numbers, got {} at place {}", *wrong, wrong - values.data()));
  return values;
}

Matrix<double> ArrayFolderReader::matrix(const std::string& name) const {
  const auto values = finite_array(name);
  if (values.dimension() != 2)
    fail(folder_ / name, fmt::format("expected two dimensions, got {}", values.dimension()));
  return Eigen::Map<const Matrix<double>>(values.data(), static_cast<Index>(values.shape(0)),
                                          static_cast<Index>(values.shape(1)));
}

Vector<double> ArrayFolderReader::vector(const std::string& name) const {
  const auto values = finite_array(name);
  if (values.dimension() != 1)
    fail(folder_ / name, fmt::format("expected one dimension, got {}", values.dimension()));
  return Eigen::Map<const Vector<double>>(values.data(), static_cast<Index>(values.size()));
}

fs::path ArrayFolderReader::checked(const std::string& name) const {
  const JsonValue listed = document_.at("files");
  if (!listed.contains(name)) listed.fail(fmt::format("expected the file {}, it is not listed", name));
  const JsonValue file = listed.at(name);
  const std::string sum = file.at("crc32").get<std::string>();
  const auto bytes = static_cast<std::uintmax_t>(file.at("bytes").get<Index>());
  const files::RegularFile found(folder_ / name);
  if (found.size() != bytes)
    fail(folder_ / name, fmt::format("is damaged: expected {} bytes, found {}", bytes, found.size()));
  if (const std::string found_sum = sum_of(found); found_sum != sum)
    fail(folder_ / name,
         fmt::format("is damaged: expected the checksum (CRC-32) {}, found {}", sum, found_sum));
  return folder_ / name;
}

}  // namespace widelimit::gp

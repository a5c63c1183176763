#include "widelimit/gp/gram_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gp/folders/array_folder.hpp"
#include "network/network_identity.hpp"
#include "store/store_facts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/devices.hpp"
#include "widelimit/store/input_facts.hpp"
#include "widelimit/store/sha256.hpp"
#include "widelimit/version.hpp"

namespace widelimit::gp {
namespace {

FolderFormat gram_format() { return {"widelimit Gram matrix", 3, "gram.json"}; }

constexpr const char* place_start = "gram-";
/// The field of a document with what its matrix is of.
constexpr const char* facts_name = "of";

/// Throws DataError for a matrix of another format version: the formats before 3 told inputs apart by 32
/// bits, which others may share.
void require_no_earlier_format(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with(place_start)) continue;
    const nlohmann::json document = any_document(entry.path(), gram_format());
    const auto field = [&](const char* name) {
      return document.is_object() ? document.value(name, nlohmann::json()) : nlohmann::json();
    };
    if (field("format") != gram_format().name) continue;
    const nlohmann::json found = field("format_version");
    if (found == gram_format().version) continue;
    throw DataError(
        fmt::format("{}: holds a Gram matrix in format {}, expected {}; remove {} and it is computed anew",
                    entry.path().string(), found.dump(), gram_format().version, folder.string()));
  }
}

/// Throws DataError unless the document is about this matrix. Inputs are told apart by SHA-256. The version of the
/// library counts as well, because another one may compute other numbers.
void require_same(const std::filesystem::path& place, const nlohmann::json& there, nlohmann::json here) {
  if (there.is_object()) here["library_version"] = store::accepted_version(there);
  if (there == here) return;
  std::vector<const char*> facts;
  for (const auto& [fact, value] : here.items()) facts.push_back(fact.c_str());
  const auto difference = store::difference_between(there, here, facts);
  throw DataError(fmt::format("{}: holds another Gram matrix: {}; remove it and it is computed anew",
                              place.string(), difference.value_or("it is of more than is known here")));
}

template <typename Scalar>
constexpr std::pair<const char*, Matrix<Scalar> GramResult<Scalar>::*> stored_matrices[] = {
    {"nngp.npy", &GramResult<Scalar>::nngp},
    {"ntk.npy", &GramResult<Scalar>::ntk},
    {"nngp_error.npy", &GramResult<Scalar>::nngp_error},
    {"ntk_error.npy", &GramResult<Scalar>::ntk_error}};

template <typename Scalar>
void write_matrix(ArrayFolderWriter& folder, const char* name, const Matrix<Scalar>& matrix) {
  if (matrix.size() > 0)
    folder.write(name, matrix.data(),
                 {static_cast<std::size_t>(matrix.rows()), static_cast<std::size_t>(matrix.cols())});
}

template <typename Scalar>
Matrix<Scalar> read_matrix(const ArrayFolderReader& folder, const char* name, Index rows, Index columns) {
  const auto array = folder.array<Scalar>(name);
  if (array.dimension() != 2 || static_cast<Index>(array.shape(0)) != rows ||
      static_cast<Index>(array.shape(1)) != columns)
    folder.document().fail(fmt::format("expected {} as [{}, {}], it has another shape", name, rows, columns));
  return Eigen::Map<const Matrix<Scalar>>(array.data(), rows, columns);
}

/// The stored kernels, if all that are wanted are there; otherwise nothing.
template <typename Scalar>
std::optional<GramResult<Scalar>> stored(const std::filesystem::path& place, const nlohmann::json& of,
                                         Kernels kernels, Index rows, Index columns) {
  if (!std::filesystem::exists(place)) return std::nullopt;
  const ArrayFolderReader folder(place, gram_format());
  require_same(place, folder.document().at(facts_name).raw(), of);
  const JsonValue files = folder.document().at("files");
  const bool wants_nngp = kernels != Kernels::ntk, wants_ntk = kernels != Kernels::nngp;
  if ((wants_nngp && !files.contains("nngp.npy")) || (wants_ntk && !files.contains("ntk.npy")))
    return std::nullopt;
  GramResult<Scalar> result;
  for (const auto& [name, matrix] : stored_matrices<Scalar>) {
    const bool wanted = std::string_view(name).starts_with("nngp") ? wants_nngp : wants_ntk;
    if (wanted && files.contains(name)) result.*matrix = read_matrix<Scalar>(folder, name, rows, columns);
  }
  return result;
}

}  // namespace

std::string treatment_of(bool flip, const GramOptions& options) {
  std::string treatment;
  const auto add = [&](const std::string& what) {
    if (!what.empty()) treatment += (treatment.empty() ? "" : ", ") + what;
  };
  if (flip) add(mean_over_flips);
  if (options.exact_attention) add("exact attention");
  if (const std::string device = device_in_full(options.device); !device.empty())
    add("computed by " + device);
  return treatment;
}

template <typename Scalar>
GramResult<Scalar> GramCache::find(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>* x2,
                                   Pairs pairs, Kernels kernels,
                                   const std::function<GramResult<Scalar>()>& compute) {
  constexpr const char* names[] = {"symmetric", "rectangular", "diagonal"};
  nlohmann::json of{{"network", nlohmann::json::parse(network_identity(network))},
                    {"precision", std::is_same_v<Scalar, float> ? "float" : "double"},
                    {"pairs", names[static_cast<int>(pairs)]},
                    {"rows", store::batch_facts(x1)}};
  if (x2 != nullptr) of["columns"] = store::batch_facts(*x2);
  if (!treatment_.empty()) of["treatment"] = treatment_;
  const std::string key = of.dump();
  constexpr std::size_t digits = 16;
  const auto place = folder_ / (place_start + store::sha256_of(key.data(), key.size()).substr(0, digits));
  // The version is no part of the key: the matrix of another version is found here, and refused, instead of staying
  // beside this one unseen.
  of["library_version"] = version;
  // The folder is searched once, before its first matrix.
  if (read_ + computed_ == 0) require_no_earlier_format(folder_);
  const Index columns = pairs == Pairs::diagonal ? 1 : x2 != nullptr ? x2->size() : x1.size();
  if (auto found = stored<Scalar>(place, of, kernels, x1.size(), columns)) {
    ++read_;
    return std::move(*found);
  }
  GramResult<Scalar> result = compute();
  ++computed_;
  ArrayFolderWriter folder(place, gram_format());
  for (const auto& [name, matrix] : stored_matrices<Scalar>) write_matrix(folder, name, result.*matrix);
  folder.commit({{facts_name, std::move(of)}});
  return result;
}

template <typename Scalar>
GramResult<Scalar> GramCache::get(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>* x2,
                                  Kernels kernels, const std::function<GramResult<Scalar>()>& compute) {
  return find(network, x1, x2, x2 == nullptr ? Pairs::symmetric : Pairs::rectangular, kernels, compute);
}

template <typename Scalar>
GramResult<Scalar> GramCache::get_diagonal(const Network& network, const Inputs<Scalar>& x, Kernels kernels,
                                           const std::function<GramResult<Scalar>()>& compute) {
  return find<Scalar>(network, x, nullptr, Pairs::diagonal, kernels, compute);
}

template GramResult<float> GramCache::get(const Network&, const Inputs<float>&, const Inputs<float>*, Kernels,
                                          const std::function<GramResult<float>()>&);
template GramResult<double> GramCache::get(const Network&, const Inputs<double>&, const Inputs<double>*,
                                           Kernels, const std::function<GramResult<double>()>&);
template GramResult<float> GramCache::get_diagonal(const Network&, const Inputs<float>&, Kernels,
                                                   const std::function<GramResult<float>()>&);
template GramResult<double> GramCache::get_diagonal(const Network&, const Inputs<double>&, Kernels,
                                                    const std::function<GramResult<double>()>&);

}  // namespace widelimit::gp

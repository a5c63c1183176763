#include "support/reference_case.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "widelimit/data/npy.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing {
namespace {

/// Relative to the norm of the reference, which is what the tolerances are meant for.
double norm_deviation(const Matrix<double>& computed, const xt::xarray<double>& expected) {
  double difference = 0, size = 0;
  for (Index i = 0; i < computed.rows(); ++i)
    for (Index j = 0; j < computed.cols(); ++j) {
      difference += std::pow(computed(i, j) - expected(i, j), 2);
      size += std::pow(expected(i, j), 2);
    }
  return std::sqrt(difference / size);
}

double entry_deviation(const Matrix<double>& computed, const xt::xarray<double>& expected) {
  double largest = 0;
  for (Index i = 0; i < computed.rows(); ++i)
    for (Index j = 0; j < computed.cols(); ++j)
      largest = std::max(largest, std::abs(computed(i, j) / expected(i, j) - 1));
  return largest;
}

/// In standard errors of the difference: the reference has errors of its own.
double standard_error_deviation(const Matrix<double>& computed, const Matrix<double>& computed_error,
                                const xt::xarray<double>& expected,
                                const xt::xarray<double>& expected_error) {
  double largest = 0;
  for (Index i = 0; i < computed.rows(); ++i)
    for (Index j = 0; j < computed.cols(); ++j)
      largest = std::max(largest, std::abs(computed(i, j) - expected(i, j)) /
                                      std::hypot(computed_error(i, j), expected_error(i, j)));
  return largest;
}

double compare(const ReferenceCase& reference, const Matrix<double>& computed,
               const Matrix<double>& computed_error, const std::string& kernel) {
  const auto expected = data::read_npy<double>(reference.folder / (kernel + ".npy"));
  if (reference.comparison == Comparison::entrywise) return entry_deviation(computed, expected);
  if (reference.comparison == Comparison::in_norm) return norm_deviation(computed, expected);
  const auto expected_error = data::read_npy<double>(reference.folder / (kernel + "_error.npy"));
  return standard_error_deviation(computed, computed_error, expected, expected_error);
}

/// The array's inputs, with their mask or cut to their lengths if there is a file of them: `side` is "1" or "2".
template <typename Scalar>
Inputs<Scalar> cut_inputs(const ReferenceCase& reference, const xt::xarray<Scalar>& x,
                          const std::string& side) {
  const auto mask_file = reference.folder / ("mask" + side + ".npy");
  if (std::filesystem::exists(mask_file))
    return Inputs<Scalar>(x, xt::xarray<bool>(xt::cast<bool>(data::read_npy_as<std::int64_t>(mask_file))));
  const auto lengths_file = reference.folder / ("lengths" + side + ".npy");
  if (!std::filesystem::exists(lengths_file)) return x;
  const auto lengths = data::read_npy<std::int64_t>(lengths_file);
  return Inputs<Scalar>(x, std::vector<Index>(lengths.begin(), lengths.end()));
}

template <typename Scalar>
GramResult<Scalar> compute(const ReferenceCase& reference, const GramOptions& options) {
  const Network network = read_network(reference.network);
  const auto x1 = data::read_npy_as<Scalar>(reference.folder / "x1.npy");
  const auto left = cut_inputs(reference, x1, "1");
  if (!std::filesystem::exists(reference.folder / "x2.npy")) return gram<Scalar>(network, left, options);
  const auto x2 = data::read_npy_as<Scalar>(reference.folder / "x2.npy");
  return gram<Scalar>(network, left, cut_inputs(reference, x2, "2"), options);
}

}  // namespace

std::optional<std::filesystem::path> large_reference_folder() {
  const std::filesystem::path folder = WIDELIMIT_SOURCE_DIR "/../shared/reference/kernels";
  if (!std::filesystem::exists(folder / "index.json")) return std::nullopt;
  return folder;
}

std::filesystem::path small_reference_folder() { return WIDELIMIT_SOURCE_DIR "/tests/reference/kernels"; }

std::vector<ReferenceCase> reference_cases(const std::filesystem::path& folder) {
  std::vector<ReferenceCase> cases;
  for (const auto& entry : nlohmann::json::parse(std::ifstream(folder / "index.json"))) {
    const std::string name = entry["case"];
    ReferenceCase reference{name, folder / name, folder / name / "network.json", Comparison::in_norm, 0};
    if (entry.value("entrywise", false)) reference.comparison = Comparison::entrywise;
    if (entry["tolerance"].is_string()) {
      reference.comparison = Comparison::standard_errors;
      reference.tolerance = std::stod(entry["tolerance"].get<std::string>());
    } else {
      reference.tolerance = entry["tolerance"];
    }
    cases.push_back(std::move(reference));
  }
  return cases;
}

std::string network_text(const ReferenceCase& reference) {
  std::ifstream stream(reference.network);
  return {std::istreambuf_iterator<char>(stream), {}};
}

template <typename Scalar>
Deviation deviation(const ReferenceCase& reference, const GramOptions& options) {
  const GramResult<Scalar> result = compute<Scalar>(reference, options);
  return {compare(reference, result.nngp.template cast<double>(), result.nngp_error.template cast<double>(),
                  "nngp"),
          compare(reference, result.ntk.template cast<double>(), result.ntk_error.template cast<double>(),
                  "ntk")};
}

template Deviation deviation<float>(const ReferenceCase&, const GramOptions&);
template Deviation deviation<double>(const ReferenceCase&, const GramOptions&);

}  // namespace widelimit::testing

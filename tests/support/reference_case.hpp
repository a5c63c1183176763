#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>
#include <xtensor/xarray.hpp>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/network/network.hpp"

/// Reference cases: a folder with network.json, x1.npy, optional x2.npy, nngp.npy and ntk.npy (and their
/// standard errors), listed in index.json with their tolerances. Written by an independent implementation.
namespace widelimit::testing {

/// How results are compared with the reference.
enum class Comparison {
  in_norm,          ///< Frobenius norm of the deviation relative to that of the reference.
  entrywise,        ///< Largest deviation of an entry relative to that entry.
  standard_errors,  ///< Largest deviation of an entry in the reference's standard errors; the tolerance is
                    ///< their number.
};

struct ReferenceCase {
  std::string name;
  std::filesystem::path folder;
  std::filesystem::path network;  ///< The network file.
  Comparison comparison;
  double tolerance;  ///< For double.
};

/// The folder of the large set, if this checkout has it beside it, else nothing.
std::optional<std::filesystem::path> large_reference_folder();

/// The folder of the small set in the repository.
std::filesystem::path small_reference_folder();

/// The cases of a folder's index.json.
std::vector<ReferenceCase> reference_cases(const std::filesystem::path& folder);

/// The text of the case's network file.
std::string network_text(const ReferenceCase& reference);

struct Deviation {
  double nngp;
  double ntk;
};

/// Computes the case and compares. Scalar float or double.
template <typename Scalar>
Deviation deviation(const ReferenceCase& reference, const GramOptions& options = {});

}  // namespace widelimit::testing

#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit::gp {

/// The `treatment` of kernels that are a FlipAverage.
inline constexpr const char* mean_over_flips = "mean over flips";

/// The `treatment` of kernels that these options change, in their last digits if a device computes them. DeviceError if
/// it is not there.
[[nodiscard]] std::string treatment_of(bool flip, const GramOptions& options);

/// A folder in which Gram matrices are kept, so that those computed once serve every regulariser, time and criterion.
///
/// Each has its own folder with nngp.npy and ntk.npy as far as they were asked for, their standard errors
/// nngp_error.npy and ntk_error.npy for networks with sampled layers, and gram.json, which identifies them by
/// network, precision, shapes and SHA-256 of the inputs, further processing of the kernels, and the library's version,
/// as in Gram stores. A matrix of anything else is never used in its place.
///
/// Errors  DataError naming the file if it cannot be read or written, or was changed, and for matrices that another
///         version of the library kept: remove them, and they are computed again.
class GramCache {
 public:
  /// The folder is created when the first matrix is kept. `treatment`: what distinguishes the kernels that compute()
  /// makes from those of gram(), e.g. mean_over_flips; empty: nothing.
  explicit GramCache(std::filesystem::path folder, std::string treatment = "")
      : folder_{std::move(folder)}, treatment_{std::move(treatment)} {}

  /// The kernels of x1 with x2, or of x1 with itself if x2 is null, as compute() makes them: read if they exist,
  /// else computed and kept. `kernels`: those that compute() gives.
  template <typename Scalar>
  [[nodiscard]] GramResult<Scalar> get(const Network& network, const Inputs<Scalar>& x1,
                                       const Inputs<Scalar>* x2, Kernels kernels,
                                       const std::function<GramResult<Scalar>()>& compute);

  /// The same for gram_diagonal().
  template <typename Scalar>
  [[nodiscard]] GramResult<Scalar> get_diagonal(const Network& network, const Inputs<Scalar>& x,
                                                Kernels kernels,
                                                const std::function<GramResult<Scalar>()>& compute);

  [[nodiscard]] int read() const { return read_; }          ///< Number of matrices that existed.
  [[nodiscard]] int computed() const { return computed_; }  ///< Number of matrices that were computed.

 private:
  enum class Pairs { symmetric, rectangular, diagonal };
  template <typename Scalar>
  GramResult<Scalar> find(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>* x2,
                          Pairs pairs, Kernels kernels, const std::function<GramResult<Scalar>()>& compute);

  std::filesystem::path folder_;
  std::string treatment_;
  int read_ = 0;
  int computed_ = 0;
};

}  // namespace widelimit::gp

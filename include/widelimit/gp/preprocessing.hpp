#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>
#include <xtensor/xarray.hpp>

#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// The processing of inputs before a kernel sees them. Positions are pixels, words or anything with channels.
enum class PreprocessingKind {
  none,   ///< Nothing.
  pixel,  ///< Every position: its channels get mean 0 and standard deviation 1. Needs two or more channels.
  image,  ///< Every input: all its numbers get mean 0 and standard deviation 1.
  /// Every channel: mean 0 and standard deviation 1 over all positions of the training inputs. One that does not vary
  /// there only loses its mean.
  channel,
  zca  ///< Regularised whitening of whole inputs, see Preprocessing.
};

/// "none", "pixel", "image", "channel" or "zca".
[[nodiscard]] std::string to_string(PreprocessingKind kind);

/// The kind for a word. ArgumentError for other words.
[[nodiscard]] PreprocessingKind preprocessing_kind(std::string_view word);

/// A preprocessing that is fitted to training inputs and then applied, unchanged, to all inputs. Inputs are
/// [n, spatial..., channels]; sums run in double, results are rounded to the type of the inputs.
///
/// Standardising divides by the standard deviation over all values; pixel and image by (standard deviation + 1e-5),
/// which keeps constant scopes (a grey pixel, an empty image) at exactly 0. A channel that does not vary is not scaled.
///
/// zca         with x an input written as one vector of d numbers, m and C the mean and the covariance (division by n)
///             of the training inputs: (C + eps mean(C_ii) I)^{-1/2} (x - m). The regulariser eps, relative to the mean
///             eigenvalue of C, keeps directions that hardly vary from being blown up to noise. Directions that vary
///             much more than that come out with variance 1.
/// Cost        zca: n d^2 operations and one eigendecomposition (about 9 d^3; d = 3,072 for 32 x 32 x 3) to fit, d^2 an
///             input to apply, and 8 d^2 bytes. The others: one pass.
/// Errors      ArgumentError for inputs without values, of another shape than the training inputs (pixel, image and
///             none take any), values that are not finite, one channel for `pixel`, a regulariser that is not positive
///             and finite.
/// Source      pixel: Hron et al. 2020, Infinite attention, arXiv:2006.10540, experiments. zca: Lee et al. 2020,
///             Finite versus infinite neural networks, arXiv:2007.15801, on ZCA regularisation.
class Preprocessing {
 public:
  /// Leaves inputs unchanged.
  Preprocessing() = default;

  /// `mirror_images`: fitted to the training inputs and to all of them reversed along the last spatial axis, so that
  /// preprocessed mirror images are mirror images of preprocessed inputs, as kernels averaged over flips require.
  /// It costs nothing. ArgumentError if there is no spatial axis.
  template <typename Scalar>
  [[nodiscard]] static Preprocessing fit(PreprocessingKind kind, const xt::xarray<Scalar>& train,
                                         double zca_regulariser = default_zca_regulariser,
                                         bool mirror_images = false);

  /// The inputs preprocessed, of the same shape.
  template <typename Scalar>
  [[nodiscard]] xt::xarray<Scalar> apply(const xt::xarray<Scalar>& x) const;

  [[nodiscard]] PreprocessingKind kind() const noexcept { return kind_; }
  /// Whether a preprocessed mirror image is, up to rounding, the mirror image of the preprocessed input.
  [[nodiscard]] bool keeps_mirror_images() const;
  /// [spatial..., channels] that inputs must have; empty if any shape is accepted.
  [[nodiscard]] const std::vector<std::size_t>& input_shape() const noexcept { return input_shape_; }
  /// For channel the means, [channels]; for zca m, [d]; else empty.
  [[nodiscard]] const Vector<double>& offsets() const noexcept { return offsets_; }
  /// For channel: 1 / standard deviation, or 1 where it does not vary, [1, channels]; for zca the symmetric whitening
  /// matrix [d, d]; else empty.
  [[nodiscard]] const Matrix<double>& factors() const noexcept { return factors_; }

  /// {"kind", "input_shape", "zca_regulariser"}: together with the two arrays everything that is saved.
  [[nodiscard]] nlohmann::json to_json() const;

  /// The preprocessing from these. DataError, preceded by `name`, for fields that are missing, of another kind or out
  /// of range, and for arrays that do not fit them or are not finite.
  [[nodiscard]] static Preprocessing from_json(const nlohmann::json& json, Vector<double> offsets,
                                               Matrix<double> factors, const std::string& name);

  /// The default was measured: docs/data.md.
  static constexpr double default_zca_regulariser = 1;

 private:
  PreprocessingKind kind_ = PreprocessingKind::none;
  std::vector<std::size_t> input_shape_;
  double zca_regulariser_ = 0;  ///< 0 but for zca.
  Vector<double> offsets_;
  Matrix<double> factors_;
};

}  // namespace widelimit::gp

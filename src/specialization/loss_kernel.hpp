#pragma once

#include <cstddef>

#include "widelimit/specialization/loss.hpp"

namespace widelimit::specialization {

/// One block of samples: consecutive tiles of 64, [row][token][sample].
template <typename Scalar>
struct KernelBlock {
  HeadActivation activation{};
  LossDetail wanted{};
  std::size_t heads = 0;
  std::size_t rows = 0;  ///< F + noises.
  std::size_t tokens = 0;
  std::size_t tiles = 0;
  const Scalar* values = nullptr;
  const Scalar* sample_weights = nullptr;
  const Scalar* head_rows = nullptr;  ///< [m r], heads x rows.
  const Scalar* b = nullptr;
  const Scalar* v = nullptr;
};

/// The place of each quantity in the array of sums.
struct KernelLayout {
  KernelLayout(HeadActivation activation, std::size_t heads, std::size_t rows)
      : b{head_rows + heads * rows},
        v{b + heads},
        noise{v + static_cast<std::size_t>(scale_count(activation, static_cast<Index>(heads)))},
        size{noise + heads * heads} {}
  static constexpr std::size_t loss = 0;          ///< sum of w l.
  static constexpr std::size_t squared_loss = 1;  ///< sum of w l^2.
  static constexpr std::size_t head_rows = 2;     ///< heads x rows.
  std::size_t b;
  std::size_t v;
  std::size_t noise;  ///< heads x heads, sum of w G G^T.
  std::size_t size;
};

/// Adds the block's sums to `sums` (KernelLayout::size entries); within a tile in the precision of Scalar,
/// over tiles in double. The result depends on the block alone.
void add_block(const KernelBlock<float>& block, double* sums);
void add_block(const KernelBlock<double>& block, double* sums);

}  // namespace widelimit::specialization

#pragma once

#include <filesystem>

#include "widelimit/data/npy.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::cli {

/// Makes the folder if need be; DataError if that is impossible. Call it before the work begins.
void make_output_folder(const std::filesystem::path& folder);

/// Writes a matrix as [rows, columns].
template <typename Scalar>
void write_matrix(const std::filesystem::path& file, const Matrix<Scalar>& matrix) {
  const std::size_t shape[] = {static_cast<std::size_t>(matrix.rows()),
                               static_cast<std::size_t>(matrix.cols())};
  data::write_npy(file, matrix.data(), shape);
}

}  // namespace widelimit::cli

#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "numerics/blas_threads.hpp"
#include "numerics/tasks.hpp"
#include "widelimit/error.hpp"
#include "widelimit/finite/finite_network.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::finite {

/// Rows (inputs times positions) of the pieces that a batch is cut into, about: enough for matrix products to
/// be fast. Fixed, so that results do not depend on the number of threads.
constexpr Index piece_rows = 256;

/// Inputs first .. first + count - 1 of a batch.
struct Piece {
  Index first;
  Index count;
};

/// A batch's pieces in order.
class Pieces {
 public:
  Pieces(Index inputs, Index positions)
      : inputs_{inputs},
        size_{std::clamp<Index>(piece_rows / std::max<Index>(positions, 1), 1, piece_rows)} {}

  [[nodiscard]] Index count() const { return (inputs_ + size_ - 1) / size_; }
  [[nodiscard]] Piece operator[](Index i) const { return {i * size_, std::min(size_, inputs_ - i * size_)}; }

 private:
  Index inputs_;
  Index size_;
};

/// body(i) for i < count, on `threads` threads with one of BLAS each.
template <typename Body>
void parallel(Index count, int threads, const Body& body) {
  const numerics::BlasThreads one_thread_a_task(1, numerics::threads_at_once(threads));
  if (count == 1) return body(0);
  numerics::on_threads(threads, [&] { numerics::for_each_task(count, {}, body); });
}

/// ArgumentError unless all inputs are of the form.
template <typename Scalar>
void require_form(const Inputs<Scalar>& x, const Form& form, const char* where) {
  if (x.is_masked())
    throw ArgumentError(
        fmt::format("{}: finite networks do not know masks; leave masked positions out", where));
  for (Index i = 0; i < x.size(); ++i)
    if (x.shape(i) != form.shape || x.channels() != form.channels)
      throw ArgumentError(fmt::format("{}: expected inputs of {} and {} channels, got {} and {} (input {})",
                                      where, widelimit::to_string(form.shape), form.channels,
                                      widelimit::to_string(x.shape(i)), x.channels(), i));
}

/// A piece of a batch as the first layer sees it.
template <typename Scalar>
Activations<Scalar> activations_of(const Inputs<Scalar>& x, const Form& form, const Piece& piece,
                                   const StopRequest& stop, std::uint64_t pass = 0, Index first_input = 0) {
  const Index positions = position_count(form.shape);
  Activations<Scalar> batch{Matrix<Scalar>(piece.count * positions, form.channels), piece.count, form.shape,
                            first_input + piece.first, pass};
  batch.stop = stop;
  if (!x.graphs().empty())
    batch.graphs =
        x.graphs().subspan(static_cast<std::size_t>(piece.first), static_cast<std::size_t>(piece.count));
  for (Index i = 0; i < piece.count; ++i) {
    const auto input = x[piece.first + i];
    std::copy(input.begin(), input.end(), batch.values.data() + i * positions * form.channels);
  }
  return batch;
}

/// A gradient that is 1 at one output of every input.
template <typename Scalar>
Activations<Scalar> one_output(const Activations<Scalar>& like, Index outputs, Index output) {
  auto gradient = like.with(Matrix<Scalar>::Zero(like.inputs, outputs), Shape{});
  gradient.values.col(output).setOnes();
  return gradient;
}

}  // namespace widelimit::finite

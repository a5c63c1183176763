#include "numerics/rows/linear_rows.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

// Highway 1.0.3 forgets this target where the compiler's flags make it the baseline (-march=native).
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/linear_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/lane_moves-inl.hpp"
#include "numerics/rows/row_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Scalar>
struct LinearRowLoops {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;

  enum class Ntk { none, of_zeros, of_source };

  static void scale(const DualRow<Scalar>& row) {
    for_each_vector<Scalar>(row.size, [&](auto d, auto block) {
      const auto factor = hn::Mul(block.load(d, row.left[0]), block.load(d, row.right[0]));
      block.store(d, hn::Mul(block.load(d, row.nngp), factor), row.nngp);
      if (row.ntk != nullptr) block.store(d, hn::Mul(block.load(d, row.ntk), factor), row.ntk);
    });
  }

  /// `known`: count, if it is known when compiling, else 0. The tables of pointers are copied, because stores
  /// might alias them.
  template <std::size_t known>
  static void product_sum_of(const Scalar* const* left, const Scalar* const* right, std::size_t count,
                             Scalar factor, Scalar* target, std::size_t size) {
    if constexpr (known > 0) {
      std::array<const Scalar*, known> left_rows, right_rows;
      std::copy_n(left, known, left_rows.begin());
      std::copy_n(right, known, right_rows.begin());
      add_products(left_rows, right_rows, known, factor, target, size);
    } else {
      add_products(left, right, count, factor, target, size);
    }
  }

  template <class Rows>
  static HWY_INLINE void add_products(const Rows& left, const Rows& right, std::size_t count, Scalar factor,
                                      Scalar* target, std::size_t size) {
    const std::size_t begin = add_products_by_four(left, right, count, factor, target, size);
    for_each_vector<Scalar>(size - begin, [&](auto d, auto block) {
      auto sum = hn::Zero(d);
      for (std::size_t k = 0; k < count; ++k)
        sum = hn::MulAdd(block.load(d, left[k] + begin), block.load(d, right[k] + begin), sum);
      block.store(d, hn::Mul(sum, hn::Set(d, factor)), target + begin);
    });
  }

  /// Four vectors at a time share the loads of pointers; returns where the rest begins.
  template <class Rows>
  static HWY_INLINE std::size_t add_products_by_four(const Rows& left, const Rows& right, std::size_t count,
                                                     Scalar factor, Scalar* target, std::size_t size) {
    const D d;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + 4 * lanes <= size; i += 4 * lanes) {
      V first = hn::Zero(d), second = first, third = first, fourth = first;
      for (std::size_t k = 0; k < count; ++k) {
        const Scalar *x = left[k] + i, *y = right[k] + i;
        first = hn::MulAdd(hn::LoadU(d, x), hn::LoadU(d, y), first);
        second = hn::MulAdd(hn::LoadU(d, x + lanes), hn::LoadU(d, y + lanes), second);
        third = hn::MulAdd(hn::LoadU(d, x + 2 * lanes), hn::LoadU(d, y + 2 * lanes), third);
        fourth = hn::MulAdd(hn::LoadU(d, x + 3 * lanes), hn::LoadU(d, y + 3 * lanes), fourth);
      }
      const V scale = hn::Set(d, factor);
      hn::StoreU(hn::Mul(first, scale), d, target + i);
      hn::StoreU(hn::Mul(second, scale), d, target + i + lanes);
      hn::StoreU(hn::Mul(third, scale), d, target + i + 2 * lanes);
      hn::StoreU(hn::Mul(fourth, scale), d, target + i + 3 * lanes);
    }
    return i;
  }

  static void product_sum(const Scalar* const* left, const Scalar* const* right, std::size_t count,
                          Scalar factor, Scalar* target, std::size_t size) {
    const auto sum = count == 1 ? product_sum_of<1> : count == 3 ? product_sum_of<3> : product_sum_of<0>;
    sum(left, right, count, factor, target, size);
  }

  /// The products of some left and right inputs with each other: `vectors` vectors of entries.
  template <std::size_t lefts, std::size_t rights, std::size_t vectors, class Load, class Store>
  static HWY_INLINE void multiply_vectors(const Scalar* const* left, const Scalar* const* right,
                                          std::size_t count, Scalar factor, Scalar* const* targets,
                                          std::size_t target_step, const Load& load, const Store& store) {
    const D d;
    V sums[lefts][rights][vectors];
    for (auto& row : sums)
      for (auto& sum : row)
        for (V& vector : sum) vector = hn::Zero(d);
    for (std::size_t k = 0; k < count; ++k)
      for (std::size_t a = 0; a < lefts; ++a)
        for (std::size_t v = 0; v < vectors; ++v) {
          const V number = load(left[a * count + k], v);
          for (std::size_t b = 0; b < rights; ++b)
            sums[a][b][v] = hn::MulAdd(number, load(right[b * count + k], v), sums[a][b][v]);
        }
    const V scale = hn::Set(d, factor);
    for (std::size_t a = 0; a < lefts; ++a)
      for (std::size_t b = 0; b < rights; ++b)
        for (std::size_t v = 0; v < vectors; ++v)
          store(hn::Mul(sums[a][b][v], scale), targets[a * target_step + b], v);
  }

  /// Entries from `begin` to `end`.
  template <std::size_t lefts, std::size_t rights>
  static void multiply_some(const Scalar* const* left, const Scalar* const* right, std::size_t count,
                            Scalar factor, Scalar* const* targets, std::size_t target_step, std::size_t begin,
                            std::size_t end) {
    const D d;
    const std::size_t lanes = hn::Lanes(d);
    // Two vectors share the loads of pointers, if there are registers for their sums.
    constexpr std::size_t vectors = lefts * rights > 4 ? 1 : 2;
    std::size_t i = begin;
    for (; i + vectors * lanes <= end; i += vectors * lanes)
      multiply_vectors<lefts, rights, vectors>(
          left, right, count, factor, targets, target_step,
          [&](const Scalar* row, std::size_t v) HWY_ATTR { return hn::LoadU(d, row + i + v * lanes); },
          [&](V value, Scalar* row, std::size_t v) HWY_ATTR { hn::StoreU(value, d, row + i + v * lanes); });
    for_each_vector<Scalar>(end - i, [&](auto tag, auto block) HWY_ATTR {
      multiply_vectors<lefts, rights, 1>(
          left, right, count, factor, targets, target_step,
          [&](const Scalar* row, std::size_t) HWY_ATTR { return block.load(tag, row + i); },
          [&](V value, Scalar* row, std::size_t) HWY_ATTR { block.store(tag, value, row + i); });
    });
  }

  using Multiply = void (*)(const Scalar* const*, const Scalar* const*, std::size_t, Scalar, Scalar* const*,
                            std::size_t, std::size_t, std::size_t);
  static constexpr std::array<std::array<Multiply, 3>, 3> multiply_by_inputs{
      {{multiply_some<1, 1>, multiply_some<1, 2>, multiply_some<1, 3>},
       {multiply_some<2, 1>, multiply_some<2, 2>, multiply_some<2, 3>},
       {multiply_some<3, 1>, multiply_some<3, 2>, multiply_some<3, 3>}}};

  /// Three or two left and right inputs at a time, as many entries as stay in the first-level cache
  /// meanwhile.
  static void product_sums(const Scalar* const* left, std::size_t lefts, const Scalar* const* right,
                           std::size_t rights, std::size_t count, Scalar factor, Scalar* const* targets,
                           std::size_t size) {
    constexpr std::size_t entries = 1024 / sizeof(Scalar);
    const auto at_once = [](std::size_t left_over) -> std::size_t {
      return left_over == 2 || left_over == 4 ? 2 : std::min<std::size_t>(left_over, 3);
    };
    for (std::size_t begin = 0; begin < size; begin += entries)
      for (std::size_t a = 0; a < lefts; a += at_once(lefts - a))
        for (std::size_t b = 0; b < rights; b += at_once(rights - b)) {
          const Multiply multiply = multiply_by_inputs[at_once(lefts - a) - 1][at_once(rights - b) - 1];
          multiply(left + a * count, right + b * count, count, factor, targets + a * rights + b, rights,
                   begin, std::min(begin + entries, size));
        }
  }

  /// `known`: taps.count, if it is known when compiling, else 0.
  template <std::size_t known, class Block>
  static HWY_INLINE V tap_sum(D d, const Block& block, const Scalar* source, const Taps& taps) {
    const std::size_t count = known > 0 ? known : taps.count;
    V sum = block.load(d, source + taps.first);
    for (std::size_t t = 1; t < count; ++t)
      sum = hn::Add(sum, block.load(d, source + taps.first + static_cast<std::ptrdiff_t>(t) * taps.step));
    return sum;
  }

  template <std::size_t known>
  static void window_sum(const Scalar* source, const Taps& taps, Scalar* target, std::size_t size) {
    for_each_vector<Scalar>(
        size, [&](auto d, auto block) { block.store(d, tap_sum<known>(d, block, source, taps), target); });
  }

  /// Sums along all axes but the last; returns the row that holds them.
  static const Scalar* partial_sums(const Convolution& convolution, const Scalar* source,
                                    Scalar* const* scratch, std::size_t size) {
    for (std::size_t k = 0; k + 1 < convolution.axis_count; ++k) {
      const Taps& taps = convolution.axes[k];
      (taps.count == 3 ? window_sum<3> : window_sum<0>)(source, taps, scratch[k], size);
      source = scratch[k];
    }
    return source;
  }

  /// The last axis: target[i] = start(i) + scale sum.
  template <std::size_t known, class Start>
  static HWY_INLINE void last_sum(const Convolution& convolution, const Scalar* source, Scalar* target,
                                  std::size_t size, const Start& start) {
    const Taps taps = convolution.axes[convolution.axis_count - 1];
    const auto scale = static_cast<Scalar>(convolution.scale);
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      const V sum = tap_sum<known>(d, block, source, taps);
      block.store(d, hn::MulAdd(hn::Set(d, scale), sum, start(d, block)), target);
    });
  }

  template <std::size_t known>
  static void convolve_by(const Convolution& convolution, const Scalar* source_nngp, const Scalar* source_ntk,
                          Scalar* const* scratch, Scalar* nngp, Scalar* ntk, std::size_t size) {
    const auto bias = static_cast<Scalar>(convolution.bias);
    last_sum<known>(convolution, partial_sums(convolution, source_nngp, scratch, size), nngp, size,
                    [bias](auto d, auto) { return hn::Set(d, bias); });
    if (ntk == nullptr) return;
    last_sum<known>(convolution, partial_sums(convolution, source_ntk, scratch, size), ntk, size,
                    [nngp](auto d, auto block) { return block.load(d, nngp); });
  }

// Windows of 3 x 3 and of 9 move entries between vectors, which Highway does within blocks of vectors only.
#if WIDELIMIT_MOVES_LANES
  static constexpr int vector_lanes = 64 / sizeof(Scalar);

  /// 3 x 3 windows around an entry: sums along the second axis stay in registers, and those of their
  /// neighbours along the first one are moved vectors.
  class Window3x3 {
   public:
    Window3x3(const Scalar* source, const Convolution& convolution)
        : source_{source + convolution.axes[1].first},
          step_{convolution.axes[1].step},
          before_{at(-vector_lanes)},
          here_{at(0)} {}

    static bool fits(const Convolution& convolution) {
      const Taps& taps = convolution.axes[0];
      return convolution.axis_count == 2 && taps.first == -1 && taps.step == 1 && taps.count == 3 &&
             convolution.axes[1].count == 3;
    }

    /// The sums of entries i, i + 1, ...; i grows by a vector from call to call.
    HWY_INLINE V next(std::ptrdiff_t i, bool /*is_last*/) {
      const V after = at(i + vector_lanes);
      const V sum = hn::Add(hn::Add(entries_from<vector_lanes - 1>(D(), before_, here_), here_),
                            entries_from<1>(D(), here_, after));
      before_ = here_;
      here_ = after;
      return sum;
    }

   private:
    HWY_INLINE V at(std::ptrdiff_t i) const {
      const D d;
      const Scalar* entry = source_ + i;
      return hn::Add(hn::Add(hn::LoadU(d, entry), hn::LoadU(d, entry + step_)),
                     hn::LoadU(d, entry + 2 * step_));
    }

    const Scalar* source_;
    std::ptrdiff_t step_;
    V before_;
    V here_;
  };

  /// Windows of 9 along one axis: sums of 3, and sums of 3 of these.
  class Window9 {
   public:
    Window9(const Scalar* source, const Convolution& convolution)
        : source_{source + convolution.axes[0].first},
          next_{at(vector_lanes)},
          threes_{three(at(0), next_)} {}

    static bool fits(const Convolution& convolution) {
      return convolution.axis_count == 1 && convolution.axes[0].step == 1 && convolution.axes[0].count == 9;
    }

    /// As above. What the last vector does not need is not read.
    HWY_INLINE V next(std::ptrdiff_t i, bool is_last) {
      const V after = is_last ? hn::Zero(D()) : at(i + 2 * vector_lanes);
      const V next_threes = three(next_, after);
      const V sum = hn::Add(hn::Add(threes_, entries_from<3>(D(), threes_, next_threes)),
                            entries_from<6>(D(), threes_, next_threes));
      next_ = after;
      threes_ = next_threes;
      return sum;
    }

   private:
    HWY_INLINE V at(std::ptrdiff_t i) const { return hn::LoadU(D(), source_ + i); }
    static HWY_INLINE V three(V here, V after) {
      return hn::Add(hn::Add(here, entries_from<1>(D(), here, after)), entries_from<2>(D(), here, after));
    }

    const Scalar* source_;
    V next_;
    V threes_;
  };

  template <class Window, Ntk wanted>
  static void convolve_by_window(const Convolution& convolution, const Scalar* source_nngp,
                                 const Scalar* source_ntk, Scalar* nngp, Scalar* ntk, std::size_t size) {
    const D d;
    const V scale = hn::Set(d, static_cast<Scalar>(convolution.scale)),
            bias = hn::Set(d, static_cast<Scalar>(convolution.bias));
    Window window(source_nngp, convolution);
    Window ntk_window(wanted == Ntk::of_source ? source_ntk : source_nngp, convolution);
    const auto count = static_cast<std::ptrdiff_t>(size);
    for (std::ptrdiff_t i = 0; i < count; i += vector_lanes) {
      const bool is_last = i + vector_lanes >= count;
      const V value = hn::MulAdd(scale, window.next(i, is_last), bias);
      hn::StoreU(value, d, nngp + i);
      if constexpr (wanted == Ntk::of_zeros) hn::StoreU(value, d, ntk + i);
      if constexpr (wanted == Ntk::of_source)
        hn::StoreU(hn::MulAdd(scale, ntk_window.next(i, is_last), value), d, ntk + i);
    }
  }

  template <class Window>
  static void convolve_window(const Convolution& convolution, const Scalar* source_nngp,
                              const Scalar* source_ntk, Scalar* nngp, Scalar* ntk, std::size_t size) {
    const auto by_window = ntk == nullptr          ? convolve_by_window<Window, Ntk::none>
                           : source_ntk == nullptr ? convolve_by_window<Window, Ntk::of_zeros>
                                                   : convolve_by_window<Window, Ntk::of_source>;
    by_window(convolution, source_nngp, source_ntk, nngp, ntk, size);
  }

  /// False, and nothing done, if there is no such kernel for the window.
  static bool convolve_in_registers(const Convolution& convolution, const Scalar* source_nngp,
                                    const Scalar* source_ntk, Scalar* nngp, Scalar* ntk, std::size_t size) {
    if (size % vector_lanes != 0) return false;
    const bool is_3x3 = Window3x3::fits(convolution), is_9 = Window9::fits(convolution);
    if (is_3x3) convolve_window<Window3x3>(convolution, source_nngp, source_ntk, nngp, ntk, size);
    if (is_9) convolve_window<Window9>(convolution, source_nngp, source_ntk, nngp, ntk, size);
    return is_3x3 || is_9;
  }
#else
  static bool convolve_in_registers(const Convolution&, const Scalar*, const Scalar*, Scalar*, Scalar*,
                                    std::size_t) {
    return false;
  }
#endif

  static void convolve(const Convolution& convolution, const Scalar* source_nngp, const Scalar* source_ntk,
                       Scalar* const* scratch, Scalar* nngp, Scalar* ntk, std::size_t size) {
    if (convolve_in_registers(convolution, source_nngp, source_ntk, nngp, ntk, size)) return;
    if (ntk != nullptr && source_ntk == nullptr) {
      convolve(convolution, source_nngp, nullptr, scratch, nngp, nullptr, size);
      std::copy_n(nngp, size, ntk);
      return;
    }
    const bool three = convolution.axes[convolution.axis_count - 1].count == 3;
    (three ? convolve_by<3> : convolve_by<0>)(convolution, source_nngp, source_ntk, scratch, nngp, ntk, size);
  }

  /// Copies a row and puts zeros behind it, as far as `end`. Whole vectors are written.
  static HWY_INLINE void pack_row(const Scalar* source, std::size_t size, Scalar* target, std::size_t end) {
    const D d;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= size; i += lanes) hn::StoreU(hn::LoadU(d, source + i), d, target + i);
    if (i == end) return;
    hn::StoreU(hn::IfThenElseZero(hn::FirstN(d, size - i), hn::LoadU(d, source + i)), d, target + i);
    for (i += lanes; i < end; i += lanes) hn::StoreU(hn::Zero(d), d, target + i);
  }

  static void pack(const Scalar* source, std::ptrdiff_t source_step, std::size_t rows, std::size_t row_size,
                   Scalar* target, std::size_t target_step) {
    for (std::size_t row = 0; row < rows; ++row, source += source_step, target += target_step)
      pack_row(source, row_size, target, target_step);
  }

  static void pack_pieces(const RowBlock<Scalar>& first, const RowBlock<Scalar>& second,
                          std::size_t second_start, std::size_t rows, Scalar* target,
                          std::size_t target_step) {
    const Scalar *in_first = first.first, *in_second = second.first;
    for (std::size_t row = 0; row < rows; ++row, target += target_step) {
      pack_row(in_first, first.size, target, second_start);
      pack_row(in_second, second.size, target + second_start, target_step - second_start);
      in_first += first.step;
      in_second += second.step;
    }
  }

  static void weighted_sum(const Scalar* first, const Scalar* second, const std::array<Scalar, 2>& factors,
                           Scalar* target, std::size_t size) {
    const Scalar first_factor = factors[0], second_factor = factors[1];
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      const V begin = hn::Mul(hn::Set(d, first_factor), block.load(d, first));
      block.store(d, hn::MulAdd(hn::Set(d, second_factor), block.load(d, second), begin), target);
    });
  }

  static void add(const Scalar* source, Scalar factor, Scalar* target, std::size_t size) {
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      block.store(d, hn::MulAdd(hn::Set(d, factor), block.load(d, source), block.load(d, target)), target);
    });
  }

  /// Four sums side by side: one alone would wait for itself.
  static double sum(const Scalar* source, std::size_t size) {
    const D d;
    const std::size_t lanes = hn::Lanes(d), step = 4 * lanes, blocks = size / step * step;
    V first = hn::Zero(d), second = first, third = first, fourth = first;
    for (std::size_t i = 0; i < blocks; i += step) {
      first = hn::Add(first, hn::LoadU(d, source + i));
      second = hn::Add(second, hn::LoadU(d, source + i + lanes));
      third = hn::Add(third, hn::LoadU(d, source + i + 2 * lanes));
      fourth = hn::Add(fourth, hn::LoadU(d, source + i + 3 * lanes));
    }
    for_each_vector<Scalar>(size - blocks, [&](auto tag, auto block) {
      first = hn::Add(first, block.load(tag, source + blocks));
    });
    const V all = hn::Add(hn::Add(first, second), hn::Add(third, fourth));
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, all)));
  }

  static double dot(const Scalar* left, const Scalar* right, std::size_t size) {
    const D d;
    V sum = hn::Zero(d);
    for_each_vector<Scalar>(size, [&](auto tag, auto block) {
      sum = hn::MulAdd(block.load(tag, left), block.load(tag, right), sum);
    });
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }

  /// Zero times an entry is zero if it is finite, else NaN, which stays in the sum.
  static bool all_finite(const Scalar* source, std::size_t size) {
    const D d;
    V sum = hn::Zero(d);
    for_each_vector<Scalar>(
        size, [&](auto tag, auto block) { sum = hn::MulAdd(block.load(tag, source), hn::Zero(tag), sum); });
    return hn::GetLane(hn::SumOfLanes(d, sum)) == 0;
  }
};

template <typename Scalar>
constexpr LinearRows<Scalar> table = {
    LinearRowLoops<Scalar>::scale,        LinearRowLoops<Scalar>::product_sum,
    LinearRowLoops<Scalar>::product_sums, LinearRowLoops<Scalar>::convolve,
    LinearRowLoops<Scalar>::pack,         LinearRowLoops<Scalar>::pack_pieces,
    LinearRowLoops<Scalar>::weighted_sum, LinearRowLoops<Scalar>::add,
    LinearRowLoops<Scalar>::sum,          LinearRowLoops<Scalar>::dot,
    LinearRowLoops<Scalar>::all_finite};

const LinearRows<float>* float_table() { return &table<float>; }
const LinearRows<double>* double_table() { return &table<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(float_table);
HWY_EXPORT(double_table);

// The choice is made once: a dispatch for every row would cost as much as a short row.
template <>
const LinearRows<float>& linear_rows() {
  static const LinearRows<float>& rows = *HWY_DYNAMIC_DISPATCH(float_table)();
  return rows;
}

template <>
const LinearRows<double>& linear_rows() {
  static const LinearRows<double>& rows = *HWY_DYNAMIC_DISPATCH(double_table)();
  return rows;
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE

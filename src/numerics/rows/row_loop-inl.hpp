// Included once for every instruction set: the guard follows Highway's convention.
#if defined(WIDELIMIT_ROW_LOOP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WIDELIMIT_ROW_LOOP_INL
#undef WIDELIMIT_ROW_LOOP_INL
#else
#define WIDELIMIT_ROW_LOOP_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {

/// A whole vector's worth of entries, beginning at `begin`.
struct WholeBlock {
  std::size_t begin;

  template <class D>
  HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load(D d, const hwy::HWY_NAMESPACE::TFromD<D>* row) const {
    return hwy::HWY_NAMESPACE::LoadU(d, row + begin);
  }
  template <class D>
  HWY_INLINE void store(D d, hwy::HWY_NAMESPACE::Vec<D> value, hwy::HWY_NAMESPACE::TFromD<D>* row) const {
    hwy::HWY_NAMESPACE::StoreU(value, d, row + begin);
  }
};

/// The entries after the last whole vector. Nothing beyond the row is touched, and every entry still sees
/// the vector instructions: with masks where they do not fault, else through a buffer.
struct TailBlock {
  std::size_t begin;
  std::size_t count;

  template <class D>
  HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load(D d, const hwy::HWY_NAMESPACE::TFromD<D>* row) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    using Scalar = hwy::HWY_NAMESPACE::TFromD<D>;
    HWY_ALIGN Scalar buffer[HWY_MAX_BYTES / sizeof(Scalar)] = {};
    std::copy_n(row + begin, count, buffer);
    return hwy::HWY_NAMESPACE::Load(d, buffer);
#else
    return hwy::HWY_NAMESPACE::MaskedLoad(hwy::HWY_NAMESPACE::FirstN(d, count), d, row + begin);
#endif
  }
  template <class D>
  HWY_INLINE void store(D d, hwy::HWY_NAMESPACE::Vec<D> value, hwy::HWY_NAMESPACE::TFromD<D>* row) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    using Scalar = hwy::HWY_NAMESPACE::TFromD<D>;
    HWY_ALIGN Scalar buffer[HWY_MAX_BYTES / sizeof(Scalar)];
    hwy::HWY_NAMESPACE::Store(value, d, buffer);
    std::copy_n(buffer, count, row + begin);
#else
    hwy::HWY_NAMESPACE::BlendedStore(value, hwy::HWY_NAMESPACE::FirstN(d, count), d, row + begin);
#endif
  }
};

/// Calls body(d, block) for every vector of a row of `size` entries.
template <typename Scalar, class Body>
HWY_INLINE void for_each_vector(std::size_t size, const Body& body) {
  const hwy::HWY_NAMESPACE::ScalableTag<Scalar> d;
  const std::size_t lanes = hwy::HWY_NAMESPACE::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) body(d, WholeBlock{i});
  if (i < size) body(d, TailBlock{i, size - i});
}

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per-target guard

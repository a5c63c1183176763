#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "widelimit/error.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/matrix.hpp"

/// NumPy arrays in and out. Arrays come in row-major and of the element type that is asked for (the Python side
/// converts others), and are not copied.
namespace widelimit::python {

template <typename Scalar>
using Array = nanobind::ndarray<const Scalar, nanobind::c_contig, nanobind::device::cpu>;

template <typename Scalar>
using NumpyArray = nanobind::ndarray<nanobind::numpy, Scalar>;

inline bool is_any_object(PyObject*) { return true; }

/// An array of NumPy as what functions give, for the stubs of the module.
class DoubleArrayObject : public nanobind::object {
  NB_OBJECT_DEFAULT(DoubleArrayObject, object, "numpy.typing.NDArray[numpy.float64]", is_any_object)
};
class FloatArrayObject : public nanobind::object {
  NB_OBJECT_DEFAULT(FloatArrayObject, object, "numpy.typing.NDArray[numpy.float32]", is_any_object)
};
template <typename Scalar>
using ArrayObject = std::conditional_t<std::is_same_v<Scalar, float>, FloatArrayObject, DoubleArrayObject>;

/// What a function takes that converts by itself: anything of which widelimit._arrays.numbers() makes an array.
class ArrayLikeObject : public nanobind::object {
  NB_OBJECT_DEFAULT(ArrayLikeObject, object, "numpy.typing.ArrayLike", is_any_object)
};

/// TypeError, which names the argument, for anything else than real numbers.
inline Array<double> numbers_of(const ArrayLikeObject& array, const char* name) {
  return nanobind::cast<Array<double>>(
      nanobind::module_::import_("widelimit._arrays").attr("numbers")(array, nanobind::arg("name") = name));
}

/// TypeError, which names the argument, for anything else than integers.
inline Array<std::int64_t> integers_of(const ArrayLikeObject& array, const char* name) {
  return nanobind::cast<Array<std::int64_t>>(
      nanobind::module_::import_("widelimit._arrays").attr("integer_array")(array, name));
}

/// One number of an argument that converts by itself. TypeError, which names it, for anything else.
inline double real_of(const nanobind::object& value, const char* name) {
  return nanobind::cast<double>(nanobind::module_::import_("widelimit._arrays").attr("real")(value, name));
}
/// The same of a whole number, at least 0; ValueError below.
inline Index whole_of(const nanobind::object& value, const char* name) {
  const nanobind::object number = nanobind::module_::import_("widelimit._arrays").attr("whole")(value, name);
  Index result = 0;
  if (!nanobind::try_cast(number, result))
    throw ArgumentError(
        fmt::format("{}: expected an integer of 64 bits, got {}", name, nanobind::str(number).c_str()));
  return result;
}

template <typename Scalar>
std::vector<Index> dimensions_of(const Array<Scalar>& array) {
  std::vector<Index> dimensions;
  for (std::size_t axis = 0; axis < array.ndim(); ++axis)
    dimensions.push_back(static_cast<Index>(array.shape(axis)));
  return dimensions;
}

/// A view: the array must live as long.
template <typename Scalar>
Inputs<Scalar> inputs_of(const Array<Scalar>& array) {
  return Inputs<Scalar>(array.data(), dimensions_of(array));
}

/// A ragged batch; copied.
template <typename Scalar>
Inputs<Scalar> inputs_of(const std::vector<Array<Scalar>>& arrays) {
  std::vector<xt::xarray<Scalar>> inputs;
  for (const Array<Scalar>& array : arrays) {
    const auto dimensions = dimensions_of(array);
    xt::xarray<Scalar> input(std::vector<std::size_t>(dimensions.begin(), dimensions.end()));
    std::copy(array.data(), array.data() + array.size(), input.begin());
    inputs.push_back(std::move(input));
  }
  return Inputs<Scalar>(std::move(inputs));
}

/// A vector or a matrix as a matrix.
template <typename Scalar>
Matrix<Scalar> matrix_of(const Array<Scalar>& array) {
  const Index rows = array.ndim() == 0 ? 1 : static_cast<Index>(array.shape(0));
  Index columns = 1;
  for (std::size_t axis = 1; axis < array.ndim(); ++axis) columns *= static_cast<Index>(array.shape(axis));
  return Eigen::Map<const Matrix<Scalar>>(array.data(), rows, columns);
}

/// The same of a function's argument; ArgumentError, which names it, for
/// more than two axes, TypeError as of numbers_of().
inline Matrix<double> matrix_of(const ArrayLikeObject& array, const char* name) {
  const Array<double> numbers = numbers_of(array, name);
  if (numbers.ndim() > 2)
    throw ArgumentError(
        fmt::format("{}: expected a matrix or a vector, got an array of {} axes", name, numbers.ndim()));
  return matrix_of(numbers);
}

/// ArgumentError, which names the argument, for anything but one axis, TypeError as of numbers_of().
inline Vector<double> vector_of(const ArrayLikeObject& array, const char* name) {
  const Array<double> numbers = numbers_of(array, name);
  if (numbers.ndim() != 1)
    throw ArgumentError(fmt::format("{}: expected a vector, got an array of {} axes", name, numbers.ndim()));
  return Eigen::Map<const Vector<double>>(numbers.data(), static_cast<Index>(numbers.size()));
}

/// An array that owns the matrix's numbers.
template <typename Scalar>
ArrayObject<Scalar> array_of(Matrix<Scalar> matrix) {
  auto* owned = new Matrix<Scalar>(std::move(matrix));
  const nanobind::capsule owner(owned,
                                [](void* pointer) noexcept { delete static_cast<Matrix<Scalar>*>(pointer); });
  return nanobind::borrow<ArrayObject<Scalar>>(nanobind::cast(NumpyArray<Scalar>(
      owned->data(), {static_cast<std::size_t>(owned->rows()), static_cast<std::size_t>(owned->cols())},
      owner)));
}

/// None for what was not computed, which is an empty matrix. So are kernels of batches without inputs: they are what is
/// `wanted`.
template <typename Scalar>
nanobind::object array_or_none(Matrix<Scalar> matrix, bool wanted = false) {
  if (matrix.size() == 0 && !wanted) return nanobind::none();
  return array_of(std::move(matrix));
}

template <typename Scalar>
ArrayObject<Scalar> array_of(Vector<Scalar> vector) {
  auto* owned = new Vector<Scalar>(std::move(vector));
  const nanobind::capsule owner(owned,
                                [](void* pointer) noexcept { delete static_cast<Vector<Scalar>*>(pointer); });
  return nanobind::borrow<ArrayObject<Scalar>>(
      nanobind::cast(NumpyArray<Scalar>(owned->data(), {static_cast<std::size_t>(owned->size())}, owner)));
}

}  // namespace widelimit::python

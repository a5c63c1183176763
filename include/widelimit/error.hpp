#pragma once

#include <stdexcept>
#include <string>

/// The exceptions that the library throws. Every message says where, what was expected, what came and, where it helps,
/// what to do.
namespace widelimit {

/// Base of all errors of this library.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An argument of a function is out of range, or two arguments do not fit each other.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

/// A network cannot be built or cannot be applied to inputs of the given shape; the message names the layer's
/// path.
class NetworkError : public Error {
 public:
  using Error::Error;
};

/// A file is missing, malformed or of an unsupported form; the message names the file and the offset or line.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A computation could not be carried out in floating point, e.g. a matrix is not positive definite.
class NumericalError : public Error {
 public:
  using Error::Error;
};

/// The caller asked a long computation to stop.
class Cancelled : public Error {
 public:
  using Error::Error;
};

}  // namespace widelimit

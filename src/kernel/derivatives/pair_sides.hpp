#pragma once

#include "kernel/derivatives/input_record.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

/// The two inputs of a pair, and where the adjoints of what is recorded of them are summed up.
template <typename Scalar>
struct PairSides {
  InputRecord<Scalar>* left;
  InputRecord<Scalar>* right;
  RecordAdjoint<Scalar>* left_adjoint;
  RecordAdjoint<Scalar>* right_adjoint;
  bool same_input;  ///< One input with itself: at offset 0 covariances are variances.
  bool
      recording;  ///< Variances and states are recorded on the way forth, and their adjoints join in on the way back.
};

}  // namespace widelimit

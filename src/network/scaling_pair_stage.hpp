#pragma once

namespace widelimit {

/// A pair stage that leaves shapes as they are, with K'_ab = r_a K_ab r'_b and T'_ab = r_a T_ab r'_b, where r [d] is
/// its state of an input. Norms over some axes are such stages.
class ScalingPairStage {
 public:
  virtual ~ScalingPairStage() = default;
};

}  // namespace widelimit

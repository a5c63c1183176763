#include "kernel/backends/cpu/planes/plane_layout.hpp"

namespace widelimit {

Index PlaneLayout::margin() const { return guard[0] * stride[0] + guard[1] * stride[1] + guard[2]; }

}  // namespace widelimit

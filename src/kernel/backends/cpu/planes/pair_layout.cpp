#include "kernel/backends/cpu/planes/pair_layout.hpp"

namespace widelimit {

PairLayout::PairLayout(const Program& pair_program, const PairDemand& demand, const Shape& left,
                       const Shape& right)
    : program{pair_program},
      purpose{demand.purpose},
      kernel{demand.kernel},
      geometry{make_geometry(program, left, right, demand.purpose, demand.everything)},
      stores{place_stores(program, geometry, demand.kernel)},
      planes{plane_sizes(program, geometry)} {}

}  // namespace widelimit

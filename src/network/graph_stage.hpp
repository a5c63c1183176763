#pragma once

namespace widelimit {

/// Marks pair stages that read the inputs' graphs. Nodes with equal surroundings are common there and perfectly
/// correlated. The engine therefore computes networks with such a stage in double (docs/theory/graphs.md, section 3).
class GraphStage {
 public:
  virtual ~GraphStage() = default;
};

}  // namespace widelimit

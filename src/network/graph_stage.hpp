#pragma once

namespace widelimit {

/// A pair stage that reads the inputs' graphs. Nodes with equal surroundings are common there, and perfectly
/// correlated, so that networks with such a stage are computed in double (docs/theory/graphs.md, section 3).
class GraphStage {
 public:
  virtual ~GraphStage() = default;
};

}  // namespace widelimit

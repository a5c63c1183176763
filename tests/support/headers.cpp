// Nothing: the target of this file compiles the headers that the tests share (CMakeLists.txt).

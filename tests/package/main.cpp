// A user's program: only installed headers, only the public API.
#include <cstdio>
#include <string>

#include "tenon/dtype.h"
#include "tenon/error.h"

int main() {
  const tenon::Error error(tenon::ErrorKind::type, "expected " + std::string(name_of(tenon::DType::bf16)));
  std::puts(error.what());
  return std::string(error.what()) == "type error: expected bf16" ? 0 : 1;
}

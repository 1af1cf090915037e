// See backend.h.
#include "runtime/backend.h"

#include "tenon/error.h"

namespace tenon::runtime {

EncodedTensorMap Backend::encode(const codegen::TensorMap&, const Bindings&) const {
  throw Error(ErrorKind::unsupported, "this target has no tensor maps", {}, "run on target cuda, on sm_90 or later");
}

}  // namespace tenon::runtime

// Looks up a prelude file by name in the generated table.
#include "codegen/prelude/prelude.h"

#include <string>

#include "ir/graph/check.h"

namespace tenon::codegen {

std::string_view prelude_file(std::string_view name) {
  for (const PreludeFile& file : prelude_files())
    if (file.name == name) return file.text;
  ir::fail_check("prelude file exists", __FILE__, __LINE__, "no prelude file " + std::string(name));
}

}  // namespace tenon::codegen

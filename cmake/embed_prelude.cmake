# Run by the build: turns FILES (separated by |) into OUTPUT, the definition of tenon::codegen::prelude_files().
cmake_minimum_required(VERSION 3.25)
string(REPLACE "|" ";" FILES "${FILES}")
set(rows "")
foreach(path IN LISTS FILES)
  get_filename_component(name ${path} NAME)
  file(READ ${path} text)
  if(text MATCHES "[)]prelude\"")
    message(FATAL_ERROR "${path}: holds )prelude\", which ends the raw string literal it is embedded in")
  endif()
  string(APPEND rows "    {\"${name}\", R\"prelude(${text})prelude\"},\n")
endforeach()
file(WRITE ${OUTPUT}.new "// Generated from codegen/prelude/*.cuh by cmake/embed_prelude.cmake.
#include \"codegen/prelude/prelude.h\"

namespace tenon::codegen {

std::vector<PreludeFile> prelude_files() {
  return {
${rows}  };
}

}  // namespace tenon::codegen
")
file(RENAME ${OUTPUT}.new ${OUTPUT})

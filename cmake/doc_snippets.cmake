# The C++ snippets of a Markdown page as one program: each ```cpp block becomes the body of a function, with #line
# pointing into the page, and main() calls them in order. A block ```cpp declarations stands as it is, for those below
# it. Written when the page changes.
function(tenon_write_snippets page output)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
  file(READ ${page} rest)
  set(fence "```")
  set(functions "")
  set(calls "")
  set(line 1)
  set(count 0)
  string(FIND "${rest}" "\n${fence}cpp" at)
  while(at GREATER_EQUAL 0)
    math(EXPR at "${at} + 7")
    string(SUBSTRING "${rest}" 0 ${at} before)
    string(SUBSTRING "${rest}" ${at} -1 rest)
    string(FIND "${rest}" "\n" end)
    string(SUBSTRING "${rest}" 0 ${end} kind)
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${rest}" ${end} -1 rest)
    string(FIND "${rest}" "\n${fence}" end)
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${rest}" 0 ${end} body)
    string(SUBSTRING "${rest}" ${end} -1 rest)
    string(REGEX REPLACE "[^\n]" "" newlines "${before}")
    string(LENGTH "${newlines}" lines)
    math(EXPR line "${line} + ${lines} + 1")
    math(EXPR count "${count} + 1")
    if(kind STREQUAL " declarations")
      string(APPEND functions "#line ${line} \"${page}\"\n${body}\n")
    else()
      string(APPEND functions "void snippet_${count}() {\n#line ${line} \"${page}\"\n${body}}\n\n")
      string(APPEND calls "  snippet_${count}();\n")
    endif()
    string(REGEX REPLACE "[^\n]" "" newlines "${body}")
    string(LENGTH "${newlines}" lines)
    math(EXPR line "${line} + ${lines}")
    string(FIND "${rest}" "\n${fence}cpp" at)
  endwhile()
  set(text "#undef NDEBUG
#include <cassert>
#include <cmath>
#include <cstdio>
#include <thread>

#include \"tenon/tenon.h\"

using namespace tenon;

namespace {

${functions}}  // namespace

int main() {
${calls}}
")
  set(written "")
  if(EXISTS ${output})
    file(READ ${output} written)
  endif()
  if(NOT written STREQUAL text)
    file(WRITE ${output} "${text}")
  endif()
endfunction()

# The first ```cpp block of a Markdown page, which is a whole program.
function(tenon_write_program page output)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
  file(READ ${page} text)
  string(FIND "${text}" "```cpp\n" begin)
  math(EXPR begin "${begin} + 7")
  string(SUBSTRING "${text}" ${begin} -1 text)
  string(FIND "${text}" "\n```" end)
  math(EXPR end "${end} + 1")
  string(SUBSTRING "${text}" 0 ${end} text)
  file(CONFIGURE OUTPUT ${output} CONTENT "${text}" @ONLY)
endfunction()

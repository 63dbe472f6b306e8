# SPDX-License-Identifier: Apache-2.0
# The web page inside the program: web/dist, which './do page' builds with npm,
# as two strings. Without it culprit is built all the same, and what needs the
# page says so.
set(page_script ${CMAKE_SOURCE_DIR}/web/dist/page.js)
set(page_style ${CMAKE_SOURCE_DIR}/web/dist/page.css)
set(page_source ${CMAKE_BINARY_DIR}/page/embedded_page.cc)

function(culprit_bytes path out)
  if(EXISTS ${path})
    file(READ ${path} hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
    set(${out} "${bytes}" PARENT_SCOPE)
  else()
    set(${out} "" PARENT_SCOPE)
  endif()
endfunction()

# A page that is built later is seen by the next build.
file(GLOB page_files CONFIGURE_DEPENDS ${page_script} ${page_style})
if(EXISTS ${page_script} AND EXISTS ${page_style})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page_script} ${page_style})
else()
  message(STATUS "No web/dist here ('./do page' builds it): culprit is built without its web page")
endif()
culprit_bytes(${page_script} page_script_bytes)
culprit_bytes(${page_style} page_style_bytes)
file(CONFIGURE OUTPUT ${page_source} CONTENT [[
#include <string_view>
namespace culprit::page::embedded {
namespace {
constexpr char kScriptBytes[] = {@page_script_bytes@ '\0'};
constexpr char kStyleBytes[] = {@page_style_bytes@ '\0'};
}  // namespace
extern const std::string_view kScript;
extern const std::string_view kStyle;
const std::string_view kScript(kScriptBytes, sizeof(kScriptBytes) - 1);
const std::string_view kStyle(kStyleBytes, sizeof(kStyleBytes) - 1);
}  // namespace culprit::page::embedded
]] @ONLY)
target_sources(culprit_page PRIVATE ${page_source})
set_source_files_properties(${page_source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

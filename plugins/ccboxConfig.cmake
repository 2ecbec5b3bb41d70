# find_package(ccbox): for projects that make plugins.
#   ccbox::abi                    include directory of ccbox/plugin.h and ccbox/plugin.hpp
#   ccbox_add_plugin(NAME ...)    a module that exports exactly one symbol, see ccbox_add_plugin.cmake
#   ccbox::command                the installed program, for `ccbox plugin test`
include(${CMAKE_CURRENT_LIST_DIR}/ccboxTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/ccbox_add_plugin.cmake)
get_filename_component(ccbox_prefix ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
if(NOT TARGET ccbox::command AND EXISTS ${ccbox_prefix}/bin/ccbox)
  add_executable(ccbox::command IMPORTED)
  set_target_properties(ccbox::command PROPERTIES IMPORTED_LOCATION ${ccbox_prefix}/bin/ccbox)
endif()

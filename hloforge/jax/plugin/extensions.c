/* Extensions: the layouts of arrays, and how those of programs of several devices are cut.
 *
 * All arrays lie row after row: a layout is its rank's text, "{1,0}".
 */

#include <stdio.h>
#include <string.h>

#include "plugin.h"

typedef struct {
  PJRT_Extension base;
  PJRT_Function destroy, serialize, client_default, of_buffer, topology_default, of_outputs, of_parameters;
} LayoutFunctions;

typedef struct {
  char text[4 * PyBUF_MAX_NDIM];
} Layout;

static Layout layouts[PyBUF_MAX_NDIM + 1];

void *layout_of_rank(size_t rank) { return &layouts[rank > PyBUF_MAX_NDIM ? PyBUF_MAX_NDIM : rank]; }

static void write_layout(Layout *layout, int rank) {
  char *end = layout->text;
  *end++ = '{';
  for (int dimension = rank - 1; dimension >= 0; dimension--)
    end += sprintf(end, dimension > 0 ? "%d," : "%d", dimension);
  *end++ = '}';
  *end = 0;
}

static PJRT_Error *keep(void *args) {
  (void)args;
  return NULL;
}

static void free_nothing(void *handle) { (void)handle; }

static PJRT_Error *serialize(PJRT_Owned_Args *args) {
  args->bytes = ((Layout *)args->object)->text;
  args->size = strlen(args->bytes);
  args->handle = NULL;
  args->deleter = free_nothing;
  return NULL;
}

static PJRT_Error *default_layout(PJRT_DefaultLayout_Args *args) {
  args->layout = layout_of_rank(args->rank);
  return NULL;
}

static PJRT_Error *of_buffer(PJRT_Related_Args *args) {
  args->result = layout_of_rank(((Buffer *)args->object)->rank);
  return NULL;
}

static PJRT_Error *of_parameters(PJRT_ExecutableLayouts_Args *args) {
  Executable *executable = args->executable;
  args->count = executable->parameter_count;
  args->layouts = executable->layouts;
  return NULL;
}

static PJRT_Error *of_outputs(PJRT_ExecutableLayouts_Args *args) {
  Executable *executable = args->executable;
  args->count = executable->result_count;
  args->layouts = executable->layouts + executable->parameter_count;
  return NULL;
}

/* Shardings. */

typedef struct {
  PJRT_Extension base;
  PJRT_Function of_parameters, of_outputs;
} ShardingFunctions;

static PJRT_Error *shardings_are(PJRT_Shardings_Args *args, size_t first, size_t count) {
  Executable *executable = args->executable;
  args->count = count;
  args->shardings = executable->shardings == NULL ? NULL : executable->shardings + first;
  args->sizes = executable->shardings == NULL ? NULL : executable->sharding_sizes + first;
  return NULL;
}

static PJRT_Error *shardings_of_parameters(PJRT_Shardings_Args *args) {
  return shardings_are(args, 0, ((Executable *)args->executable)->parameter_count);
}

static PJRT_Error *shardings_of_outputs(PJRT_Shardings_Args *args) {
  Executable *executable = args->executable;
  return shardings_are(args, executable->parameter_count, executable->result_count);
}

PJRT_Extension *extensions(void) {
  static ShardingFunctions shardings = {
      .base = {.struct_size = sizeof(ShardingFunctions), .type = PJRT_EXTENSION_SHARDINGS},
      .of_parameters = (PJRT_Function)shardings_of_parameters,
      .of_outputs = (PJRT_Function)shardings_of_outputs,
  };
  static LayoutFunctions functions = {
      .base = {.struct_size = sizeof(LayoutFunctions), .type = PJRT_EXTENSION_LAYOUTS, .next = &shardings},
      .destroy = keep,
      .serialize = (PJRT_Function)serialize,
      .client_default = (PJRT_Function)default_layout,
      .of_buffer = (PJRT_Function)of_buffer,
      .topology_default = (PJRT_Function)default_layout,
      .of_outputs = (PJRT_Function)of_outputs,
      .of_parameters = (PJRT_Function)of_parameters,
  };
  for (int rank = 0; rank <= PyBUF_MAX_NDIM; rank++) write_layout(&layouts[rank], rank);
  return &functions.base;
}

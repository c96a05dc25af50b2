/* Layouts: in which order the dimensions of an array lie in memory. Each order is kept once, so that layouts are equal
 * if their addresses are. */

#include "plugin.h"

#include <stdio.h>
#include <stdlib.h>

#include "answers.h"

static Layout *layouts;

static void write_text(Layout *layout) {
  char *end = layout->text;
  *end++ = '{';
  for (size_t i = 0; i < layout->rank; i++) end += sprintf(end, i > 0 ? ",%d" : "%d", (int)layout->minor_to_major[i]);
  *end++ = '}';
  *end = 0;
}

static Layout *find(size_t rank, const int64_t *minor_to_major) {
  Layout *layout = layouts;
  while (layout != NULL && (layout->rank != rank || memcmp(layout->minor_to_major, minor_to_major, rank * sizeof(int64_t))))
    layout = layout->next;
  return layout;
}

Layout *layout_of(size_t rank, const int64_t *minor_to_major) {
  pthread_mutex_lock(&plugin_lock);
  Layout *layout = find(rank, minor_to_major);
  if (layout == NULL) {
    layout = calloc(1, sizeof *layout + rank * sizeof(int64_t));
    if (layout == NULL) abort();
    layout->rank = rank;
    layout->is_dense = true;
    for (size_t i = 0; i < rank; i++) {
      layout->minor_to_major[i] = minor_to_major[i];
      if (minor_to_major[i] != (int64_t)(rank - 1 - i)) layout->is_dense = false;
    }
    write_text(layout);
    layout->next = layouts;
    layouts = layout;
  }
  pthread_mutex_unlock(&plugin_lock);
  return layout;
}

Layout *layout_of_rank(size_t rank) {
  static _Atomic(Layout *) found[PyBUF_MAX_NDIM + 1];
  if (rank > PyBUF_MAX_NDIM) rank = PyBUF_MAX_NDIM;
  Layout *layout = atomic_load_explicit(&found[rank], memory_order_acquire);
  if (layout != NULL) return layout;
  int64_t order[PyBUF_MAX_NDIM];
  for (size_t i = 0; i < rank; i++) order[i] = (int64_t)(rank - 1 - i);
  layout = layout_of(rank, order);
  atomic_store_explicit(&found[rank], layout, memory_order_release);
  return layout;
}

void layout_strides(const Layout *layout, const int64_t *dims, size_t element, int64_t *strides) {
  int64_t step = (int64_t)element;
  for (size_t i = 0; i < layout->rank; i++) {
    strides[layout->minor_to_major[i]] = step;
    step *= dims[layout->minor_to_major[i]];
  }
}

void layout_physical(const Layout *layout, const int64_t *dims, int64_t *physical) {
  for (size_t i = 0; i < layout->rank; i++) physical[layout->rank - 1 - i] = dims[layout->minor_to_major[i]];
}

static void copy_row(char *to, const char *from, int64_t count, int64_t to_step, int64_t from_step, size_t element) {
  if (to_step == (int64_t)element && from_step == (int64_t)element) {
    memcpy(to, from, (size_t)count * element);
    return;
  }
  for (int64_t i = 0; i < count; i++) memcpy(to + i * to_step, from + i * from_step, element);
}

void copy_strided(char *to, const char *from, size_t rank, const int64_t *dims, const int64_t *to_strides,
                  const int64_t *from_strides, size_t element) {
  if (rank == 0) {
    memcpy(to, from, element);
    return;
  }
  if (rank == 1) {
    copy_row(to, from, dims[0], to_strides[0], from_strides[0], element);
    return;
  }
  for (int64_t i = 0; i < dims[0]; i++)
    copy_strided(to + i * to_strides[0], from + i * from_strides[0], rank - 1, dims + 1, to_strides + 1,
                 from_strides + 1, element);
}

bool strides_are_dense(size_t rank, const int64_t *dims, const int64_t *strides, size_t element) {
  int64_t step = (int64_t)element;
  for (size_t i = rank; i-- > 0;) {
    if (dims[i] != 1 && strides[i] != step) return false;
    step *= dims[i];
  }
  return true;
}

/* The extension. */

typedef struct {
  PJRT_Extension base;
  PJRT_Function destroy, serialize, client_default, of_buffer, topology_default, of_outputs, of_parameters;
} LayoutFunctions;

static PJRT_Error *serialize(PJRT_Owned_Args *args) {
  const char *text = ((Layout *)args->object)->text;
  return answer_bytes(args, text, strlen(text));
}

static PJRT_Error *default_layout(PJRT_DefaultLayout_Args *args) {
  args->layout = layout_of_rank(args->rank);
  return NULL;
}

static PJRT_Error *of_buffer(PJRT_Related_Args *args) {
  return answer_object(args, (void *)((Buffer *)args->object)->layout);
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

PJRT_Extension *layout_extension(void) {
  static LayoutFunctions functions = {
      .base = {.struct_size = sizeof(LayoutFunctions), .type = PJRT_EXTENSION_LAYOUTS},
      .destroy = answer_nothing,
      .serialize = (PJRT_Function)serialize,
      .client_default = (PJRT_Function)default_layout,
      .of_buffer = (PJRT_Function)of_buffer,
      .topology_default = (PJRT_Function)default_layout,
      .of_outputs = (PJRT_Function)of_outputs,
      .of_parameters = (PJRT_Function)of_parameters,
  };
  return &functions.base;
}

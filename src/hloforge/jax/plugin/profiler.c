/* The extension by which JAX's profiler asks what ran on the devices: ``jax.profiler.trace``.
 *
 * While a profiler is on, programs are called by ``traces.run`` of Python, which keeps their times and their kernels'.
 * Nothing of this is in the way of calls otherwise. JAX starts the profilers of all plugins, used or not: nothing is
 * imported for those that are not.
 */

#include "plugin.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
  int64_t began; /* nanoseconds of the system's clock */
  bool is_on;
  char *bytes; /* an XSpace */
  size_t size;
} Profiler;

static atomic_int profilers_on;

bool profiler_is_on(void) { return atomic_load_explicit(&profilers_on, memory_order_relaxed) > 0; }

/* What ran since a profiler was started. */
static PJRT_Error *take(Profiler *profiler) {
  Python python;
  if (!python_is_loaded() || !python_enter(&python)) return NULL;
  PyObject *taken = python_function("taken_trace");
  PyObject *trace = taken == NULL ? NULL : PyObject_CallFunction(taken, "L", (long long)profiler->began);
  char *bytes;
  Py_ssize_t size;
  PJRT_Error *error = NULL;
  if (trace == NULL || PyBytes_AsStringAndSize(trace, &bytes, &size) != 0) {
    error = python_error();
  } else if (size > 0) {
    profiler->bytes = malloc((size_t)size);
    if (profiler->bytes == NULL) abort();
    memcpy(profiler->bytes, bytes, (size_t)size);
    profiler->size = (size_t)size;
  }
  Py_XDECREF(trace);
  python_leave(&python);
  return error;
}

static PJRT_Error *profiler_create(PJRT_ProfilerCreate_Args *args) {
  args->profiler = calloc(1, sizeof(Profiler));
  if (args->profiler == NULL) abort();
  return NULL;
}

static PJRT_Error *profiler_destroy(PJRT_Profiler_Args *args) {
  Profiler *profiler = args->profiler;
  if (profiler == NULL) return NULL;
  if (profiler->is_on) atomic_fetch_sub(&profilers_on, 1);
  free(profiler->bytes);
  free(profiler);
  return NULL;
}

static PJRT_Error *profiler_start(PJRT_Profiler_Args *args) {
  Profiler *profiler = args->profiler;
  if (profiler->is_on) return NULL;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  profiler->began = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  profiler->is_on = true;
  atomic_fetch_add(&profilers_on, 1);
  return NULL;
}

static PJRT_Error *profiler_stop(PJRT_Profiler_Args *args) {
  Profiler *profiler = args->profiler;
  if (!profiler->is_on) return NULL;
  profiler->is_on = false;
  atomic_fetch_sub(&profilers_on, 1);
  return take(profiler);
}

/* The first call may have no memory for the answer, and gets ours. */
static PJRT_Error *profiler_collect(PJRT_ProfilerCollect_Args *args) {
  Profiler *profiler = args->profiler;
  args->size = profiler->size;
  if (args->buffer == NULL)
    args->buffer = profiler->bytes;
  else if (profiler->size > 0)
    memcpy(args->buffer, profiler->bytes, profiler->size);
  return NULL;
}

static void profiler_error_destroy(PJRT_ProfilerError_Args *args) { error_free(args->error); }

static void profiler_error_message(PJRT_ProfilerErrorText_Args *args) { error_text(args->error, &args->text, &args->size); }

static PJRT_Error *profiler_error_code(PJRT_ProfilerErrorCode_Args *args) {
  args->code = PJRT_INTERNAL;
  return NULL;
}

PJRT_Extension *profiler_extension(void) {
  static PJRT_ProfilerFunctions functions = {
      .struct_size = sizeof functions,
      .error_destroy = profiler_error_destroy,
      .error_message = profiler_error_message,
      .error_code = profiler_error_code,
      .create = profiler_create,
      .destroy = profiler_destroy,
      .start = profiler_start,
      .stop = profiler_stop,
      .collect = profiler_collect,
  };
  static PJRT_ProfilerExtension extension = {
      .base = {.struct_size = sizeof extension, .type = PJRT_EXTENSION_PROFILER},
      .functions = &functions,
  };
  return &extension.base;
}

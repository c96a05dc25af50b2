/* Running executables: at once in the caller's thread, or later in that of the device. */

#include "plugin.h"

#include <stdlib.h>
#include <string.h>

/* One run on one or several devices. Arguments and results stand device by device. */
typedef struct {
  Executable *executable;
  size_t devices;
  Device *device; /* that the caller named; NULL for those of the executable */
  PJRT_Event *done;
  Array **arguments;
  const Layout **lies; /* of an argument that lies otherwise than the program takes it; NULL of others */
  bool *is_given; /* an argument that the program may overwrite */
  Array **results;
} Run;

static size_t argument_count(const Run *run) { return run->devices * run->executable->parameter_count; }
static size_t result_count(const Run *run) { return run->devices * run->executable->result_count; }

static Run *run_new(Executable *executable, size_t devices) {
  size_t arguments = devices * executable->parameter_count, results = devices * executable->result_count;
  Run *run = calloc(1, sizeof *run + (2 * arguments + results) * sizeof(Array *) + arguments * sizeof(bool));
  if (run == NULL) abort();
  atomic_fetch_add(&executable->references, 1);
  run->executable = executable;
  run->devices = devices;
  run->arguments = (Array **)(run + 1); /* everything in one piece of memory, for there is a run at each call */
  run->results = run->arguments + arguments;
  run->lies = (const Layout **)(run->results + results);
  run->is_given = (bool *)(run->lies + arguments);
  return run;
}

static void run_free(Run *run) {
  for (size_t i = 0; i < argument_count(run); i++) array_release(run->arguments[i]);
  for (size_t i = 0; i < result_count(run); i++) array_release(run->results[i]);
  event_release(run->done);
  executable_release(run->executable);
  free(run);
}

/* Arguments. */

static bool is_kept(const PJRT_ExecuteOptions *options, size_t number) {
  for (size_t i = 0; options != NULL && i < options->kept_count; i++)
    if (options->kept_inputs[i] == (int64_t)number) return true;
  return false;
}

/* The error for a donated argument that is passed a second time. Programs look for XLA's words, so that ours begin like
 * these. */
static PJRT_Error *clash(const Run *run, const PJRT_Execute_Args *args, size_t number) {
  size_t count = run->executable->parameter_count, partitions = run->executable->partitions, device = number / count;
  void *const *buffers = args->arguments[device];
  const bool *is_given = run->is_given + device * count;
  size_t second = number % count, first = 0;
  while (first == second || (first < count && buffers[first] != buffers[second])) first++;
  if (first == count)
    return error_new(PJRT_INVALID_ARGUMENT, "another thread deletes argument %zu of %s", second, run->executable->name);
  if (first > second) {
    first = second;
    second = first + 1;
    while (buffers[second] != buffers[first]) second++;
  }
  const char *what = "Attempt to use a buffer that was previously donated in the same call to Execute()";
  const char *form = "f(donate(a), a)";
  if (is_given[first] && is_given[second]) {
    what = "Attempt to donate the same buffer twice in Execute()";
    form = "f(donate(a), donate(a))";
  } else if (is_given[second]) {
    what = "Attempt to donate a buffer which is also used by the same call to Execute()";
    form = "f(a, donate(a))";
  }
  return error_new(PJRT_INVALID_ARGUMENT,
                   "%s (flattened argument %zu, replica %zu, partition %zu, first use: %zu): `%s`, in a call of %s", what,
                   second, device / partitions, device % partitions, first, form, run->executable->name);
}

/* End the arguments that are donated for the caller, unless one of them is passed a second time. */
static PJRT_Error *take_donated(Run *run, const PJRT_Execute_Args *args) {
  size_t count = run->executable->parameter_count, taken = 0;
  PJRT_Error *error = NULL;
  for (; error == NULL && taken < argument_count(run); taken++) {
    if (!run->is_given[taken]) continue;
    Array *array = buffer_take(args->arguments[taken / count][taken % count]);
    if (array == NULL) error = clash(run, args, taken);
    array_release(array);
  }
  for (size_t i = 0; error == NULL && i < argument_count(run); i++)
    if (!run->is_given[i] && buffer_is_empty(args->arguments[i / count][i % count])) error = clash(run, args, i);
  if (error == NULL) return NULL;
  for (size_t i = 0; i < taken; i++)
    if (run->is_given[i]) buffer_put_back(args->arguments[i / count][i % count], run->arguments[i]);
  return error;
}

/* Take the arguments; those that are donated end here for the caller. */
static PJRT_Error *take_arguments(Run *run, const PJRT_Execute_Args *args) {
  size_t count = run->executable->parameter_count;
  if (args->argument_count != count)
    return error_new(PJRT_INVALID_ARGUMENT, "%zu arguments for %s, which takes %zu", args->argument_count,
                     run->executable->name, count);
  for (size_t i = 0; i < argument_count(run); i++) {
    Buffer *buffer = args->arguments[i / count][i % count];
    const Value *value = &run->executable->values[i % count];
    run->arguments[i] = buffer_array(buffer);
    if (run->arguments[i] == NULL)
      return error_new(PJRT_INVALID_ARGUMENT,
                       "Invalid buffer passed to Execute() as argument %zu to replica %zu: INVALID_ARGUMENT: "
                       "Buffer has been deleted or donated. It is an argument of %s",
                       i % count, i / count / run->executable->partitions, run->executable->name);
    /* JAX asks for the layout of an argument only if the argument is committed to a device. */
    if (buffer->layout != value->layout && buffer->layout->rank == value->rank && value->type != TYPE_TOKEN)
      run->lies[i] = buffer->layout;
    run->is_given[i] = value->is_donated && !is_kept(args->options, i % count);
  }
  return run->executable->donates ? take_donated(run, args) : NULL;
}

/* Whether all arguments have their elements. If one has failed, it is the results' error later, as if it still came. */
static bool is_ready(const Run *run) {
  for (size_t i = 0; i < argument_count(run); i++)
    if (!event_succeeded(run->arguments[i]->ready)) return false;
  return true;
}

/* Wait for the arguments; the first error among them. */
static PJRT_Error *wait_for_arguments(const Run *run) {
  for (size_t i = 0; i < argument_count(run); i++) {
    PJRT_Error *error = event_wait(run->arguments[i]->ready);
    if (error != NULL) return error;
  }
  return NULL;
}

/* A new reference to a view of an array's elements in the order in which the program takes them. */
static PyObject *reordered_view(const Array *array, const Layout *lies, const Value *value) {
  int64_t from[PyBUF_MAX_NDIM], to[PyBUF_MAX_NDIM];
  size_t element = element_size(value->type);
  char *reordered = malloc(value->size + 1);
  if (reordered == NULL) return PyErr_NoMemory();
  layout_strides(lies, value->dims, element, from);
  layout_strides(value->layout, value->dims, element, to);
  if (value->size > 0) copy_strided(reordered, array->data, value->rank, value->dims, to, from, element);
  PyObject *view = view_of_copy(reordered, value->type, value->rank, value->physical);
  free(reordered);
  return view;
}

/* A new reference to the view that the program gets. It overwrites what it takes by donation, which is a copy unless
 * nobody else has the array. */
static PyObject *argument_view(Run *run, size_t number) {
  Array *array = run->arguments[number];
  const Value *value = &run->executable->values[number % run->executable->parameter_count];
  if (run->lies[number] != NULL) {
    run->is_given[number] = false;
    return reordered_view(array, run->lies[number], value);
  }
  bool is_own = run->is_given[number] && !array->is_shared && array->give_back == NULL &&
                atomic_load(&array->references) == 1;
  if (array->view != NULL && (!value->is_donated || is_own)) return Py_NewRef(array->view);
  run->is_given[number] = false;
  return array_copy_view(array, value->type, value->rank, value->physical);
}

static PyObject *argument_list(Run *run, size_t device) {
  size_t count = run->executable->parameter_count;
  PyObject *list = PyList_New((Py_ssize_t)run->executable->taken_count);
  Py_ssize_t place = 0;
  for (size_t i = 0; list != NULL && i < count; i++) {
    if (run->executable->values[i].type == TYPE_TOKEN) continue;
    PyObject *view = argument_view(run, device * count + i);
    if (view == NULL)
      Py_CLEAR(list);
    else
      PyList_SetItem(list, place++, view);
  }
  return list;
}

/* Results. */

static bool overlap(const Array *one, const Array *other) {
  return one->size > 0 && other->size > 0 && one->data < other->data + other->size &&
         other->data < one->data + one->size;
}

/* A new reference to a view of a result's own memory; NULL with an exception set. */
static PyObject *copied(Run *run, size_t number) {
  const Executable *executable = run->executable;
  const Value *value = executable->values + executable->parameter_count + number % executable->result_count;
  return array_copy_view(run->results[number], value->type, value->rank, value->physical);
}

/* Whether a result is an argument as it is. JAX hands arguments through itself, so that this is ``x.copy()``. */
static bool is_copy(const Run *run, size_t number, size_t argument) {
  const Executable *executable = run->executable;
  const Value *taken = executable->values + argument % executable->parameter_count;
  const Value *made = executable->values + executable->parameter_count + number % executable->result_count;
  return run->results[number]->data == run->arguments[argument]->data && taken->type == made->type &&
         taken->rank == made->rank &&
         memcmp(taken->physical, made->physical, (size_t)made->rank * sizeof *made->physical) == 0;
}

/* A program may return an argument, or one value twice: what lies in one place must not be overwritten later, and what
 * lies in memory of the caller has to leave it, as copies do. False with an exception set. */
static bool separate(Run *run, size_t number) {
  Array *result = run->results[number];
  for (size_t i = 0; i < argument_count(run); i++) {
    Array *argument = run->arguments[i];
    if (run->is_given[i] || !overlap(result, argument)) continue;
    if (argument->give_back == NULL && !is_copy(run, number, i)) {
      argument->is_shared = result->is_shared = true;
      continue;
    }
    PyObject *copy = copied(run, number);
    return copy != NULL && array_replace(result, copy);
  }
  for (size_t i = 0; i < number; i++)
    if (overlap(result, run->results[i])) result->is_shared = run->results[i]->is_shared = true;
  return true;
}

static bool take_results(Run *run, size_t device, PyObject *views) {
  size_t count = run->executable->result_count;
  const Value *values = run->executable->values + run->executable->parameter_count;
  Py_ssize_t place = 0;
  if (!PyList_Check(views) || (size_t)PyList_Size(views) != run->executable->returned_count) {
    PyErr_Format(PyExc_SystemError, "%s returned other results than it declares", run->executable->name);
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    size_t number = device * count + i;
    if (values[i].type == TYPE_TOKEN) continue;
    if (!array_fill(run->results[number], Py_NewRef(PyList_GetItem(views, place++)))) return false;
    if (values[i].is_apart) {
      PyObject *copy = copied(run, number);
      if (copy == NULL || !array_replace(run->results[number], copy)) return false;
    } else if (!separate(run, number)) {
      return false;
    }
  }
  return true;
}

/* The same for JAX's profiler, which is told of the devices. */
static PyObject *call_traced(const Run *run, PyObject *arguments) {
  PyObject *devices = PyTuple_New((Py_ssize_t)run->devices), *program = Py_NewRef(run->executable->program);
  for (size_t i = 0; devices != NULL && i < run->devices; i++) {
    const Device *device = run->device != NULL ? run->device : run->executable->own_devices[i];
    PyTuple_SetItem(devices, (Py_ssize_t)i, PyLong_FromLong(device->number));
  }
  PyObject *traced = python_function("traced");
  PyObject *result =
      traced == NULL || devices == NULL ? NULL : PyObject_CallFunctionObjArgs(traced, program, arguments, devices, NULL);
  Py_XDECREF(devices);
  Py_DECREF(program);
  return result;
}

/* Call what execution.py gave; a new reference, or NULL with an exception set. */
static PyObject *call(const Run *run, PyObject *function, PyObject *arguments) {
  if (function == NULL) {
    PyErr_SetString(PyExc_RuntimeError, "the interpreter ends: programs do not run any more");
    return NULL;
  }
  if (profiler_is_on()) return call_traced(run, arguments);
  Py_INCREF(function); /* the interpreter may end meanwhile */
  PyObject *result = PyObject_CallFunctionObjArgs(function, arguments, NULL);
  Py_DECREF(function);
  return result;
}

static bool run_on_one(Run *run) {
  PyObject *arguments = argument_list(run, 0);
  PyObject *views = arguments == NULL ? NULL : call(run, run->executable->run, arguments);
  Py_XDECREF(arguments);
  bool done = views != NULL && take_results(run, 0, views);
  Py_XDECREF(views);
  return done;
}

static bool run_on_all(Run *run) {
  PyObject *lists = PyList_New((Py_ssize_t)run->devices);
  for (size_t device = 0; lists != NULL && device < run->devices; device++) {
    PyObject *list = argument_list(run, device);
    if (list == NULL)
      Py_CLEAR(lists);
    else
      PyList_SetItem(lists, (Py_ssize_t)device, list);
  }
  PyObject *views = lists == NULL ? NULL : call(run, run->executable->run_all, lists);
  Py_XDECREF(lists);
  bool done = views != NULL;
  for (size_t device = 0; done && device < run->devices; device++)
    done = take_results(run, device, PyList_GetItem(views, (Py_ssize_t)device));
  Py_XDECREF(views);
  return done;
}

/* Run with Python's lock and with arguments that are ready; the error, if there is one. */
static PJRT_Error *run_now(Run *run) {
  bool done = run->executable->device_count > 1 ? run_on_all(run) : run_on_one(run);
  return done ? NULL : python_error();
}

/* Tell all who wait. They run without Python's lock, for they take locks of jaxlib's. */
static void finish(Run *run, PJRT_Error *error) {
  PyThreadState *paused = python_pause();
  for (size_t i = 0; i < result_count(run); i++) event_set(run->results[i]->ready, error_copy(error));
  event_set(run->done, error);
  python_resume(paused);
}

static void run_later(void *task) {
  Run *run = task;
  PJRT_Error *error = wait_for_arguments(run);
  finish(run, error != NULL ? error : run_now(run));
  run_free(run);
}

/* The call. */

/* Arrays for the results; promises, if the program runs later. */
static void prepare_results(Run *run, bool later) {
  run->done = later ? event_new() : event_done();
  const Value *values = run->executable->values + run->executable->parameter_count;
  for (size_t i = 0; i < result_count(run); i++) {
    size_t size = values[i % run->executable->result_count].size;
    run->results[i] = later ? array_promise(size) : array_empty(size);
  }
}

static void hand_out(Run *run, PJRT_Execute_Args *args) {
  Executable *executable = run->executable;
  size_t count = executable->result_count;
  for (size_t i = 0; i < result_count(run); i++) {
    const Value *value = executable->values + executable->parameter_count + i % count;
    Device *device = run->device != NULL ? run->device : executable->own_devices[i / count];
    args->outputs[i / count][i % count] =
        buffer_new(&device->memories[value->kind], value->type, value->layout, value->dims,
                   array_share(run->results[i]));
  }
  for (size_t device = 0; args->done != NULL && device < run->devices; device++)
    args->done[device] = event_share(run->done);
}

static PJRT_Error *execute(PJRT_Execute_Args *args) {
  Executable *executable = args->executable;
  if (atomic_load(&executable->is_deleted)) return error_new(PJRT_FAILED_PRECONDITION, "%s was deleted", executable->name);
  if (args->devices != executable->own_count && args->devices != 1)
    return error_new(PJRT_INVALID_ARGUMENT, "%s runs on %zu devices of this process, not %zu", executable->name,
                     executable->own_count, args->devices);
  if (args->devices == 0)
    return error_new(PJRT_INVALID_ARGUMENT, "%s has no device of this process", executable->name);
  Python python;
  if (!python_enter(&python)) return python_gone();
  Run *run = run_new(executable, args->devices);
  run->device = args->device;
  PJRT_Error *error = take_arguments(run, args);
  if (error == NULL) {
    /* Programs of several processes meet in the order of their calls, which a thread of its own keeps. */
    bool is_joint = executable->own_count < executable->device_count;
    bool later = executable->in_background || is_joint || !is_ready(run);
    prepare_results(run, later);
    if (!later) error = run_now(run);
    if (error == NULL) hand_out(run, args);
    if (later) {
      worker_add(executable->own_devices[0], run_later, run);
      run = NULL;
    }
  }
  if (run != NULL) run_free(run);
  python_leave(&python);
  return error;
}

void fill_execute(PJRT_Function *table) { FILL(table, LoadedExecutable_Execute, execute); }

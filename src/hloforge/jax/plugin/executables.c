/* Executables: what execution.py compiled, from its beginning to its end. An executable is loaded from the start. */

#include "plugin.h"

#include <stdlib.h>
#include <string.h>

/* Reading what execution.py tells of a program. Each reports an exception by false or -1. */

static bool read_count(PyObject *program, const char *name, size_t *count) {
  PyObject *value = PyObject_GetAttrString(program, name);
  *count = value == NULL ? 0 : PyLong_AsSize_t(value);
  Py_XDECREF(value);
  return PyErr_Occurred() == NULL;
}

static bool read_bytes(PyObject *program, const char *name, char **text, size_t *size) {
  PyObject *value = PyObject_GetAttrString(program, name);
  char *bytes;
  Py_ssize_t length;
  bool done = value != NULL && PyBytes_AsStringAndSize(value, &bytes, &length) == 0;
  if (done) {
    *size = (size_t)length;
    *text = malloc(*size + 1);
    if (*text == NULL) abort();
    memcpy(*text, bytes, *size + 1);
  }
  Py_XDECREF(value);
  return done;
}

static void *zeros(size_t count, size_t size) {
  void *memory = calloc(count + 1, size);
  if (memory == NULL) abort();
  return memory;
}

static int64_t *read_numbers(PyObject *numbers) {
  Py_ssize_t count = PyTuple_Size(numbers);
  int64_t *found = zeros((size_t)count, sizeof *found);
  for (Py_ssize_t i = 0; i < count; i++) found[i] = PyLong_AsLongLong(PyTuple_GetItem(numbers, i));
  return found;
}

static bool read_value(PyObject *fields, Value *value) {
  PyObject *sizes, *order;
  int is_donated;
  if (!PyArg_ParseTuple(fields, "iO!pO!i", &value->type, &PyTuple_Type, &sizes, &is_donated, &PyTuple_Type, &order,
                        &value->kind))
    return false;
  value->is_donated = is_donated != 0;
  value->rank = (size_t)PyTuple_Size(sizes);
  value->dims = read_numbers(sizes);
  value->layout = layout_of_rank(value->rank);
  if ((size_t)PyTuple_Size(order) == value->rank) {
    int64_t *minor_to_major = read_numbers(order);
    value->layout = layout_of(value->rank, minor_to_major);
    free(minor_to_major);
  }
  value->physical = zeros(value->rank, sizeof *value->physical);
  layout_physical(value->layout, value->dims, value->physical);
  return PyErr_Occurred() == NULL;
}

static bool read_values(PyObject *values, Value *into) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(values); i++)
    if (!read_value(PyTuple_GetItem(values, i), &into[i])) return false;
  return true;
}

static bool read_devices(Executable *executable, PyObject *numbers) {
  for (size_t i = 0; i < executable->device_count; i++) {
    long number = PyLong_AsLong(PyTuple_GetItem(numbers, (Py_ssize_t)i));
    if (number < 0 || number >= executable->client->device_count) {
      if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "the program is for device %ld, there are %d: set HLOFORGE_JAX_DEVICES", number,
                     executable->client->device_count);
      return false;
    }
    Device *device = executable->devices[i] = &executable->client->devices[number];
    if (!device_is_own(device)) continue;
    executable->own_devices[executable->own_count] = device;
    executable->logical_ids[executable->own_count++] =
        (PJRT_LogicalId){(int32_t)(i / executable->partitions), (int32_t)(i % executable->partitions)};
  }
  return true;
}

static void allocate(Executable *executable) {
  size_t values = executable->parameter_count + executable->result_count;
  executable->values = zeros(values, sizeof *executable->values);
  executable->layouts = zeros(values, sizeof *executable->layouts);
  executable->kinds = zeros(values, sizeof *executable->kinds);
  executable->kind_sizes = zeros(values, sizeof *executable->kind_sizes);
  executable->devices = zeros(executable->device_count, sizeof *executable->devices);
  executable->own_devices = zeros(executable->device_count, sizeof *executable->own_devices);
  executable->logical_ids = zeros(executable->device_count, sizeof *executable->logical_ids);
  executable->result_types = zeros(executable->result_count, sizeof *executable->result_types);
  executable->result_ranks = zeros(executable->result_count, sizeof *executable->result_ranks);
}

/* A loss that somebody keeps must not keep the memory of all parameters that the program returned beside it. */
enum { SMALL = 1 << 14, SMALL_PART = 256 };

static void measure_values(Executable *executable) {
  size_t results = 0;
  for (size_t i = 0; i < executable->parameter_count + executable->result_count; i++) {
    Value *value = &executable->values[i];
    value->size = element_size(value->type);
    for (size_t j = 0; j < value->rank; j++) value->size *= (size_t)value->dims[j];
    if (i >= executable->parameter_count) results += value->size;
  }
  for (size_t i = executable->parameter_count; i < executable->parameter_count + executable->result_count; i++) {
    Value *value = &executable->values[i];
    value->is_apart = value->size > 0 && value->size < SMALL && value->size <= results / SMALL_PART;
  }
}

/* The lists that jaxlib wants of the values. */
static void list_values(Executable *executable) {
  measure_values(executable);
  size_t values = executable->parameter_count + executable->result_count, dims = 0;
  for (size_t i = 0; i < values; i++) {
    executable->layouts[i] = (void *)executable->values[i].layout;
    executable->kinds[i] = memory_kinds[executable->values[i].kind];
    executable->kind_sizes[i] = strlen(executable->kinds[i]);
  }
  const Value *results = executable->values + executable->parameter_count;
  for (size_t i = 0; i < executable->parameter_count; i++) {
    executable->taken_count += executable->values[i].type != TYPE_TOKEN;
    executable->donates |= executable->values[i].is_donated;
  }
  for (size_t i = 0; i < executable->result_count; i++) executable->returned_count += results[i].type != TYPE_TOKEN;
  for (size_t i = 0; i < executable->result_count; i++) dims += results[i].rank;
  int64_t *next = executable->result_dims = zeros(dims, sizeof *next);
  for (size_t i = 0; i < executable->result_count; i++) {
    executable->result_types[i] = results[i].type;
    executable->result_ranks[i] = results[i].rank;
    memcpy(next, results[i].dims, results[i].rank * sizeof *next);
    next += results[i].rank;
  }
}

static bool read_shardings(Executable *executable, PyObject *program) {
  PyObject *shardings = PyObject_GetAttrString(program, "shardings");
  if (shardings == NULL) return false;
  size_t count = (size_t)PyTuple_Size(shardings);
  if (count > 0) {
    executable->shardings = zeros(count, sizeof *executable->shardings);
    executable->sharding_sizes = zeros(count, sizeof *executable->sharding_sizes);
  }
  bool done = true;
  for (size_t i = 0; done && i < count; i++) {
    char *bytes;
    Py_ssize_t size;
    done = PyBytes_AsStringAndSize(PyTuple_GetItem(shardings, (Py_ssize_t)i), &bytes, &size) == 0;
    executable->shardings[i] = bytes;
    executable->sharding_sizes[i] = (size_t)size;
  }
  Py_DECREF(shardings); /* the program keeps it */
  return done;
}

static bool read_lists(Executable *executable, PyObject *program) {
  PyObject *parameters = PyObject_GetAttrString(program, "parameters");
  PyObject *results = parameters == NULL ? NULL : PyObject_GetAttrString(program, "results");
  PyObject *devices = results == NULL ? NULL : PyObject_GetAttrString(program, "devices");
  bool done = devices != NULL;
  if (done) {
    executable->parameter_count = (size_t)PyTuple_Size(parameters);
    executable->result_count = (size_t)PyTuple_Size(results);
    executable->device_count = (size_t)PyTuple_Size(devices);
    allocate(executable);
    done = read_values(parameters, executable->values) &&
           read_values(results, executable->values + executable->parameter_count) && read_devices(executable, devices);
  }
  if (done) list_values(executable);
  Py_XDECREF(parameters);
  Py_XDECREF(results);
  Py_XDECREF(devices);
  return done;
}

static bool read_program(Executable *executable, PyObject *program) {
  size_t code_size, in_background;
  bool done = read_bytes(program, "name", &executable->name, &executable->name_size) &&
              read_bytes(program, "fingerprint", &executable->fingerprint, &executable->fingerprint_size) &&
              read_bytes(program, "text", &executable->text, &executable->text_size) &&
              read_bytes(program, "options", &executable->options, &executable->options_size) &&
              read_count(program, "code_size", &code_size) &&
              read_count(program, "in_background", &in_background) &&
              read_count(program, "replicas", &executable->replicas) &&
              read_count(program, "partitions", &executable->partitions) && read_lists(executable, program) &&
              read_shardings(executable, program);
  if (!done) return false;
  executable->code_size = (int64_t)code_size;
  executable->in_background = in_background != 0;
  executable->run = PyObject_GetAttrString(program, "run");
  executable->run_all = executable->run == NULL ? NULL : PyObject_GetAttrString(program, "run_all");
  return executable->run_all != NULL;
}

/* All executables, for the end. */
static Executable *executables;

static Executable *executable_new(Client *client) {
  Executable *executable = zeros(1, sizeof *executable);
  executable->references = 1;
  executable->client = client;
  pthread_mutex_lock(&plugin_lock);
  executable->next = executables;
  executable->place = &executables;
  if (executables != NULL) executables->place = &executable->next;
  executables = executable;
  pthread_mutex_unlock(&plugin_lock);
  return executable;
}

/* One of the objects that are left, whose reference is the caller's; NULL if there are none. */
static PyObject *take_object(void) {
  PyObject *taken = NULL;
  pthread_mutex_lock(&plugin_lock);
  for (Executable *each = executables; each != NULL && taken == NULL; each = each->next) {
    PyObject **objects[] = {&each->run, &each->run_all, &each->program};
    for (int i = 0; i < 3 && taken == NULL; i++) {
      taken = *objects[i];
      *objects[i] = NULL;
    }
  }
  pthread_mutex_unlock(&plugin_lock);
  return taken;
}

void executables_end(void) {
  PyObject *object;
  while ((object = take_object()) != NULL) Py_DECREF(object);
}

void executable_release(Executable *executable) {
  if (atomic_fetch_sub(&executable->references, 1) != 1) return;
  pthread_mutex_lock(&plugin_lock);
  *executable->place = executable->next;
  if (executable->next != NULL) executable->next->place = executable->place;
  pthread_mutex_unlock(&plugin_lock);
  python_release(executable->run);
  python_release(executable->run_all);
  python_release(executable->program);
  for (size_t i = 0; executable->values != NULL && i < executable->parameter_count + executable->result_count; i++) {
    free(executable->values[i].dims);
    free(executable->values[i].physical);
  }
  for (size_t i = 0; i < executable->cost_count; i++) free((void *)executable->costs[i].name);
  void *owned[] = {executable->name,       executable->fingerprint,  executable->text,         executable->options,
                   executable->devices,    executable->own_devices,  executable->logical_ids,  executable->values,
                   executable->layouts,    executable->kinds,      executable->kind_sizes,   executable->result_types, executable->result_dims,
                   executable->result_ranks, executable->shardings,  executable->sharding_sizes, executable->costs,
                   executable->part,       executable};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
}

/* An executable of the Program that a function of execution.py makes of two byte strings. */
static PJRT_Error *make(Client *client, const char *function, const char *bytes, size_t size, const char *options,
                        size_t options_size, void **made) {
  Python python;
  if (!python_enter(&python)) return python_gone();
  Executable *executable = executable_new(client);
  PyObject *maker = python_function(function);
  if (maker != NULL)
    executable->program = PyObject_CallFunction(maker, "y#y#", bytes, (Py_ssize_t)size, options == NULL ? "" : options,
                                                (Py_ssize_t)options_size);
  bool done = executable->program != NULL && read_program(executable, executable->program);
  PJRT_Error *error = done ? NULL : python_error();
  if (done)
    *made = executable;
  else
    executable_release(executable);
  python_leave(&python);
  return error;
}

static PJRT_Error *compile_program(Client *client, const PJRT_Program *program, const char *options,
                                   size_t options_size, void **made) {
  if (program->format_size != 4 || memcmp(program->format, "mlir", 4) != 0)
    return error_new(PJRT_UNIMPLEMENTED, "hloforge compiles programs of the format mlir, not %.*s",
                     (int)program->format_size, program->format);
  return make(client, "compile_program", program->code, program->code_size, options, options_size, made);
}

static PJRT_Error *client_compile(PJRT_ClientCompile_Args *args) {
  return compile_program(args->client, args->program, args->options, args->options_size, &args->executable);
}

/* jaxlib compiles for a description of devices in another thread and waits for it with Python's lock, without which
 * nothing can be compiled here. */
static PJRT_Error *compile_for_topology(PJRT_Compile_Args *args) {
  if (!((Client *)args->topology)->is_attached)
    return error_new(PJRT_UNIMPLEMENTED, "hloforge compiles for devices that are there: take "
                                         "jax.experimental.topologies.get_attached_topology()");
  return compile_program(args->topology, args->program, args->options, args->options_size, &args->executable);
}

static PJRT_Error *client_load(PJRT_Load_Args *args) {
  Executable *executable = args->executable;
  atomic_fetch_add(&executable->references, 1);
  args->loaded = executable;
  return NULL;
}

static PJRT_Error *deserialize(PJRT_Deserialize_Args *args) {
  return make(args->client, "deserialize", args->serialized, args->serialized_size, args->options, args->options_size,
              &args->loaded);
}

static PJRT_Error *executable_serialize(PJRT_Owned_Args *args) {
  Executable *executable = args->object;
  Python python;
  if (!python_enter(&python)) return python_gone();
  PyObject *bytes = executable->program == NULL ? NULL : PyObject_CallMethod(executable->program, "serialize", NULL);
  PJRT_Error *error = bytes == NULL || !PyBytes_Check(bytes) ? python_error() : NULL;
  if (error == NULL) {
    args->bytes = PyBytes_AsString(bytes);
    args->size = (size_t)PyBytes_Size(bytes);
    args->handle = bytes;
    args->deleter = (void (*)(void *))python_release;
  }
  python_leave(&python);
  return error;
}

void fill_executables(PJRT_Function *table) {
  FILL(table, Client_Compile, client_compile);
  FILL(table, Compile, compile_for_topology);
  FILL(table, Client_Load, client_load);
  FILL(table, Executable_DeserializeAndLoad, deserialize);
  FILL(table, Executable_Serialize, executable_serialize);
}

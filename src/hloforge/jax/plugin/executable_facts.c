/* What jaxlib asks about executables. */

#include "plugin.h"

#include <stdlib.h>

#include "answers.h"

static PJRT_Error *executable_destroy(PJRT_Object_Args *args) {
  executable_release(args->object);
  return NULL;
}

static PJRT_Error *executable_share(PJRT_Related_Args *args) {
  Executable *executable = args->object;
  atomic_fetch_add(&executable->references, 1);
  return answer_object(args, executable);
}

static PJRT_Error *executable_name(PJRT_Text_Args *args) {
  Executable *executable = args->object;
  return answer_text(args, executable->name, executable->name_size);
}

static PJRT_Error *executable_fingerprint(PJRT_Text_Args *args) {
  Executable *executable = args->object;
  return answer_text(args, executable->fingerprint, executable->fingerprint_size);
}

static PJRT_Error *executable_replicas(PJRT_Size_Args *args) {
  return answer_size(args, ((Executable *)args->object)->replicas);
}

static PJRT_Error *executable_partitions(PJRT_Size_Args *args) {
  return answer_size(args, ((Executable *)args->object)->partitions);
}

static PJRT_Error *executable_result_count(PJRT_Size_Args *args) {
  return answer_size(args, ((Executable *)args->object)->result_count);
}

static PJRT_Error *executable_code_size(PJRT_Size_Args *args) {
  return answer_size(args, (size_t)((Executable *)args->object)->code_size);
}

static PJRT_Error *executable_devices(PJRT_List_Args *args) {
  Executable *executable = args->object;
  return answer_list(args, executable->own_devices, executable->own_count);
}

static PJRT_Error *executable_logical_ids(PJRT_List_Args *args) {
  Executable *executable = args->object;
  return answer_list(args, executable->logical_ids, executable->own_count);
}

static PJRT_Error *executable_result_types(PJRT_List_Args *args) {
  Executable *executable = args->object;
  return answer_list(args, executable->result_types, executable->result_count);
}

static PJRT_Error *executable_result_dims(PJRT_OutputDimensions_Args *args) {
  Executable *executable = args->executable;
  args->count = executable->result_count;
  args->dims = executable->result_dims;
  args->ranks = executable->result_ranks;
  return NULL;
}

static PJRT_Error *kinds_are(PJRT_MemoryKinds_Args *args, size_t first, size_t count) {
  Executable *executable = args->object;
  args->count = count;
  args->kinds = executable->kinds + first;
  args->sizes = executable->kind_sizes + first;
  return NULL;
}

static PJRT_Error *executable_result_kinds(PJRT_MemoryKinds_Args *args) {
  Executable *executable = args->object;
  return kinds_are(args, executable->parameter_count, executable->result_count);
}

static PJRT_Error *executable_parameter_kinds(PJRT_MemoryKinds_Args *args) {
  return kinds_are(args, 0, ((Executable *)args->object)->parameter_count);
}

/* What a program of several devices looks like on one of them: asked of execution.py once. */
static PJRT_Error *find_part(Executable *executable) {
  Python python;
  if (!python_enter(&python)) return python_gone();
  PyObject *bytes = executable->program == NULL ? NULL : PyObject_CallMethod(executable->program, "part", NULL);
  PJRT_Error *error = NULL;
  if (bytes == NULL || !PyBytes_Check(bytes)) {
    error = python_error();
  } else if (executable->part == NULL) { /* nobody was faster: Python's lock is held */
    size_t size = (size_t)PyBytes_Size(bytes);
    char *part = malloc(size + 1);
    if (part == NULL) abort();
    executable->part_size = size;
    executable->part = memcpy(part, PyBytes_AsString(bytes), size + 1);
  }
  Py_XDECREF(bytes);
  python_leave(&python);
  return error;
}

/* Asked twice: for the size, and for the bytes. */
static PJRT_Error *executable_text(PJRT_OptimizedProgram_Args *args) {
  Executable *executable = args->executable;
  PJRT_Program *program = args->program;
  bool is_cut = executable->partitions > 1;
  PJRT_Error *error = is_cut && executable->part == NULL ? find_part(executable) : NULL;
  if (error != NULL) return error;
  program->format = "mlir";
  program->format_size = strlen("mlir");
  program->code_size = is_cut ? executable->part_size : executable->text_size;
  if (program->code != NULL) memcpy(program->code, is_cut ? executable->part : executable->text, program->code_size);
  return NULL;
}

static PJRT_Error *executable_options(PJRT_Owned_Args *args) {
  Executable *executable = args->object;
  return answer_bytes(args, executable->options, executable->options_size);
}

static size_t append_varint(unsigned char *bytes, size_t end, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes[end++] = (unsigned char)(value | 0x80);
  bytes[end++] = (unsigned char)value;
  return end;
}

/* A DeviceAssignmentProto: replicas, partitions, and for each partition the devices of its replicas. */
static PJRT_Error *executable_assignment(PJRT_Owned_Args *args) {
  Executable *executable = args->object;
  unsigned char *bytes = malloc(32 + 3 * executable->device_count + 8 * executable->partitions);
  if (bytes == NULL) abort();
  size_t end = 0;
  bytes[end++] = 1 << 3;
  end = append_varint(bytes, end, executable->replicas);
  bytes[end++] = 2 << 3;
  end = append_varint(bytes, end, executable->partitions);
  for (size_t partition = 0; partition < executable->partitions; partition++) {
    unsigned char *numbers = malloc(3 * executable->replicas + 1);
    if (numbers == NULL) abort();
    size_t size = 0;
    for (size_t replica = 0; replica < executable->replicas; replica++) {
      Device *device = executable->devices[replica * executable->partitions + partition];
      size = append_varint(numbers, size, (uint64_t)device->number);
    }
    unsigned char header[12];
    size_t inner = 0;
    header[inner++] = 1 << 3 | 2;
    inner = append_varint(header, inner, size);
    bytes[end++] = 3 << 3 | 2;
    end = append_varint(bytes, end, inner + size);
    memcpy(bytes + end, header, inner);
    memcpy(bytes + end + inner, numbers, size);
    end += inner + size;
    free(numbers);
  }
  args->bytes = bytes;
  args->size = end;
  args->handle = bytes;
  args->deleter = free;
  return NULL;
}

static int64_t bytes_of(const Value *values, size_t count, bool donated_only) {
  int64_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    int64_t size = (int64_t)element_size(values[i].type);
    for (size_t j = 0; j < values[i].rank; j++) size *= values[i].dims[j];
    if (!donated_only || values[i].is_donated) bytes += size;
  }
  return bytes;
}

static PJRT_Error *executable_memory(PJRT_CompiledMemory_Args *args) {
  Executable *executable = args->executable;
  const Value *parameters = executable->values, *results = parameters + executable->parameter_count;
  args->generated_code = executable->code_size;
  args->arguments = bytes_of(parameters, executable->parameter_count, false);
  args->outputs = bytes_of(results, executable->result_count, false);
  args->aliases = bytes_of(parameters, executable->parameter_count, true);
  args->temporaries = 0;
  memset(args->on_host, 0, sizeof args->on_host);
  args->peak = args->arguments + args->outputs - args->aliases;
  return NULL;
}

static PJRT_Error *executable_delete(PJRT_Object_Args *args) {
  atomic_store(&((Executable *)args->object)->is_deleted, true);
  return NULL;
}

static PJRT_Error *executable_is_deleted(PJRT_Flag_Args *args) {
  return answer_flag(args, atomic_load(&((Executable *)args->object)->is_deleted));
}

/* What a run costs, by name; asked of execution.py once. */

static void costs_free(PJRT_NamedValue *costs, size_t count) {
  for (size_t i = 0; i < count; i++) free((void *)costs[i].name);
  free(costs);
}

/* Of a list of (name, number); NULL with an exception set. */
static PJRT_NamedValue *read_costs(PyObject *pairs) {
  size_t count = (size_t)PyList_Size(pairs);
  PJRT_NamedValue *costs = calloc(count + 1, sizeof *costs);
  if (costs == NULL) abort();
  for (size_t i = 0; i < count; i++) {
    const char *name;
    PJRT_NamedValue *cost = &costs[i];
    if (!PyArg_ParseTuple(PyList_GetItem(pairs, (Py_ssize_t)i), "sf", &name, &cost->real)) {
      costs_free(costs, i);
      return NULL;
    }
    cost->struct_size = sizeof *cost;
    cost->name_size = strlen(name);
    char *text = malloc(cost->name_size + 1);
    if (text == NULL) abort();
    cost->name = memcpy(text, name, cost->name_size + 1);
    cost->kind = PJRT_FLOAT;
    cost->size = 1;
  }
  return costs;
}

static PJRT_Error *find_costs(Executable *executable) {
  Python python;
  if (!python_enter(&python)) return python_gone();
  PyObject *pairs = executable->program == NULL ? NULL : PyObject_CallMethod(executable->program, "costs", NULL);
  PJRT_NamedValue *costs = pairs != NULL && PyList_Check(pairs) ? read_costs(pairs) : NULL;
  PJRT_Error *error = costs == NULL ? python_error() : NULL;
  if (costs != NULL && executable->costs == NULL) { /* nobody was faster: Python's lock is held */
    executable->cost_count = (size_t)PyList_Size(pairs);
    executable->costs = costs;
  } else if (costs != NULL) {
    costs_free(costs, (size_t)PyList_Size(pairs));
  }
  Py_XDECREF(pairs);
  python_leave(&python);
  return error;
}

static PJRT_Error *executable_costs(PJRT_Costs_Args *args) {
  Executable *executable = args->executable;
  PJRT_Error *error = executable->costs == NULL ? find_costs(executable) : NULL;
  if (error != NULL) return error;
  args->count = executable->cost_count;
  args->costs = executable->costs;
  return NULL;
}

/* The extension that tells how the arrays of programs of several devices are cut. */

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
  size_t count = executable->result_count;
  return shardings_are(args, executable->parameter_count, count > 0 || executable->shardings == NULL ? count : 1);
}

PJRT_Extension *sharding_extension(void) {
  static ShardingFunctions functions = {
      .base = {.struct_size = sizeof(ShardingFunctions), .type = PJRT_EXTENSION_SHARDINGS},
      .of_parameters = (PJRT_Function)shardings_of_parameters,
      .of_outputs = (PJRT_Function)shardings_of_outputs,
  };
  return &functions.base;
}

void fill_executable_facts(PJRT_Function *table) {
  FILL(table, Executable_Destroy, executable_destroy);
  FILL(table, Executable_Name, executable_name);
  FILL(table, Executable_Fingerprint, executable_fingerprint);
  FILL(table, Executable_NumReplicas, executable_replicas);
  FILL(table, Executable_NumPartitions, executable_partitions);
  FILL(table, Executable_NumOutputs, executable_result_count);
  FILL(table, Executable_SizeOfGeneratedCodeInBytes, executable_code_size);
  FILL(table, Executable_OutputElementTypes, executable_result_types);
  FILL(table, Executable_OutputDimensions, executable_result_dims);
  FILL(table, Executable_OutputMemoryKinds, executable_result_kinds);
  FILL(table, Executable_ParameterMemoryKinds, executable_parameter_kinds);
  FILL(table, Executable_OptimizedProgram, executable_text);
  FILL(table, Executable_GetCompileOptions, executable_options);
  FILL(table, Executable_GetCompiledMemoryStats, executable_memory);
  FILL(table, Executable_GetCostAnalysis, executable_costs);
  FILL(table, LoadedExecutable_Destroy, executable_destroy);
  FILL(table, LoadedExecutable_GetExecutable, executable_share);
  FILL(table, LoadedExecutable_AddressableDevices, executable_devices);
  FILL(table, LoadedExecutable_AddressableDeviceLogicalIds, executable_logical_ids);
  FILL(table, LoadedExecutable_GetDeviceAssignment, executable_assignment);
  FILL(table, LoadedExecutable_Fingerprint, executable_fingerprint);
  FILL(table, LoadedExecutable_Delete, executable_delete);
  FILL(table, LoadedExecutable_IsDeleted, executable_is_deleted);
}

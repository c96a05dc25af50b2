/* Buffers: what jaxlib holds of arrays on devices, and the ways in and out. */

#include "plugin.h"

#include <stdlib.h>

#include "answers.h"

/* From this size on memory of the host is used where it lies, if it may be. */
enum { LEND_BYTES = 16384, ALIGNMENT = 64 };
/* Types whose numbers take less than a byte: numpy leaves the other bits of the byte undefined. */
enum { TYPE_S4 = 21, TYPE_U4 = 22, TYPE_S2 = 24, TYPE_U2 = 25 };

Buffer *buffer_new(Memory *memory, int type, const Layout *layout, const int64_t *dims, Array *array) {
  Buffer *buffer = calloc(1, sizeof *buffer + layout->rank * sizeof *dims);
  if (buffer == NULL) abort();
  buffer->memory = memory;
  buffer->layout = layout;
  buffer->array = array;
  buffer->type = type;
  buffer->rank = layout->rank;
  if (layout->rank > 0) memcpy(buffer->dims, dims, layout->rank * sizeof *dims);
  return buffer;
}

static size_t count_of(size_t rank, const int64_t *dims) {
  size_t count = 1;
  for (size_t i = 0; i < rank; i++) count *= (size_t)dims[i];
  return count;
}

size_t buffer_bytes(const Buffer *buffer) {
  return count_of(buffer->rank, buffer->dims) * element_size(buffer->type);
}

Array *buffer_array(Buffer *buffer) {
  pthread_mutex_lock(&plugin_lock);
  Array *array = buffer->array == NULL ? NULL : array_share(buffer->array);
  pthread_mutex_unlock(&plugin_lock);
  return array;
}

Array *buffer_take(Buffer *buffer) {
  pthread_mutex_lock(&plugin_lock);
  Array *array = buffer->array;
  buffer->array = NULL;
  pthread_mutex_unlock(&plugin_lock);
  return array;
}

bool buffer_is_empty(Buffer *buffer) {
  pthread_mutex_lock(&plugin_lock);
  bool is_empty = buffer->array == NULL;
  pthread_mutex_unlock(&plugin_lock);
  return is_empty;
}

void buffer_put_back(Buffer *buffer, Array *array) {
  pthread_mutex_lock(&plugin_lock);
  bool is_back = buffer->array == NULL;
  if (is_back) buffer->array = array_share(array);
  pthread_mutex_unlock(&plugin_lock);
}

static PJRT_Error *deleted(void) { return error_new(PJRT_INVALID_ARGUMENT, "the buffer was deleted or donated"); }

/* The array with its elements, waited for; an error instead, and NULL, if it has none. */
static Array *ready_array(Buffer *buffer, PJRT_Error **error) {
  Array *array = buffer_array(buffer);
  *error = array == NULL ? deleted() : event_wait(array->ready);
  if (*error == NULL) return array;
  array_release(array);
  return NULL;
}

/* From the host. */

static bool is_dense(const PJRT_FromHost_Args *args, size_t element) {
  if (args->byte_strides == NULL || args->stride_count == 0) return true;
  return strides_are_dense(args->rank, args->dims, args->byte_strides, element);
}

static void extend_numbers(int8_t *numbers, size_t count, int type) {
  int unused = type == TYPE_S4 || type == TYPE_U4 ? 4 : 6;
  bool is_signed = type == TYPE_S4 || type == TYPE_S2;
  for (size_t i = 0; i < count; i++) {
    uint8_t high = (uint8_t)((uint8_t)numbers[i] << unused);
    numbers[i] = is_signed ? (int8_t)((int8_t)high >> unused) : (int8_t)(high >> unused);
  }
}

static bool is_narrow(int type) {
  return type == TYPE_S4 || type == TYPE_U4 || type == TYPE_S2 || type == TYPE_U2;
}

/* A view of the elements in order, copied here first if they are not; NULL with an exception set. */
static PyObject *view_of_strided(const PJRT_FromHost_Args *args, size_t size, size_t element) {
  int64_t strides[PyBUF_MAX_NDIM];
  char *dense = malloc(size + 1);
  if (dense == NULL) return PyErr_NoMemory();
  if (size > 0 && is_dense(args, element)) {
    memcpy(dense, args->data, size);
  } else if (size > 0 && args->rank <= PyBUF_MAX_NDIM) {
    layout_strides(layout_of_rank(args->rank), args->dims, element, strides);
    copy_strided(dense, args->data, args->rank, args->dims, strides, args->byte_strides, element);
  }
  if (is_narrow(args->type)) extend_numbers((int8_t *)dense, size, args->type);
  PyObject *view = view_of_copy(dense, args->type, args->rank, args->dims);
  free(dense);
  return view;
}

static void give_back(void *event) {
  event_set(event, NULL);
  event_release(event);
}

static bool may_be_lent(const PJRT_FromHost_Args *args, size_t size, size_t element) {
  return args->semantics == PJRT_ZERO_COPY && size >= LEND_BYTES && (uintptr_t)args->data % ALIGNMENT == 0 &&
         is_dense(args, element) && !is_narrow(args->type);
}

static PyObject *view_of_host(const PJRT_FromHost_Args *args, size_t size, size_t element, bool lent) {
  if (lent) return view_in_place((void *)args->data, args->type, args->rank, args->dims, size);
  if (size > 0 && is_dense(args, element) && !is_narrow(args->type))
    return view_of_copy(args->data, args->type, args->rank, args->dims);
  return view_of_strided(args, size, element);
}

/* Whether a layout says row after row, as no layout does. */
static bool is_default(const PJRT_Layout *layout, size_t rank) {
  if (layout == NULL || layout->kind != PJRT_LAYOUT_TILED) return layout == NULL;
  bool is_default = layout->tiled.tile_count == 0 && layout->tiled.rank == rank;
  for (size_t i = 0; is_default && i < rank; i++)
    is_default = layout->tiled.minor_to_major[i] == (int64_t)(rank - 1 - i);
  return is_default;
}

static PJRT_Error *client_buffer_from_host(PJRT_FromHost_Args *args) {
  size_t element = element_size(args->type), size = count_of(args->rank, args->dims) * element;
  if (element == 0) return error_new(PJRT_UNIMPLEMENTED, "hloforge has no arrays of PJRT's element type %d", args->type);
  if (!is_default(args->layout, args->rank))
    return error_new(PJRT_UNIMPLEMENTED, "arrays come from the host row after row: put them into a layout on the device");
  Python python;
  if (!python_enter(&python)) return python_gone();
  bool lent = may_be_lent(args, size, element);
  PyObject *view = view_of_host(args, size, element, lent);
  Array *array = view == NULL ? NULL : array_of_view(view, size);
  PJRT_Error *error = array == NULL ? python_error() : NULL;
  python_leave(&python);
  if (error != NULL) return error;
  args->done_with_host = lent ? event_new() : event_done();
  if (lent) array_borrow(array, give_back, event_share(args->done_with_host));
  Memory *memory = memory_of(args->device, args->memory);
  args->buffer = buffer_new(memory, args->type, layout_of_rank(args->rank), args->dims, array);
  return NULL;
}

static PJRT_Error *client_uninitialized(PJRT_Uninitialized_Args *args) {
  size_t size = count_of(args->rank, args->dims) * element_size(args->type);
  char *zeros = calloc(1, size + 1);
  if (zeros == NULL) return error_new(PJRT_INTERNAL, "no memory for %zu bytes", size);
  PJRT_FromHost_Args from = {
      .data = zeros,
      .type = args->type,
      .dims = args->dims,
      .rank = args->rank,
      .device = args->device,
      .memory = args->memory,
  };
  PJRT_Error *error = client_buffer_from_host(&from);
  free(zeros);
  if (error != NULL) return error;
  event_release(from.done_with_host);
  args->buffer = from.buffer;
  return NULL;
}

static PJRT_Error *client_error_buffer(PJRT_ErrorBuffer_Args *args) {
  Array *array = array_promise(count_of(args->rank, args->dims) * element_size(args->type));
  event_set(array->ready, error_new_text(args->code, args->message, args->message_size));
  args->buffer = buffer_new(args->memory, args->type, layout_of_rank(args->rank), args->dims, array);
  return NULL;
}

typedef struct {
  void (*on_delete)(void *data, void *user);
  void *data, *user;
} ViewEnd;

static void end_view(void *user) {
  ViewEnd *end = user;
  if (end->on_delete != NULL) end->on_delete(end->data, end->user);
  free(end);
}

static PJRT_Error *client_view_of_memory(PJRT_ViewOfMemory_Args *args) {
  size_t size = count_of(args->rank, args->dims) * element_size(args->type);
  bool lent = size > 0;
  /* In XLA's words, by which jaxlib and JAX decide to copy, or to tell who forbids it. */
  if (lent && (uintptr_t)args->data % ALIGNMENT != 0)
    return error_new(PJRT_INVALID_ARGUMENT,
                     "Can't create a view of buffer with unaligned data, ptr: %p is not aligned to %d bytes. ", args->data,
                     ALIGNMENT);
  ViewEnd *end = malloc(sizeof *end);
  if (end == NULL) abort();
  *end = (ViewEnd){args->on_delete, args->data, args->user};
  Python python;
  if (!python_enter(&python)) {
    free(end);
    return python_gone();
  }
  PyObject *view = lent ? view_in_place(args->data, args->type, args->rank, args->dims, size)
                        : view_of_copy(args->data, args->type, args->rank, args->dims);
  Array *array = view == NULL ? NULL : array_of_view(view, size);
  PJRT_Error *error = array == NULL ? python_error() : NULL;
  python_leave(&python);
  if (error != NULL) {
    free(end);
    return error;
  }
  if (lent)
    array_borrow(array, end_view, end);
  else
    end_view(end);
  Memory *memory = memory_of(args->device, args->memory);
  args->buffer = buffer_new(memory, args->type, layout_of_rank(args->rank), args->dims, array);
  return NULL;
}

/* To the host. */

/* Strides of the host's array; false for a layout that has none. */
static bool host_strides(const PJRT_ToHost_Args *args, const Buffer *buffer, int64_t *strides) {
  int64_t step = (int64_t)element_size(buffer->type);
  const PJRT_Layout *layout = args->layout;
  if (layout == NULL) {
    layout_strides(buffer->layout, buffer->dims, (size_t)step, strides);
    return true;
  }
  if (layout->kind == PJRT_LAYOUT_STRIDES) {
    memcpy(strides, layout->strides.byte_strides, buffer->rank * sizeof *strides);
    return true;
  }
  if (layout->tiled.tile_count > 0) return false;
  for (size_t i = 0; i < buffer->rank; i++) {
    int64_t dimension = layout->tiled.minor_to_major[i];
    strides[dimension] = step;
    step *= buffer->dims[dimension];
  }
  return true;
}

/* A copy to the host that waits for its array. */
typedef struct {
  Array *array;
  char *to;
  size_t offset, size;   /* bytes as they lie, if there are no strides */
  size_t rank, element;  /* 0: no strides */
  int64_t *dims, *strides, *from; /* one piece of memory */
  PJRT_Event *done;
} HostCopy;

static void copy_to_host(PJRT_Error *error, void *user) {
  HostCopy *copy = user;
  if (error == NULL && copy->size > 0 && copy->element == 0)
    memcpy(copy->to, copy->array->data + copy->offset, copy->size);
  if (error == NULL && copy->size > 0 && copy->element != 0)
    copy_strided(copy->to, copy->array->data, copy->rank, copy->dims, copy->strides, copy->from, copy->element);
  event_set(copy->done, error);
  event_release(copy->done);
  array_release(copy->array);
  free(copy->dims);
  free(copy);
}

/* Begin a copy; takes the array's reference. The event is the caller's. */
static PJRT_Event *begin_copy(HostCopy copy) {
  PJRT_Event *done = event_new();
  HostCopy *task = malloc(sizeof *task);
  if (task == NULL) abort();
  *task = copy;
  task->done = event_share(done);
  event_then(copy.array->ready, copy_to_host, task);
  return done;
}

static bool are_equal(const int64_t *strides, const int64_t *others, size_t rank, const int64_t *dims) {
  for (size_t i = 0; i < rank; i++)
    if (dims[i] != 1 && strides[i] != others[i]) return false;
  return true;
}

static PJRT_Error *buffer_to_host(PJRT_ToHost_Args *args) {
  Buffer *buffer = args->buffer;
  size_t size = buffer_bytes(buffer), element = element_size(buffer->type);
  args->event = NULL;
  if (args->destination == NULL) {
    args->size = size;
    return NULL;
  }
  if (args->size < size)
    return error_new(PJRT_INVALID_ARGUMENT, "%zu bytes of the host for an array of %zu", args->size, size);
  if (buffer->rank > PyBUF_MAX_NDIM) return error_new(PJRT_UNIMPLEMENTED, "an array of rank %zu", buffer->rank);
  int64_t strides[PyBUF_MAX_NDIM], from[PyBUF_MAX_NDIM];
  if (!host_strides(args, buffer, strides)) return error_new(PJRT_UNIMPLEMENTED, "tiles in memory of the host");
  Array *array = buffer_array(buffer);
  if (array == NULL) return deleted();
  HostCopy copy = {.array = array, .to = args->destination, .size = size};
  size_t rank = buffer->rank, bytes = rank * sizeof *strides;
  layout_strides(buffer->layout, buffer->dims, element, from);
  if (!are_equal(strides, from, rank, buffer->dims)) {
    copy.rank = rank;
    copy.element = element;
    copy.dims = malloc(3 * bytes);
    if (copy.dims == NULL) abort();
    copy.strides = memcpy(copy.dims + rank, strides, bytes);
    copy.from = memcpy(copy.dims + 2 * rank, from, bytes);
    memcpy(copy.dims, buffer->dims, bytes);
  }
  args->event = begin_copy(copy);
  return NULL;
}

static PJRT_Error *buffer_raw_to_host(PJRT_RawToHost_Args *args) {
  Buffer *buffer = args->buffer;
  if (args->offset < 0 || args->size < 0 || (size_t)(args->offset + args->size) > buffer_bytes(buffer))
    return error_new(PJRT_INVALID_ARGUMENT, "bytes outside of the array");
  Array *array = buffer_array(buffer);
  if (array == NULL) return deleted();
  args->event = begin_copy((HostCopy){
      .array = array, .to = args->destination, .offset = (size_t)args->offset, .size = (size_t)args->size});
  return NULL;
}

/* An array of its own with the same elements, waited for. */
static PJRT_Error *duplicate(Buffer *buffer, Array **copy) {
  PJRT_Error *error;
  Python python;
  Array *array = ready_array(buffer, &error);
  if (array == NULL) return error;
  if (!python_enter(&python)) {
    array_release(array);
    return python_gone();
  }
  int64_t *physical = calloc(buffer->rank + 1, sizeof *physical);
  if (physical == NULL) abort();
  layout_physical(buffer->layout, buffer->dims, physical);
  PyObject *view = array_copy_view(array, buffer->type, buffer->rank, physical);
  *copy = view == NULL ? NULL : array_of_view(view, array->size);
  error = *copy == NULL ? python_error() : NULL;
  python_leave(&python);
  free(physical);
  array_release(array);
  return error;
}

/* The devices share their memory and arrays never change: a copy elsewhere is another name for the same one. Who asks
 * for one in the same place wants another array. */
static PJRT_Error *copy_to(PJRT_CopyTo_Args *args, Memory *memory) {
  Buffer *buffer = args->buffer;
  Array *array = NULL;
  PJRT_Error *error = NULL;
  if (memory == buffer->memory)
    error = duplicate(buffer, &array);
  else if ((array = buffer_array(buffer)) == NULL)
    error = deleted();
  if (error == NULL) args->copy = buffer_new(memory, buffer->type, buffer->layout, buffer->dims, array);
  return error;
}

static PJRT_Error *buffer_copy_to_device(PJRT_CopyTo_Args *args) { return copy_to(args, memory_of(args->place, NULL)); }

static PJRT_Error *buffer_copy_to_memory(PJRT_CopyTo_Args *args) { return copy_to(args, args->place); }

static PJRT_Error *buffer_address(Buffer *buffer, void **address) {
  PJRT_Error *error;
  Array *array = ready_array(buffer, &error);
  if (array == NULL) return error;
  *address = array->data;
  array_release(array);
  return NULL;
}

static PJRT_Error *buffer_unsafe_pointer(PJRT_Size_Args *args) {
  void *address = NULL;
  PJRT_Error *error = buffer_address(args->object, &address);
  args->size = (size_t)(uintptr_t)address;
  return error;
}

static PJRT_Error *buffer_memory_pointer(PJRT_Related_Args *args) { return buffer_address(args->object, &args->result); }

/* What numpy shows stays, whether or not the buffer is deleted meanwhile. */
static PJRT_Error *buffer_hold(PJRT_Object_Args *args) {
  Buffer *buffer = args->object;
  pthread_mutex_lock(&plugin_lock);
  if (buffer->holds == 0 && buffer->array != NULL) buffer->held = array_share(buffer->array);
  bool is_held = buffer->held != NULL;
  if (is_held) buffer->holds++;
  pthread_mutex_unlock(&plugin_lock);
  return is_held ? NULL : deleted();
}

static PJRT_Error *buffer_let_go(PJRT_Object_Args *args) {
  Buffer *buffer = args->object;
  Array *array = NULL;
  pthread_mutex_lock(&plugin_lock);
  if (buffer->holds > 0 && --buffer->holds == 0) {
    array = buffer->held;
    buffer->held = NULL;
  }
  pthread_mutex_unlock(&plugin_lock);
  array_release(array);
  return NULL;
}

/* What a buffer is. */

static PJRT_Error *buffer_delete(PJRT_Object_Args *args) {
  array_release(buffer_take(args->object));
  return NULL;
}

static PJRT_Error *buffer_destroy(PJRT_Object_Args *args) {
  Buffer *buffer = args->object;
  array_release(buffer_take(buffer));
  array_release(buffer->held);
  free(buffer);
  return NULL;
}

static PJRT_Error *buffer_is_deleted(PJRT_Flag_Args *args) { return answer_flag(args, buffer_is_empty(args->object)); }

static PJRT_Error *buffer_element_type(PJRT_Number_Args *args) {
  return answer_number(args, ((Buffer *)args->object)->type);
}

static PJRT_Error *buffer_dimensions(PJRT_List_Args *args) {
  Buffer *buffer = args->object;
  return answer_list(args, buffer->dims, buffer->rank);
}

static PJRT_Error *buffer_dynamic_dimensions(PJRT_List_Args *args) { return answer_list(args, NULL, 0); }

static PJRT_Error *buffer_layout(PJRT_BufferLayout_Args *args) {
  const Layout *layout = ((Buffer *)args->buffer)->layout;
  args->layout = (PJRT_Layout){.struct_size = sizeof args->layout, .kind = PJRT_LAYOUT_TILED};
  args->layout.tiled.struct_size = sizeof args->layout.tiled;
  args->layout.tiled.minor_to_major = layout->minor_to_major;
  args->layout.tiled.rank = layout->rank;
  return NULL;
}

static PJRT_Error *buffer_size(PJRT_Size_Args *args) { return answer_size(args, buffer_bytes(args->object)); }

static PJRT_Error *buffer_device(PJRT_Related_Args *args) {
  return answer_object(args, ((Buffer *)args->object)->memory->device);
}

static PJRT_Error *buffer_memory(PJRT_Related_Args *args) {
  return answer_object(args, ((Buffer *)args->object)->memory);
}

static atomic_bool may_be_guarded;

void buffers_are_guarded(void) { atomic_store(&may_be_guarded, true); }

/* jax.transfer_guard_device_to_host looks at copies alone: where it is set, memory is not shown in place. */
static bool is_guarded(void) {
  Python python;
  if (!atomic_load(&may_be_guarded) || !python_enter(&python)) return false;
  PyObject *question = python_function("guards_copies_to_host");
  PyObject *answer = question == NULL ? NULL : PyObject_CallNoArgs(question);
  bool guarded = answer == Py_True;
  Py_XDECREF(answer);
  PyErr_Clear();
  python_leave(&python);
  return guarded;
}

static PJRT_Error *buffer_is_on_cpu(PJRT_Flag_Args *args) { return answer_flag(args, !is_guarded()); }

static PJRT_Error *buffer_ready_event(PJRT_Related_Args *args) {
  Array *array = buffer_array(args->object);
  if (array == NULL) return deleted();
  args->result = event_share(array->ready);
  array_release(array);
  return NULL;
}

void fill_buffers(PJRT_Function *table) {
  FILL(table, Client_BufferFromHostBuffer, client_buffer_from_host);
  FILL(table, Client_CreateUninitializedBuffer, client_uninitialized);
  FILL(table, Client_CreateErrorBuffer, client_error_buffer);
  FILL(table, Client_CreateViewOfDeviceBuffer, client_view_of_memory);
  FILL(table, Buffer_ToHostBuffer, buffer_to_host);
  FILL(table, Buffer_CopyRawToHost, buffer_raw_to_host);
  FILL(table, Buffer_CopyToDevice, buffer_copy_to_device);
  FILL(table, Buffer_CopyToMemory, buffer_copy_to_memory);
  FILL(table, Buffer_UnsafePointer, buffer_unsafe_pointer);
  FILL(table, Buffer_OpaqueDeviceMemoryDataPointer, buffer_memory_pointer);
  FILL(table, Buffer_IncreaseExternalReferenceCount, buffer_hold);
  FILL(table, Buffer_DecreaseExternalReferenceCount, buffer_let_go);
  FILL(table, Buffer_Delete, buffer_delete);
  FILL(table, Buffer_Destroy, buffer_destroy);
  FILL(table, Buffer_IsDeleted, buffer_is_deleted);
  FILL(table, Buffer_ElementType, buffer_element_type);
  FILL(table, Buffer_Dimensions, buffer_dimensions);
  FILL(table, Buffer_UnpaddedDimensions, buffer_dimensions);
  FILL(table, Buffer_DynamicDimensionIndices, buffer_dynamic_dimensions);
  FILL(table, Buffer_GetMemoryLayout, buffer_layout);
  FILL(table, Buffer_OnDeviceSizeInBytes, buffer_size);
  FILL(table, Buffer_Device, buffer_device);
  FILL(table, Buffer_Memory, buffer_memory);
  FILL(table, Buffer_IsOnCpu, buffer_is_on_cpu);
  FILL(table, Buffer_ReadyEvent, buffer_ready_event);
}

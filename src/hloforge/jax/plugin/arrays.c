/* The elements of arrays: IREE's buffer views, and where they lie. */

#include "plugin.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of an element by its type, in PJRT's order: the narrow ones take a byte each, as in numpy. */
static const unsigned char element_sizes[] = {
    0, 1,                   /* none, pred */
    1, 2, 4, 8, 1, 2, 4, 8, /* s8 to s64, u8 to u64 */
    2, 4, 8, 2, 8, 16,      /* f16, f32, f64, bf16, c64, c128 */
    1, 1, 1, 1, 1,          /* f8 e5m2, e4m3fn, e4m3b11fnuz, e5m2fnuz, e4m3fnuz */
    1, 1, 0, 1, 1,          /* s4, u4, token, s2, u2 */
    1, 1, 1, 1,             /* f8 e4m3, e3m4, e8m0fnu, f4 e2m1fn */
};

size_t element_size(int type) {
  return type >= 0 && (size_t)type < sizeof element_sizes ? element_sizes[type] : 0;
}

/* Of all arrays; the peak and the largest are updated loosely, which is enough for statistics. */
static atomic_llong bytes_in_use, bytes_peak, array_count, bytes_largest;

static void raise_to(atomic_llong *most, long long value) {
  long long old = atomic_load_explicit(most, memory_order_relaxed);
  while (old < value && !atomic_compare_exchange_weak(most, &old, value)) continue;
}

static void count_bytes(long long size) {
  raise_to(&bytes_peak, atomic_fetch_add(&bytes_in_use, size) + size);
  raise_to(&bytes_largest, size);
}

void array_statistics(int64_t *in_use, int64_t *peak, int64_t *count, int64_t *largest) {
  *in_use = atomic_load(&bytes_in_use);
  *peak = atomic_load(&bytes_peak);
  *count = atomic_load(&array_count);
  *largest = atomic_load(&bytes_largest);
}

/* All arrays, for the end. */
static Array *arrays;

static Array *array_new(size_t size, PJRT_Event *ready) {
  Array *array = calloc(1, sizeof *array);
  if (array == NULL) abort();
  array->references = 1;
  array->size = size;
  array->ready = ready;
  atomic_fetch_add(&array_count, 1);
  pthread_mutex_lock(&plugin_lock);
  array->next = arrays;
  array->place = &arrays;
  if (arrays != NULL) arrays->place = &array->next;
  arrays = array;
  pthread_mutex_unlock(&plugin_lock);
  return array;
}

Array *array_promise(size_t size) { return array_new(size, event_new()); }

Array *array_empty(size_t size) { return array_new(size, event_done()); }

/* Where a view's elements lie. A view of an empty array has no place. */
static bool map_view(Array *array, PyObject *view) {
  static PyObject *name;
  if (name == NULL && (name = PyUnicode_InternFromString("map")) == NULL) return false;
  if (array->size == 0) return true;
  array->mapping = PyObject_CallMethodObjArgs(view, name, NULL);
  Py_buffer buffer;
  if (array->mapping == NULL || PyObject_GetBuffer(array->mapping, &buffer, PyBUF_SIMPLE) < 0) return false;
  array->data = buffer.buf;
  bool fits = (size_t)buffer.len >= array->size;
  PyBuffer_Release(&buffer); /* IREE's local memory stays where it is as long as the mapping lives */
  if (!fits) PyErr_SetString(PyExc_SystemError, "a buffer of IREE is smaller than its array");
  return fits;
}

bool array_fill(Array *array, PyObject *view) {
  if (!map_view(array, view)) {
    Py_DECREF(view);
    return false;
  }
  array->view = view;
  count_bytes((long long)array->size);
  return true;
}

bool array_replace(Array *array, PyObject *view) {
  PyObject *old_view = array->view, *old_mapping = array->mapping;
  array->mapping = NULL;
  atomic_fetch_sub(&bytes_in_use, (long long)array->size);
  array->view = NULL;
  bool done = array_fill(array, view);
  Py_XDECREF(old_mapping);
  Py_DECREF(old_view);
  return done;
}

Array *array_share(Array *array) {
  atomic_fetch_add(&array->references, 1);
  return array;
}

void array_release(Array *array) {
  if (array == NULL || atomic_fetch_sub(&array->references, 1) != 1) return;
  pthread_mutex_lock(&plugin_lock);
  *array->place = array->next;
  if (array->next != NULL) array->next->place = array->place;
  pthread_mutex_unlock(&plugin_lock);
  if (array->view != NULL) atomic_fetch_sub(&bytes_in_use, (long long)array->size);
  python_release(array->mapping);
  python_release(array->view);
  event_release(array->ready);
  if (array->give_back != NULL) array->give_back(array->lender);
  free(array);
}

/* A memoryview of an array's bytes with its dimensions, all that IREE needs to copy it. */
static PyObject *view_of_memory(const void *data, int type, size_t rank, const int64_t *dims) {
  Py_ssize_t sizes[PyBUF_MAX_NDIM], strides[PyBUF_MAX_NDIM];
  size_t element = element_size(type);
  if (rank > PyBUF_MAX_NDIM) {
    PyErr_Format(PyExc_ValueError, "an array of rank %zu: at most %d", rank, PyBUF_MAX_NDIM);
    return NULL;
  }
  Py_ssize_t size = (Py_ssize_t)element;
  for (size_t i = rank; i-- > 0;) {
    sizes[i] = (Py_ssize_t)dims[i];
    strides[i] = size;
    size *= sizes[i];
  }
  Py_buffer buffer = {
      .buf = (void *)data,
      .len = size,
      .itemsize = (Py_ssize_t)element,
      .readonly = 1,
      .ndim = (int)rank,
      .format = "B",
      .shape = sizes,
      .strides = strides,
  };
  return PyMemoryView_FromBuffer(&buffer);
}

PyObject *view_of_copy(const void *data, int type, size_t rank, const int64_t *dims) {
  PyObject *put = python_function("put");
  PyObject *memory = put == NULL ? NULL : view_of_memory(data, type, rank, dims);
  PyObject *number = memory == NULL ? NULL : PyLong_FromLong(type);
  PyObject *view = number == NULL ? NULL : PyObject_CallFunctionObjArgs(put, memory, number, NULL);
  Py_XDECREF(number);
  Py_XDECREF(memory);
  return view;
}

PyObject *array_copy_view(Array *array, int type, size_t rank, const int64_t *dims) {
  static char nothing[16];
  return view_of_copy(array->data == NULL ? nothing : array->data, type, rank, dims);
}

PyObject *view_in_place(void *data, int type, size_t rank, const int64_t *dims, size_t size) {
  PyObject *put = python_function("put_in_place");
  PyObject *memory = put == NULL ? NULL : PyMemoryView_FromMemory(data, (Py_ssize_t)size, PyBUF_WRITE);
  PyObject *sizes = memory == NULL ? NULL : PyTuple_New((Py_ssize_t)rank);
  for (size_t i = 0; sizes != NULL && i < rank; i++) PyTuple_SetItem(sizes, i, PyLong_FromLongLong(dims[i]));
  PyObject *view = sizes == NULL ? NULL : PyObject_CallFunction(put, "OOi", memory, sizes, type);
  Py_XDECREF(sizes);
  Py_XDECREF(memory);
  return view;
}

void array_borrow(Array *array, void (*give_back)(void *), void *lender) {
  array->give_back = give_back;
  array->lender = lender;
}

Array *array_of_view(PyObject *view, size_t size) {
  Array *array = array_new(size, event_done());
  if (array_fill(array, view)) return array;
  array_release(array);
  return NULL;
}

/* An array that nobody else may end meanwhile, and that still has objects of IREE's; a reference, or NULL. */
static Array *next_with_view(void) {
  pthread_mutex_lock(&plugin_lock);
  Array *array = arrays;
  while (array != NULL && (array->view == NULL || atomic_load(&array->references) == 0)) array = array->next;
  if (array != NULL) atomic_fetch_add(&array->references, 1);
  pthread_mutex_unlock(&plugin_lock);
  return array;
}

void arrays_outlast(void) {
  PyObject *lasting = python_function("lasting");
  Array *array;
  while (lasting != NULL && (array = next_with_view()) != NULL) {
    PyObject *view = array->view, *mapping = array->mapping;
    array->mapping = array->size > 0 ? PyObject_CallFunctionObjArgs(lasting, view, NULL) : NULL;
    array->view = NULL;
    PyErr_Clear();
    Py_XDECREF(mapping);
    Py_DECREF(view);
    array_release(array);
  }
  PyErr_Clear();
}

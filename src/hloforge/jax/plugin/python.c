/* Where C meets the interpreter: entering it, leaving it, and staying out when it must not run. */

#include "plugin.h"

#include <dlfcn.h>
#include <stdlib.h>

/* Functions that the stable ABI lacks. Each Python since 3.11 has them, some by an older name. */
static int (*lock_is_held)(void);
static int (*is_finalizing)(void);
static PyThreadState *(*thread_state)(void);

static void *found(const char *name, const char *older) {
  void *function = dlsym(RTLD_DEFAULT, name);
  if (function == NULL) function = dlsym(RTLD_DEFAULT, older);
  if (function == NULL) PyErr_Format(PyExc_ImportError, "this Python has no function %s: hloforge needs CPython", name);
  return function;
}

bool python_find(void) {
  lock_is_held = (int (*)(void))found("PyGILState_Check", "PyGILState_Check");
  is_finalizing = (int (*)(void))found("Py_IsFinalizing", "_Py_IsFinalizing");
  thread_state = (PyThreadState * (*)(void)) found("PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet");
  return lock_is_held != NULL && is_finalizing != NULL && thread_state != NULL;
}

/* Objects that were given up where Python's lock was not held. */
typedef struct Given {
  struct Given *next;
  PyObject *object;
} Given;
static _Atomic(Given *) given_up;

bool python_is_up(void) { return Py_IsInitialized() && !is_finalizing(); }

static PyObject *take_exception(void) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (type == NULL) return NULL;
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != NULL) PyException_SetTraceback(value, traceback);
  Py_DECREF(type);
  Py_XDECREF(traceback);
  return value;
}

static void restore_exception(PyObject *exception) {
  if (exception == NULL) return;
  PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(exception)), exception, PyException_GetTraceback(exception));
}

static void sweep(void) {
  if (atomic_load_explicit(&given_up, memory_order_relaxed) == NULL) return;
  Given *given = atomic_exchange(&given_up, NULL);
  while (given != NULL) {
    Given *next = given->next;
    Py_DECREF(given->object);
    free(given);
    given = next;
  }
}

bool python_enter(Python *python) {
  if (!python_is_up()) return false;
  python->state = PyGILState_Ensure();
  python->pending = take_exception();
  sweep();
  return true;
}

void python_leave(Python *python) {
  restore_exception(python->pending);
  PyGILState_Release(python->state);
}

/* jaxlib destroys objects from within deallocations, with any exception pending, with locks of its own and without
 * Python's. Waiting for Python's lock there could wait for ever, so the object is left to who enters next. */
void python_release(PyObject *object) {
  if (object == NULL) return;
  /* Also while the interpreter takes its modules apart, and with them the last arrays. The second question alone is
   * answered by yes when the interpreter has ended. */
  bool has_lock = thread_state() != NULL && lock_is_held();
  if (!has_lock && !python_is_up()) return;
  if (has_lock) {
    PyObject *pending = take_exception();
    Py_DECREF(object);
    restore_exception(pending);
    return;
  }
  Given *given = malloc(sizeof *given);
  if (given == NULL) return;
  given->object = object;
  given->next = atomic_load(&given_up);
  while (!atomic_compare_exchange_weak(&given_up, &given->next, given)) continue;
}

PyThreadState *python_pause(void) {
  return python_is_up() && lock_is_held() ? PyEval_SaveThread() : NULL;
}

void python_resume(PyThreadState *paused) {
  if (paused != NULL) PyEval_RestoreThread(paused);
}

static PyObject *module;

void python_forget(void) {
  sweep();
  Py_CLEAR(module);
}

bool python_is_loaded(void) { return module != NULL; }

PyObject *python_function(const char *name) {
  if (module == NULL) {
    PyObject *imported = PyImport_ImportModule("hloforge.jax.plugin.execution");
    if (imported == NULL) return NULL;
    module = imported;
  }
  PyObject *function = PyObject_GetAttrString(module, name);
  Py_XDECREF(function); /* the module keeps it */
  return function;
}

/* execution.py's words for the exception: a code and a text. */
static PJRT_Error *described(PyObject *exception) {
  PyObject *describe = python_function("describe");
  PyObject *pair = describe == NULL ? NULL : PyObject_CallFunctionObjArgs(describe, exception, NULL);
  int code;
  const char *text;
  Py_ssize_t size;
  PJRT_Error *error = NULL;
  if (pair != NULL && PyArg_ParseTuple(pair, "is#", &code, &text, &size))
    error = error_new_text((PJRT_Code)code, text, (size_t)size);
  PyErr_Clear();
  Py_XDECREF(pair);
  return error;
}

PJRT_Error *python_error(void) {
  PyObject *exception = take_exception();
  if (exception == NULL) return error_new(PJRT_INTERNAL, "hloforge: an error without an exception");
  PJRT_Error *error = described(exception);
  if (error == NULL) error = error_new(PJRT_INTERNAL, "hloforge: an exception that cannot be told");
  Py_DECREF(exception);
  return error;
}

PJRT_Error *python_gone(void) { return error_new(PJRT_FAILED_PRECONDITION, "Python has ended"); }

/* The objects behind the PJRT C API, and what the files of the plugin share.
 *
 * Threads: the counts of references are atomic; every other field that changes is guarded by ``plugin_lock``, under
 * which nothing waits, calls Python or calls back. Python objects are touched between ``python_enter`` and
 * ``python_leave`` alone, and given up by ``python_release``, which is safe anywhere.
 */
#ifndef HLOFORGE_PLUGIN_H
#define HLOFORGE_PLUGIN_H

/* One library for every Python since 3.11. This file is included first, because Python.h chooses what system headers
 * declare. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <stdatomic.h>

#include "pjrt_table.h"

#define MAX_DEVICES 256
#define PLATFORM "hloforge"
#define CPU_PLATFORM "cpu"

typedef struct Array Array;
typedef struct Worker Worker;
typedef struct Buffer Buffer;

extern pthread_mutex_t plugin_lock;
/* Signalled when any event happens. */
extern pthread_cond_t plugin_changed;

/* python.c: the interpreter, and what stands in execution.py. */

typedef struct {
  PyGILState_STATE state;
  PyObject *pending; /* the exception that was on its way when the plugin was entered */
} Python;

/* To be called first. False, with an exception set, if this Python lacks what the plugin needs. */
bool python_find(void);
bool python_is_up(void);
/* Whether execution.py is imported. */
bool python_is_loaded(void);
/* False, and nothing to leave, if there is no interpreter any more. */
bool python_enter(Python *python);
void python_leave(Python *python);
void python_release(PyObject *object);
/* Let other threads run if this one holds Python's lock. */
PyThreadState *python_pause(void);
void python_resume(PyThreadState *paused);
/* A function of execution.py, borrowed; NULL with an exception set. */
PyObject *python_function(const char *name);
/* Let all go that must not outlive the interpreter: execution.py has the devices. */
void python_forget(void);
/* The exception that is set, as an error. */
PJRT_Error *python_error(void);
PJRT_Error *python_gone(void);

/* events.c */

PJRT_Error *error_new(PJRT_Code code, const char *format, ...) __attribute__((format(printf, 2, 3)));
PJRT_Error *error_new_text(PJRT_Code code, const char *text, size_t size);
PJRT_Error *error_copy(const PJRT_Error *error);
void error_free(PJRT_Error *error);
/* An error's text, which lives as long as it. */
void error_text(const PJRT_Error *error, const char **text, size_t *size);

typedef void EventAction(PJRT_Error *error, void *user); /* owns the error, which is NULL after success */
PJRT_Event *event_new(void);
/* An event that has happened. */
PJRT_Event *event_done(void);
PJRT_Event *event_share(PJRT_Event *event);
void event_release(PJRT_Event *event);
/* The event happens; takes the error over. */
void event_set(PJRT_Event *event, PJRT_Error *error);
bool event_is_set(PJRT_Event *event);
bool event_succeeded(PJRT_Event *event);
/* Call when the event has happened, at once if it has. */
void event_then(PJRT_Event *event, EventAction *action, void *user);
/* Wait; a copy of the error, or NULL. */
PJRT_Error *event_wait(PJRT_Event *event);

/* devices.c */

typedef struct Client Client;
typedef struct Device Device;

typedef struct UserData {
  struct UserData *next;
  const void *key;
  void *data;
  void (*destroy)(void *);
} UserData;

/* Names for one and the same memory, as on JAX's CPU: what moves between them stays where it is. */
enum { MEMORY_KINDS = 3 };
extern const char *const memory_kinds[MEMORY_KINDS];

typedef struct {
  const PJRT_MemoryFunctions *functions; /* first: what jaxlib expects of a memory */
  Device *device;
  int kind;
  UserData *user_data;
  char text[48];
} Memory;

struct Device { /* and its description */
  Client *client;
  int number, process; /* among all; whose it is */
  Memory memories[MEMORY_KINDS]; /* arrays are in the first if nobody says */
  Memory *memory_list[MEMORY_KINDS];
  Worker *worker;
  char text[48], debug_text[48];
};

struct Client { /* and its topology */
  bool is_cpu; /* JAX knows the devices as its CPU's */
  int process;                  /* which of several processes this is */
  int device_count;             /* of all processes */
  int own_first, own_count;     /* those of this one, which alone has arrays on them */
  bool is_attached; /* a client, not a description of devices alone */
  Device **device_list;
  Memory **memory_list;
  Device devices[];
};

bool device_is_own(const Device *device);
/* The memory, or the device's own if there is none. */
Memory *memory_of(void *device, void *memory);

/* arrays.c: the elements of arrays. */

struct Array {
  atomic_int references;
  PJRT_Event *ready;   /* when there are elements, or an error */
  PyObject *view;      /* IREE's buffer view */
  PyObject *mapping;   /* keeps ``data`` mapped */
  char *data;
  size_t size;         /* bytes */
  bool is_shared;      /* other arrays lie in the same memory: a donated one is copied first */
  /* It lies in memory of a caller, who is told when it is no longer used: IREE does not keep that alive. */
  void (*give_back)(void *lender);
  void *lender;
  Array *next, **place; /* among all arrays */
};

enum { TYPE_TOKEN = 23 };
size_t element_size(int type);
Array *array_promise(size_t size);
/* An array that is filled before anybody sees it. */
Array *array_empty(size_t size);
/* An array with the buffer view, whose reference it takes; NULL with an exception set. */
Array *array_of_view(PyObject *view, size_t size);
/* Give a promised array its elements; takes the view's reference. False with an exception set. */
bool array_fill(Array *array, PyObject *view);
/* The same with other elements than it has. */
bool array_replace(Array *array, PyObject *view);
void array_borrow(Array *array, void (*give_back)(void *), void *lender);
Array *array_share(Array *array);
void array_release(Array *array);
/* New references to buffer views; NULL with an exception set. */
PyObject *view_of_copy(const void *data, int type, size_t rank, const int64_t *dims);
PyObject *view_in_place(void *data, int type, size_t rank, const int64_t *dims, size_t size);
PyObject *array_copy_view(Array *array, int type, size_t rank, const int64_t *dims);
/* At the end jaxlib keeps some arrays, and IREE's bindings complain of their objects that are left: let the memory be
 * kept by something else. A program that takes such an array takes a copy. */
void arrays_outlast(void);
void array_statistics(int64_t *in_use, int64_t *peak, int64_t *count, int64_t *largest);

/* layouts.c */

typedef struct Layout {
  struct Layout *next;
  size_t rank;
  bool is_dense; /* row after row */
  char text[4 * PyBUF_MAX_NDIM];
  int64_t minor_to_major[];
} Layout;

Layout *layout_of(size_t rank, const int64_t *minor_to_major);
/* Row after row. */
Layout *layout_of_rank(size_t rank);
/* In bytes, by dimension. */
void layout_strides(const Layout *layout, const int64_t *dims, size_t element, int64_t *strides);
/* The sizes in the order in which they lie. */
void layout_physical(const Layout *layout, const int64_t *dims, int64_t *physical);
bool strides_are_dense(size_t rank, const int64_t *dims, const int64_t *strides, size_t element);
void copy_strided(char *to, const char *from, size_t rank, const int64_t *dims, const int64_t *to_strides,
                  const int64_t *from_strides, size_t element);
PJRT_Extension *layout_extension(void);

/* buffers.c */

struct Buffer {
  Memory *memory;
  const Layout *layout;
  Array *array;    /* NULL once deleted or donated */
  Array *held;     /* what numpy shows, as long as ``holds`` is not 0 */
  int holds;
  int type;
  size_t rank;
  int64_t dims[];
};

Buffer *buffer_new(Memory *memory, int type, const Layout *layout, const int64_t *dims, Array *array);
size_t buffer_bytes(const Buffer *buffer);
/* A reference to the array; NULL if it was deleted. */
Array *buffer_array(Buffer *buffer);
/* The same, and the buffer gives it up. */
Array *buffer_take(Buffer *buffer);
/* Whether it gave its array up. */
bool buffer_is_empty(Buffer *buffer);
/* Undo it; takes a reference of its own. */
void buffer_put_back(Buffer *buffer, Array *array);
/* Copies to the host are guarded from now on: numpy must not show memory in place where they are. */
void buffers_are_guarded(void);

/* executables.c */

/* A parameter or a result. */
typedef struct {
  int type;
  size_t rank;
  int64_t *dims, *physical; /* sizes, and these in the order in which they lie */
  const Layout *layout;
  int kind;        /* of memory */
  bool is_donated; /* a parameter whose memory the program takes */
  size_t size;     /* bytes */
  bool is_apart;   /* a result that is too small to keep the memory of all results, which is in one piece */
} Value;

typedef struct Executable {
  atomic_int references;
  struct Executable *next, **place; /* among all executables */
  Client *client;
  PyObject *program;       /* execution.py's Program; NULL at the end of the interpreter, as its functions are */
  PyObject *run, *run_all; /* for one device and for several, or None */
  atomic_bool is_deleted;
  bool in_background; /* it takes longer than handing it to another thread */
  bool donates;       /* it takes the memory of a parameter */
  char *name, *fingerprint, *text, *options;
  size_t name_size, fingerprint_size, text_size, options_size;
  char *part; /* what as_text() shows of a program of several partitions; NULL until somebody asks */
  size_t part_size;
  int64_t code_size;
  size_t replicas, partitions, device_count, parameter_count, result_count;
  size_t taken_count, returned_count; /* without tokens, which order effects and hold nothing */
  Device **devices;     /* of the whole grid */
  size_t own_count;     /* how many of them are of this process */
  Device **own_devices; /* in the order of the grid; so their places in it */
  PJRT_LogicalId *logical_ids;
  Value *values; /* parameters, then results */
  void **layouts;
  const char **shardings; /* bytes of ``program``; NULL if it is not partitioned */
  size_t *sharding_sizes;
  const char **kinds; /* of memory */
  size_t *kind_sizes;
  int32_t *result_types;
  int64_t *result_dims; /* one after the other */
  size_t *result_ranks;
  PJRT_NamedValue *costs; /* NULL until somebody asks */
  size_t cost_count;
} Executable;

/* Under Python's lock or not. */
void executable_release(Executable *executable);
/* Give up what execution.py made: no executable runs any more. */
void executables_end(void);

/* worker.c: a thread of a device that runs what takes long. */

typedef void Work(void *task); /* called with Python's lock */
void worker_add(Device *device, Work *work, void *task);
/* Finish what was begun; everything runs in the caller's thread from then on. */
void workers_stop(void);
bool workers_are_stopped(void);

/* profiler.c: whether JAX records what runs. */

bool profiler_is_on(void);
PJRT_Extension *profiler_extension(void);

/* The functions of the table, by file. */

PJRT_Extension *sharding_extension(void);
void fill_events(PJRT_Function *table);
void fill_devices(PJRT_Function *table);
void fill_buffers(PJRT_Function *table);
void fill_executables(PJRT_Function *table);
void fill_executable_facts(PJRT_Function *table);
void fill_execute(PJRT_Function *table);

#define FILL(table, name, function) ((table)[PJRT_##name] = (PJRT_Function)(function))

#endif

/* What hloforge needs of the PJRT C API, the table of functions by which jaxlib drives a device.
 *
 * A caller passes one struct to each function: its size, a list of extensions, the arguments, room for the results.
 * Many functions take structs of the same form, which have one declaration here. Objects are opaque to the caller,
 * but for errors and memories, which begin with a table of functions of their own.
 *
 * Facts (order of functions and fields): XLA's pjrt_c_api.h, API 0.112, that of jaxlib 0.10.
 */
#ifndef HLOFORGE_PJRT_H
#define HLOFORGE_PJRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PJRT_MAJOR = 0, PJRT_MINOR = 112 };

typedef struct PJRT_Error PJRT_Error;
typedef struct PJRT_Event PJRT_Event;

/* Codes of absl::Status. */
typedef enum {
  PJRT_OK = 0,
  PJRT_INVALID_ARGUMENT = 3,
  PJRT_NOT_FOUND = 5,
  PJRT_FAILED_PRECONDITION = 9,
  PJRT_UNIMPLEMENTED = 12,
  PJRT_INTERNAL = 13,
} PJRT_Code;

/* What begins every struct of arguments. */
#define PJRT_HEAD    \
  size_t struct_size; \
  void *extension_start

/* An object alone: Destroy, Delete, Await and Error of events. */
typedef struct {
  PJRT_HEAD;
  void *object;
} PJRT_Object_Args;

/* One result of an object. */
typedef struct {
  PJRT_HEAD;
  void *object;
  void *result;
} PJRT_Related_Args;

typedef struct {
  PJRT_HEAD;
  void *object;
  int32_t number;
} PJRT_Number_Args;

typedef struct {
  PJRT_HEAD;
  void *object;
  size_t size;
} PJRT_Size_Args;

typedef struct {
  PJRT_HEAD;
  void *object;
  bool flag;
} PJRT_Flag_Args;

typedef struct {
  PJRT_HEAD;
  void *object;
  const char *text;
  size_t size;
} PJRT_Text_Args;

/* An array of pointers, numbers or structs that the object keeps. */
typedef struct {
  PJRT_HEAD;
  void *object;
  const void *items;
  size_t count;
} PJRT_List_Args;

/* Bytes that the caller frees: ``deleter(handle)``. */
typedef struct {
  PJRT_HEAD;
  void *object;
  const void *bytes;
  size_t size;
  void *handle;
  void (*deleter)(void *handle);
} PJRT_Owned_Args;

typedef struct {
  PJRT_HEAD;
  void *object;
  size_t count;
  const char *const *kinds;
  const size_t *sizes;
} PJRT_MemoryKinds_Args;

/* A value with a name: an attribute or an option. ``size`` counts characters, numbers of a list, or is 1. */
typedef enum { PJRT_STRING = 0, PJRT_INT64 = 1, PJRT_INT64_LIST = 2, PJRT_FLOAT = 3, PJRT_BOOL = 4 } PJRT_ValueKind;
typedef struct {
  PJRT_HEAD;
  const char *name;
  size_t name_size;
  PJRT_ValueKind kind;
  union {
    const char *string;
    int64_t int64;
    const int64_t *int64_list;
    float real;
    bool boolean;
  };
  size_t size;
} PJRT_NamedValue;

/* Errors and memories begin with these. */
typedef void PJRT_PayloadVisitor(const char *key, size_t key_size, const char *value, size_t value_size, void *user);
typedef struct {
  size_t struct_size;
  size_t instance_size;
  void *extension_start;
  void (*destroy)(PJRT_Error *);
  void (*message)(const PJRT_Error *, const char **text, size_t *size);
  PJRT_Code (*code)(const PJRT_Error *);
  void (*for_each_payload)(const PJRT_Error *, PJRT_PayloadVisitor *, void *user);
} PJRT_ErrorFunctions;

typedef struct {
  size_t struct_size;
  void *extension_start;
  size_t instance_size;
  void *(*get_user_data)(void *memory, const void *key);
  void (*set_user_data)(void *memory, const void *key, void *data, void (*destroy)(void *));
} PJRT_MemoryFunctions;

/* Plugin, events. */
typedef struct {
  PJRT_HEAD;
  const PJRT_NamedValue *attributes;
  size_t count;
} PJRT_PluginAttributes_Args;

typedef struct {
  PJRT_HEAD;
  PJRT_Event *event;
  void (*callback)(PJRT_Error *error, void *user);
  void *user;
} PJRT_OnReady_Args;

typedef struct {
  PJRT_HEAD;
  PJRT_Event *event;
} PJRT_EventCreate_Args;

typedef struct {
  PJRT_HEAD;
  PJRT_Event *event;
  PJRT_Code code;
  const char *message;
  size_t message_size;
} PJRT_EventSet_Args;

/* Client, devices, memories. */
typedef struct {
  PJRT_HEAD;
  const PJRT_NamedValue *options;
  size_t option_count;
  void *key_value_store[4];
  void *client;
} PJRT_ClientCreate_Args;

typedef struct {
  PJRT_HEAD;
  const char *name;
  size_t name_size;
  const PJRT_NamedValue *options;
  size_t option_count;
  void *topology;
} PJRT_TopologyCreate_Args;

typedef struct {
  PJRT_HEAD;
  const char *serialized;
  size_t size;
  void *topology;
} PJRT_TopologyDeserialize_Args;

typedef struct {
  PJRT_HEAD;
  void *client;
  int32_t number;
  void *device;
} PJRT_Lookup_Args;

typedef struct {
  PJRT_HEAD;
  void *client;
  int32_t replicas;
  int32_t partitions;
  size_t size;
  int32_t *assignment;
} PJRT_DefaultAssignment_Args;

typedef struct {
  PJRT_HEAD;
  void *description;
  size_t count;
  const PJRT_NamedValue *attributes;
} PJRT_DescriptionAttributes_Args;

typedef struct {
  PJRT_HEAD;
  void *device;
  const char *description;
  size_t description_size;
  void *event;
} PJRT_TrackingEvent_Args;

/* Numbers that may be unknown follow each other with a flag. */
typedef struct {
  int64_t value;
  bool is_set;
} PJRT_Statistic;
typedef struct {
  PJRT_HEAD;
  void *device;
  int64_t bytes_in_use;
  PJRT_Statistic peak_bytes_in_use, allocations, largest_allocation, limit, others[6];
} PJRT_MemoryStats_Args;

/* Buffers. */
typedef enum { PJRT_LAYOUT_TILED = 0, PJRT_LAYOUT_STRIDES = 1 } PJRT_LayoutKind;
typedef struct {
  PJRT_HEAD;
  union {
    struct {
      PJRT_HEAD;
      const int64_t *minor_to_major;
      size_t rank;
      const int64_t *tile_dims;
      const size_t *tile_dim_counts;
      size_t tile_count;
    } tiled;
    struct {
      PJRT_HEAD;
      const int64_t *byte_strides;
      size_t rank;
    } strides;
  };
  PJRT_LayoutKind kind;
} PJRT_Layout;

typedef struct {
  PJRT_HEAD;
  void *buffer;
  PJRT_Layout layout;
} PJRT_BufferLayout_Args;

typedef enum {
  PJRT_ONLY_DURING_CALL = 0,
  PJRT_UNTIL_TRANSFER_COMPLETES = 1,
  PJRT_ZERO_COPY = 2,
} PJRT_HostSemantics;

typedef struct {
  PJRT_HEAD;
  void *client;
  const void *data;
  int32_t type;
  const int64_t *dims;
  size_t rank;
  const int64_t *byte_strides; /* NULL for rows after rows */
  size_t stride_count;
  PJRT_HostSemantics semantics;
  void *device;
  void *memory;
  const PJRT_Layout *layout;
  PJRT_Event *done_with_host;
  void *buffer;
} PJRT_FromHost_Args;

typedef struct {
  PJRT_HEAD;
  void *client;
  const int64_t *dims;
  size_t rank;
  int32_t type;
  const PJRT_Layout *layout;
  void *device;
  void *memory;
  void *buffer;
} PJRT_Uninitialized_Args;

typedef struct {
  PJRT_HEAD;
  void *client;
  PJRT_Code code;
  const char *message;
  size_t message_size;
  const int64_t *dims;
  size_t rank;
  int32_t type;
  const PJRT_Layout *layout;
  void *memory;
  void *buffer;
} PJRT_ErrorBuffer_Args;

typedef struct {
  PJRT_HEAD;
  void *client;
  void *data;
  const int64_t *dims;
  size_t rank;
  int32_t type;
  const PJRT_Layout *layout;
  void *device;
  void (*on_delete)(void *data, void *user);
  void *user;
  intptr_t stream;
  void *buffer;
  void *memory;
} PJRT_ViewOfMemory_Args;

typedef struct {
  PJRT_HEAD;
  void *buffer;
  const PJRT_Layout *layout; /* NULL for that of the buffer */
  void *destination;         /* NULL asks for the size */
  size_t size;
  PJRT_Event *event;
} PJRT_ToHost_Args;

typedef struct {
  PJRT_HEAD;
  void *buffer;
  void *destination;
  int64_t offset;
  int64_t size;
  PJRT_Event *event;
} PJRT_RawToHost_Args;

typedef struct {
  PJRT_HEAD;
  void *buffer;
  void *place; /* a device or a memory */
  void *copy;
} PJRT_CopyTo_Args;

/* Executables. */
typedef struct {
  PJRT_HEAD;
  char *code;
  size_t code_size;
  const char *format;
  size_t format_size;
} PJRT_Program;

typedef struct {
  PJRT_HEAD;
  void *client;
  const PJRT_Program *program;
  const char *options;
  size_t options_size;
  void *executable;
} PJRT_ClientCompile_Args;

typedef struct {
  PJRT_HEAD;
  void *topology;
  const PJRT_Program *program;
  const char *options;
  size_t options_size;
  void *client;
  void *executable;
} PJRT_Compile_Args;

typedef struct {
  PJRT_HEAD;
  void *client;
  void *executable;
  const char *options;
  size_t options_size;
  void *loaded;
} PJRT_Load_Args;

typedef struct {
  PJRT_HEAD;
  void *client;
  const char *serialized;
  size_t serialized_size;
  void *loaded;
  const char *options;
  size_t options_size;
} PJRT_Deserialize_Args;

typedef struct {
  PJRT_HEAD;
  void *executable;
  PJRT_Program *program;
} PJRT_OptimizedProgram_Args;

typedef struct {
  PJRT_HEAD;
  void *executable;
  size_t count;
  const PJRT_NamedValue *costs;
} PJRT_Costs_Args;

typedef struct {
  PJRT_HEAD;
  void *executable;
  size_t count;
  const int64_t *dims;
  const size_t *ranks;
} PJRT_OutputDimensions_Args;

typedef struct {
  PJRT_HEAD;
  void *executable;
  int64_t generated_code, arguments, outputs, aliases, temporaries;
  int64_t on_host[5];
  int64_t peak, total;
} PJRT_CompiledMemory_Args;

typedef struct {
  int32_t replica, partition;
} PJRT_LogicalId;

typedef struct {
  PJRT_HEAD;
  void *send_callbacks, *recv_callbacks;
  size_t send_count, recv_count;
  int32_t launch_id;
  const int64_t *kept_inputs; /* donated by the program, not by this call */
  size_t kept_count;
} PJRT_ExecuteOptions;

typedef struct {
  PJRT_HEAD;
  void *executable;
  PJRT_ExecuteOptions *options;
  void *const *const *arguments; /* [device][argument] */
  size_t devices;
  size_t argument_count;
  void **const *outputs;     /* [device][output], to be filled */
  PJRT_Event **done;         /* [device], to be filled; or NULL */
  void *device;
} PJRT_Execute_Args;

/* Extensions. */
enum { PJRT_EXTENSION_PROFILER = 1, PJRT_EXTENSION_LAYOUTS = 4, PJRT_EXTENSION_SHARDINGS = 19 };
typedef struct {
  size_t struct_size;
  int32_t type;
  void *next;
} PJRT_Extension;

typedef struct {
  PJRT_HEAD;
  void *object;
  int32_t type;
  const int64_t *dims;
  size_t rank;
  void *layout;
} PJRT_DefaultLayout_Args;

typedef struct {
  PJRT_HEAD;
  void *executable;
  size_t count;
  void *const *layouts;
} PJRT_ExecutableLayouts_Args;

typedef struct {
  PJRT_HEAD;
  void *executable;
  size_t count;
  const char *const *shardings; /* OpShardings; NULL for none */
  const size_t *sizes;
} PJRT_Shardings_Args;

/* JAX's profiler. Its structs have no list of extensions. Source: XLA, profiler_c_api.h. */
typedef struct {
  size_t struct_size;
  void *priv;
  PJRT_Error *error;
} PJRT_ProfilerError_Args;

typedef struct {
  size_t struct_size;
  void *priv;
  const PJRT_Error *error;
  const char *text; /* to be filled, as the size */
  size_t size;
} PJRT_ProfilerErrorText_Args;

typedef struct {
  size_t struct_size;
  void *priv;
  const PJRT_Error *error;
  int code; /* to be filled */
} PJRT_ProfilerErrorCode_Args;

typedef struct {
  size_t struct_size;
  const char *options;
  size_t options_size;
  void *profiler; /* to be filled */
} PJRT_ProfilerCreate_Args;

typedef struct {
  size_t struct_size;
  void *profiler;
} PJRT_Profiler_Args;

typedef struct {
  size_t struct_size;
  void *profiler;
  void *buffer; /* to be filled; where it is NULL, with memory of the profiler's */
  size_t size;  /* to be filled */
} PJRT_ProfilerCollect_Args;

typedef struct {
  size_t struct_size;
  void *priv;
  void (*error_destroy)(PJRT_ProfilerError_Args *args);
  void (*error_message)(PJRT_ProfilerErrorText_Args *args);
  PJRT_Error *(*error_code)(PJRT_ProfilerErrorCode_Args *args);
  PJRT_Error *(*create)(PJRT_ProfilerCreate_Args *args);
  PJRT_Error *(*destroy)(PJRT_Profiler_Args *args);
  PJRT_Error *(*start)(PJRT_Profiler_Args *args);
  PJRT_Error *(*stop)(PJRT_Profiler_Args *args);
  PJRT_Error *(*collect)(PJRT_ProfilerCollect_Args *args);
} PJRT_ProfilerFunctions;

typedef struct {
  PJRT_Extension base;
  PJRT_ProfilerFunctions *functions;
  int64_t context; /* of a call, where this is among its arguments */
} PJRT_ProfilerExtension;

#endif

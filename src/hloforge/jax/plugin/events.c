/* Errors and events. */

#include "plugin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t plugin_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t plugin_changed = PTHREAD_COND_INITIALIZER;

struct PJRT_Error {
  const PJRT_ErrorFunctions *functions; /* first: what jaxlib expects of an error */
  PJRT_Code code;
  size_t size;
  char text[];
};

void error_free(PJRT_Error *error) { free(error); }

void error_text(const PJRT_Error *error, const char **text, size_t *size) {
  *text = error->text;
  *size = error->size;
}

static PJRT_Code code_of(const PJRT_Error *error) { return error->code; }

static void no_payload(const PJRT_Error *error, PJRT_PayloadVisitor *visitor, void *user) {
  (void)error, (void)visitor, (void)user;
}

static const PJRT_ErrorFunctions error_functions = {
    .struct_size = sizeof(PJRT_ErrorFunctions),
    .instance_size = sizeof(PJRT_Error),
    .destroy = error_free,
    .message = error_text,
    .code = code_of,
    .for_each_payload = no_payload,
};

PJRT_Error *error_new_text(PJRT_Code code, const char *text, size_t size) {
  PJRT_Error *error = malloc(sizeof *error + size + 1);
  if (error == NULL) abort(); /* without memory for a message nothing can be said */
  error->functions = &error_functions;
  error->code = code;
  error->size = size;
  memcpy(error->text, text, size);
  error->text[size] = 0;
  return error;
}

PJRT_Error *error_new(PJRT_Code code, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return error_new_text(code, text, strlen(text));
}

PJRT_Error *error_copy(const PJRT_Error *error) {
  return error == NULL ? NULL : error_new_text(error->code, error->text, error->size);
}

typedef struct Waiting {
  struct Waiting *next;
  EventAction *action;
  void *user;
} Waiting;

struct PJRT_Event {
  atomic_int references;
  bool is_set;
  PJRT_Error *error;
  Waiting *waiting;
};

PJRT_Event *event_new(void) {
  PJRT_Event *event = calloc(1, sizeof *event);
  if (event == NULL) abort();
  event->references = 1;
  return event;
}

/* One event serves all that was ready from the start: it is never freed. */
static PJRT_Event done = {.references = 1, .is_set = true};

PJRT_Event *event_done(void) { return event_share(&done); }

bool event_succeeded(PJRT_Event *event) {
  if (event == &done) return true;
  pthread_mutex_lock(&plugin_lock);
  bool succeeded = event->is_set && event->error == NULL;
  pthread_mutex_unlock(&plugin_lock);
  return succeeded;
}

PJRT_Event *event_share(PJRT_Event *event) {
  atomic_fetch_add(&event->references, 1);
  return event;
}

void event_release(PJRT_Event *event) {
  if (event == NULL || atomic_fetch_sub(&event->references, 1) != 1) return;
  error_free(event->error);
  free(event);
}

void event_set(PJRT_Event *event, PJRT_Error *error) {
  pthread_mutex_lock(&plugin_lock);
  bool is_second = event->is_set;
  Waiting *waiting = event->waiting;
  if (!is_second) {
    event->is_set = true;
    event->error = error;
    event->waiting = NULL;
    pthread_cond_broadcast(&plugin_changed);
  }
  pthread_mutex_unlock(&plugin_lock);
  if (is_second) {
    error_free(error);
    return;
  }
  while (waiting != NULL) {
    Waiting *next = waiting->next;
    waiting->action(error_copy(error), waiting->user);
    free(waiting);
    waiting = next;
  }
}

bool event_is_set(PJRT_Event *event) {
  pthread_mutex_lock(&plugin_lock);
  bool is_set = event->is_set;
  pthread_mutex_unlock(&plugin_lock);
  return is_set;
}

void event_then(PJRT_Event *event, EventAction *action, void *user) {
  Waiting *waiting = malloc(sizeof *waiting);
  if (waiting == NULL) abort();
  *waiting = (Waiting){.action = action, .user = user};
  pthread_mutex_lock(&plugin_lock);
  bool is_set = event->is_set;
  if (!is_set) {
    waiting->next = event->waiting;
    event->waiting = waiting;
  }
  pthread_mutex_unlock(&plugin_lock);
  if (!is_set) return;
  free(waiting);
  action(error_copy(event->error), user);
}

PJRT_Error *event_wait(PJRT_Event *event) {
  if (!event_is_set(event)) {
    PyThreadState *paused = python_pause();
    pthread_mutex_lock(&plugin_lock);
    while (!event->is_set) pthread_cond_wait(&plugin_changed, &plugin_lock);
    pthread_mutex_unlock(&plugin_lock);
    python_resume(paused);
  }
  return error_copy(event->error);
}

/* The functions of the table. */

static PJRT_Error *error_destroy(PJRT_Object_Args *args) {
  error_free(args->object);
  return NULL;
}

static PJRT_Error *error_message(PJRT_Text_Args *args) {
  error_text(args->object, &args->text, &args->size);
  return NULL;
}

static PJRT_Error *error_code(PJRT_Number_Args *args) {
  args->number = code_of(args->object);
  return NULL;
}

static PJRT_Error *error_payload(void *args) {
  (void)args;
  return NULL;
}

static PJRT_Error *event_destroy(PJRT_Object_Args *args) {
  event_release(args->object);
  return NULL;
}

static PJRT_Error *event_is_ready(PJRT_Flag_Args *args) {
  args->flag = event_is_set(args->object);
  return NULL;
}

static PJRT_Error *event_error(PJRT_Object_Args *args) {
  if (!event_is_set(args->object)) return error_new(PJRT_FAILED_PRECONDITION, "the event has not happened yet");
  return error_copy(((PJRT_Event *)args->object)->error);
}

static PJRT_Error *event_await(PJRT_Object_Args *args) { return event_wait(args->object); }

static PJRT_Error *event_on_ready(PJRT_OnReady_Args *args) {
  event_then(args->event, args->callback, args->user);
  return NULL;
}

static PJRT_Error *event_create(PJRT_EventCreate_Args *args) {
  args->event = event_new();
  return NULL;
}

static PJRT_Error *event_set_by_caller(PJRT_EventSet_Args *args) {
  event_set(args->event, args->code ? error_new_text(args->code, args->message, args->message_size) : NULL);
  return NULL;
}

void fill_events(PJRT_Function *table) {
  FILL(table, Error_Destroy, error_destroy);
  FILL(table, Error_Message, error_message);
  FILL(table, Error_GetCode, error_code);
  FILL(table, Error_ForEachPayload, error_payload);
  FILL(table, Event_Destroy, event_destroy);
  FILL(table, Event_IsReady, event_is_ready);
  FILL(table, Event_Error, event_error);
  FILL(table, Event_Await, event_await);
  FILL(table, Event_OnReady, event_on_ready);
  FILL(table, Event_Create, event_create);
  FILL(table, Event_Set, event_set_by_caller);
}

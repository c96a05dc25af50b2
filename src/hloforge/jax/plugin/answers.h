/* The plain answers of functions of the table: a text, a list, a number, bytes that stay the plugin's. */
#ifndef HLOFORGE_ANSWERS_H
#define HLOFORGE_ANSWERS_H

#include <string.h>

#include "pjrt.h"

static inline PJRT_Error *answer_text(PJRT_Text_Args *args, const char *text, size_t size) {
  args->text = text;
  args->size = size;
  return NULL;
}

static inline PJRT_Error *answer_list(PJRT_List_Args *args, const void *items, size_t count) {
  args->items = items;
  args->count = count;
  return NULL;
}

static inline PJRT_Error *answer_size(PJRT_Size_Args *args, size_t size) {
  args->size = size;
  return NULL;
}

static inline PJRT_Error *answer_number(PJRT_Number_Args *args, int32_t number) {
  args->number = number;
  return NULL;
}

static inline PJRT_Error *answer_flag(PJRT_Flag_Args *args, bool flag) {
  args->flag = flag;
  return NULL;
}

static inline PJRT_Error *answer_object(PJRT_Related_Args *args, void *object) {
  args->result = object;
  return NULL;
}

static inline void answer_keeps(void *handle) { (void)handle; }

/* Bytes that nobody frees. */
static inline PJRT_Error *answer_bytes(PJRT_Owned_Args *args, const void *bytes, size_t size) {
  args->bytes = bytes;
  args->size = size;
  args->handle = NULL;
  args->deleter = answer_keeps;
  return NULL;
}

static inline PJRT_Error *answer_nothing(void *args) {
  (void)args;
  return NULL;
}

#endif

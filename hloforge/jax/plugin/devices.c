/* The client with its devices and their memories; the topology is the client too.
 *
 * The devices are virtual: threads of this process that share its memory. Creating them costs nothing, for JAX creates
 * the client of every platform that it knows.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

#define MEMORY_KIND "device"
/* jaxlib tells kinds of memory apart by these as well. */
enum { MEMORY_KIND_ID = 1 };

/* jaxlib hangs its own objects on memories, by a key. */
static void *get_user_data(void *object, const void *key) {
  Memory *memory = object;
  void *data = NULL;
  pthread_mutex_lock(&plugin_lock);
  for (UserData *entry = memory->user_data; entry != NULL; entry = entry->next)
    if (entry->key == key) data = entry->data;
  pthread_mutex_unlock(&plugin_lock);
  return data;
}

static void set_user_data(void *object, const void *key, void *data, void (*destroy)(void *)) {
  Memory *memory = object;
  UserData *entry = malloc(sizeof *entry);
  if (entry == NULL) abort();
  *entry = (UserData){.key = key, .data = data, .destroy = destroy};
  pthread_mutex_lock(&plugin_lock);
  UserData **place = &memory->user_data;
  while (*place != NULL && (*place)->key != key) place = &(*place)->next;
  UserData *old = *place;
  entry->next = old == NULL ? NULL : old->next;
  *place = entry;
  pthread_mutex_unlock(&plugin_lock);
  if (old != NULL && old->destroy != NULL) old->destroy(old->data);
  free(old);
}

static const PJRT_MemoryFunctions memory_functions = {
    .struct_size = sizeof(PJRT_MemoryFunctions),
    .instance_size = sizeof(Memory),
    .get_user_data = get_user_data,
    .set_user_data = set_user_data,
};

static void init_device(Client *client, int number) {
  Device *device = &client->devices[number];
  device->client = client;
  device->number = number;
  device->memory.functions = &memory_functions;
  device->memory.device = device;
  device->memories[0] = client->memory_list[number] = &device->memory;
  client->device_list[number] = device;
  snprintf(device->text, sizeof device->text, "HloforgeDevice(id=%d)", number);
  snprintf(device->debug_text, sizeof device->debug_text, PLATFORM ":%d", number);
  snprintf(device->memory.text, sizeof device->memory.text, MEMORY_KIND " memory of " PLATFORM ":%d", number);
}

/* The option ``devices``, 1 without it. */
static int64_t option_of(const PJRT_ClientCreate_Args *args) {
  for (size_t i = 0; i < args->option_count; i++) {
    const PJRT_NamedValue *option = &args->options[i];
    if (option->name_size == 7 && memcmp(option->name, "devices", 7) == 0 && option->kind == PJRT_INT64)
      return option->int64;
  }
  return 1;
}

static PJRT_Error *client_create(PJRT_ClientCreate_Args *args) {
  int64_t count = option_of(args);
  if (count < 1 || count > MAX_DEVICES)
    return error_new(PJRT_INVALID_ARGUMENT, "%lld devices: from 1 to %d are possible", (long long)count, MAX_DEVICES);
  Client *client = calloc(1, sizeof *client);
  if (client == NULL) abort();
  client->device_count = (int)count;
  for (int number = 0; number < count; number++) init_device(client, number);
  args->client = client;
  return NULL;
}

static PJRT_Error *client_destroy(PJRT_Object_Args *args) {
  Client *client = args->object;
  for (int number = 0; number < client->device_count; number++) {
    UserData *entry = client->devices[number].memory.user_data;
    while (entry != NULL) {
      UserData *next = entry->next;
      if (entry->destroy != NULL) entry->destroy(entry->data);
      free(entry);
      entry = next;
    }
    client->devices[number].memory.user_data = NULL;
  }
  /* Arrays and the threads of the devices may outlive the client: its few bytes stay. */
  return NULL;
}

static PJRT_Error *text_is(PJRT_Text_Args *args, const char *text) {
  args->text = text;
  args->size = strlen(text);
  return NULL;
}

static PJRT_Error *list_is(PJRT_List_Args *args, const void *items, size_t count) {
  args->items = items;
  args->count = count;
  return NULL;
}

static PJRT_Error *nothing(void *args) {
  (void)args;
  return NULL;
}

static PJRT_Error *number_is_zero(PJRT_Number_Args *args) {
  args->number = 0;
  return NULL;
}

static PJRT_Error *platform_name(PJRT_Text_Args *args) { return text_is(args, PLATFORM); }

static PJRT_Error *platform_version(PJRT_Text_Args *args) { return text_is(args, PLATFORM " on IREE"); }

static PJRT_Error *client_devices(PJRT_List_Args *args) {
  Client *client = args->object;
  return list_is(args, client->device_list, client->device_count);
}

static PJRT_Error *client_memories(PJRT_List_Args *args) {
  Client *client = args->object;
  return list_is(args, client->memory_list, client->device_count);
}

static PJRT_Error *client_lookup(PJRT_Lookup_Args *args) {
  Client *client = args->client;
  if (args->number < 0 || args->number >= client->device_count)
    return error_new(PJRT_INVALID_ARGUMENT, "no device %d: there are %d", args->number, client->device_count);
  args->device = &client->devices[args->number];
  return NULL;
}

static PJRT_Error *client_topology(PJRT_Related_Args *args) {
  args->result = args->object;
  return NULL;
}

static PJRT_Error *client_default_assignment(PJRT_DefaultAssignment_Args *args) {
  Client *client = args->client;
  int64_t wanted = (int64_t)args->replicas * args->partitions;
  if (wanted > client->device_count || (size_t)wanted > args->size)
    return error_new(PJRT_INVALID_ARGUMENT,
                     "%d replicas of %d partitions need %lld devices, there are %d: set HLOFORGE_JAX_DEVICES",
                     args->replicas, args->partitions, (long long)wanted, client->device_count);
  for (int i = 0; i < wanted; i++) args->assignment[i] = i;
  return NULL;
}

static PJRT_Error *device_number(PJRT_Number_Args *args) {
  args->number = ((Device *)args->object)->number;
  return NULL;
}

static PJRT_Error *device_kind(PJRT_Text_Args *args) { return text_is(args, "hloforge"); }

static PJRT_Error *device_text(PJRT_Text_Args *args) { return text_is(args, ((Device *)args->object)->text); }

static PJRT_Error *device_debug_text(PJRT_Text_Args *args) {
  return text_is(args, ((Device *)args->object)->debug_text);
}

static PJRT_Error *description_attributes(PJRT_DescriptionAttributes_Args *args) {
  args->count = 0;
  args->attributes = NULL;
  return NULL;
}

static void free_nothing(void *handle) { (void)handle; }

static PJRT_Error *device_attributes(PJRT_Owned_Args *args) {
  args->bytes = NULL;
  args->size = 0;
  args->handle = NULL;
  args->deleter = free_nothing;
  return NULL;
}

/* A device is its own description. */
static PJRT_Error *device_description(PJRT_Related_Args *args) {
  args->result = args->object;
  return NULL;
}

static PJRT_Error *device_is_addressable(PJRT_Flag_Args *args) {
  args->flag = true;
  return NULL;
}

static PJRT_Error *device_memories(PJRT_List_Args *args) {
  return list_is(args, ((Device *)args->object)->memories, 1);
}

static PJRT_Error *device_default_memory(PJRT_Related_Args *args) {
  args->result = &((Device *)args->object)->memory;
  return NULL;
}

/* The devices share one memory, so each tells of the whole. */
static PJRT_Error *device_memory_stats(PJRT_MemoryStats_Args *args) {
  int64_t count, largest, peak;
  args->peak_bytes_in_use.is_set = args->allocations.is_set = args->largest_allocation.is_set = true;
  args->limit.is_set = false;
  for (int i = 0; i < 7; i++) args->others[i].is_set = false;
  array_statistics(&args->bytes_in_use, &peak, &count, &largest);
  args->peak_bytes_in_use.value = peak;
  args->allocations.value = count;
  args->largest_allocation.value = largest;
  return NULL;
}

static PJRT_Error *device_tracking_event(PJRT_TrackingEvent_Args *args) {
  args->event = NULL;
  return NULL;
}

static PJRT_Error *memory_number(PJRT_Number_Args *args) {
  args->number = ((Memory *)args->object)->device->number;
  return NULL;
}

static PJRT_Error *memory_kind(PJRT_Text_Args *args) { return text_is(args, MEMORY_KIND); }

static PJRT_Error *memory_kind_number(PJRT_Number_Args *args) {
  args->number = MEMORY_KIND_ID;
  return NULL;
}

static PJRT_Error *memory_text(PJRT_Text_Args *args) { return text_is(args, ((Memory *)args->object)->text); }

static PJRT_Error *memory_devices(PJRT_List_Args *args) {
  Device *device = ((Memory *)args->object)->device;
  return list_is(args, &device->client->device_list[device->number], 1);
}

static PJRT_Error *topology_attributes(PJRT_List_Args *args) { return list_is(args, NULL, 0); }

static PJRT_Error *topology_serialize(PJRT_Owned_Args *args) {
  args->bytes = PLATFORM;
  args->size = strlen(PLATFORM);
  args->handle = NULL;
  args->deleter = free_nothing;
  return NULL;
}

static PJRT_Error *topology_fingerprint(PJRT_Size_Args *args) {
  args->size = 0x686c6f66 + (size_t)((Client *)args->object)->device_count;
  return NULL;
}

Device *device_of(void *device, void *memory) { return device != NULL ? device : ((Memory *)memory)->device; }

void fill_devices(PJRT_Function *table) {
  FILL(table, Plugin_Initialize, nothing);
  FILL(table, Client_Create, client_create);
  FILL(table, Client_Destroy, client_destroy);
  FILL(table, Client_PlatformName, platform_name);
  FILL(table, Client_PlatformVersion, platform_version);
  FILL(table, Client_ProcessIndex, number_is_zero);
  FILL(table, Client_Devices, client_devices);
  FILL(table, Client_AddressableDevices, client_devices);
  FILL(table, Client_AddressableMemories, client_memories);
  FILL(table, Client_LookupDevice, client_lookup);
  FILL(table, Client_LookupAddressableDevice, client_lookup);
  FILL(table, Client_TopologyDescription, client_topology);
  FILL(table, Client_DefaultDeviceAssignment, client_default_assignment);
  FILL(table, Client_UpdateGlobalProcessInfo, nothing);
  FILL(table, DeviceDescription_Id, device_number);
  FILL(table, DeviceDescription_ProcessIndex, number_is_zero);
  FILL(table, DeviceDescription_Attributes, description_attributes);
  FILL(table, DeviceDescription_Kind, device_kind);
  FILL(table, DeviceDescription_DebugString, device_debug_text);
  FILL(table, DeviceDescription_ToString, device_text);
  FILL(table, Device_GetDescription, device_description);
  FILL(table, Device_GetAttributes, device_attributes);
  FILL(table, Device_IsAddressable, device_is_addressable);
  FILL(table, Device_LocalHardwareId, device_number);
  FILL(table, Device_AddressableMemories, device_memories);
  FILL(table, Device_DefaultMemory, device_default_memory);
  FILL(table, Device_MemoryStats, device_memory_stats);
  FILL(table, Device_CreateAsyncTrackingEvent, device_tracking_event);
  FILL(table, Memory_Id, memory_number);
  FILL(table, Memory_Kind, memory_kind);
  FILL(table, Memory_Kind_Id, memory_kind_number);
  FILL(table, Memory_DebugString, memory_text);
  FILL(table, Memory_ToString, memory_text);
  FILL(table, Memory_AddressableByDevices, memory_devices);
  FILL(table, TopologyDescription_Destroy, nothing);
  FILL(table, TopologyDescription_PlatformName, platform_name);
  FILL(table, TopologyDescription_PlatformVersion, platform_version);
  FILL(table, TopologyDescription_GetDeviceDescriptions, client_devices);
  FILL(table, TopologyDescription_Attributes, topology_attributes);
  FILL(table, TopologyDescription_Serialize, topology_serialize);
  FILL(table, TopologyDescription_Fingerprint, topology_fingerprint);
}

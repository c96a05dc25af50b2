/* The client with its devices and their memories; the topology is the client too.
 *
 * A client knows the devices of all processes that jax.distributed has joined, numbered process by process.
 * The devices are virtual: threads of this process that share its memory. Creating them costs nothing, for JAX creates
 * the client of every platform that it knows.
 */

#include "plugin.h"

#include <stdio.h>
#include <stdlib.h>

#include "answers.h"

const char *const memory_kinds[MEMORY_KINDS] = {"device", "pinned_host", "unpinned_host"};

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

static const char *platform_of(const Client *client) { return client->is_cpu ? CPU_PLATFORM : PLATFORM; }

static void init_device(Client *client, int number, int process) {
  Device *device = &client->devices[number];
  device->client = client;
  device->number = number;
  device->process = process;
  for (int kind = 0; kind < MEMORY_KINDS; kind++) {
    Memory *memory = &device->memories[kind];
    *memory = (Memory){.functions = &memory_functions, .device = device, .kind = kind};
    snprintf(memory->text, sizeof memory->text, "%s memory of %s:%d", memory_kinds[kind], platform_of(client),
             number);
    device->memory_list[kind] = client->memory_list[number * MEMORY_KINDS + kind] = memory;
  }
  client->device_list[number] = device;
  /* JAX's CPU has these words, which programs and tests look for. */
  snprintf(device->text, sizeof device->text, client->is_cpu ? "CpuDevice(id=%d)" : "HloforgeDevice(id=%d)", number);
  snprintf(device->debug_text, sizeof device->debug_text, client->is_cpu ? "TFRT_CPU_%d" : PLATFORM ":%d", number);
}

/* Of the numbers of devices of each process, and of this process's place among them. */
static PJRT_Error *create(const int64_t *counts, size_t processes, size_t process, bool is_cpu, void **made) {
  int64_t count = 0;
  for (size_t i = 0; i < processes; i++) {
    if (counts[i] < 1 || counts[i] > MAX_DEVICES)
      return error_new(PJRT_INVALID_ARGUMENT, "%lld devices: from 1 to %d are possible", (long long)counts[i],
                       MAX_DEVICES);
    count += counts[i];
  }
  if (process >= processes || count > INT16_MAX)
    return error_new(PJRT_INVALID_ARGUMENT, "process %zu of %zu with %lld devices", process, processes,
                     (long long)count);
  Client *client = calloc(1, sizeof *client + (size_t)count * sizeof *client->devices);
  if (client == NULL) abort();
  client->is_cpu = is_cpu;
  client->device_count = (int)count;
  client->device_list = calloc((size_t)count, sizeof *client->device_list);
  client->memory_list = calloc((size_t)count * MEMORY_KINDS, sizeof *client->memory_list);
  if (client->device_list == NULL || client->memory_list == NULL) abort();
  client->process = (int)process;
  int number = 0;
  for (size_t i = 0; i < processes; i++) {
    if (i == process) client->own_first = number;
    for (int64_t j = 0; j < counts[i]; j++) init_device(client, number++, (int)i);
  }
  client->own_count = (int)counts[process];
  *made = client;
  return NULL;
}

/* The option of this name and kind; NULL without it. */
static const PJRT_NamedValue *option_of(const PJRT_NamedValue *options, size_t count, const char *name,
                                        PJRT_ValueKind kind) {
  for (size_t i = 0; i < count; i++)
    if (options[i].name_size == strlen(name) && memcmp(options[i].name, name, strlen(name)) == 0 &&
        options[i].kind == kind)
      return &options[i];
  return NULL;
}

/* By the options ``devices``, a number or a list by process, 1 without it; ``process``, this one of several; and
 * ``platform``, ours without it. */
static PJRT_Error *create_by(const PJRT_NamedValue *options, size_t count, void **made) {
  const PJRT_NamedValue *devices = option_of(options, count, "devices", PJRT_INT64);
  const PJRT_NamedValue *every = option_of(options, count, "devices", PJRT_INT64_LIST);
  const PJRT_NamedValue *process = option_of(options, count, "process", PJRT_INT64);
  const PJRT_NamedValue *platform = option_of(options, count, "platform", PJRT_STRING);
  bool is_cpu = platform != NULL && platform->size == strlen(CPU_PLATFORM) &&
                memcmp(platform->string, CPU_PLATFORM, platform->size) == 0;
  int64_t own = devices == NULL ? 1 : devices->int64;
  return create(every == NULL ? &own : every->int64_list, every == NULL ? 1 : every->size,
                process == NULL ? 0 : (size_t)process->int64, is_cpu, made);
}

static PJRT_Error *client_create(PJRT_ClientCreate_Args *args) {
  PJRT_Error *error = create_by(args->options, args->option_count, &args->client);
  if (error == NULL) ((Client *)args->client)->is_attached = true;
  return error;
}

/* A description of devices without a client. */
static PJRT_Error *topology_create(PJRT_TopologyCreate_Args *args) {
  return create_by(args->options, args->option_count, &args->topology);
}

static PJRT_Error *topology_deserialize(PJRT_TopologyDeserialize_Args *args) {
  char text[32] = {0}, name[16];
  long long read = 0;
  if (args->size < sizeof text) memcpy(text, args->serialized, args->size);
  bool is_read = sscanf(text, "%15s %lld", name, &read) == 2;
  int64_t count = read;
  bool is_cpu = is_read && strcmp(name, CPU_PLATFORM) == 0;
  if (!is_read || (!is_cpu && strcmp(name, PLATFORM) != 0))
    return error_new(PJRT_INVALID_ARGUMENT, "these bytes are no topology of hloforge's");
  return create(&count, 1, 0, is_cpu, &args->topology);
}

static void free_user_data(Memory *memory) {
  UserData *entry = memory->user_data;
  memory->user_data = NULL;
  while (entry != NULL) {
    UserData *next = entry->next;
    if (entry->destroy != NULL) entry->destroy(entry->data);
    free(entry);
    entry = next;
  }
}

static PJRT_Error *client_destroy(PJRT_Object_Args *args) {
  Client *client = args->object;
  for (int i = 0; i < client->device_count * MEMORY_KINDS; i++) free_user_data(client->memory_list[i]);
  /* Arrays and the threads of the devices may outlive the client: its few bytes stay. */
  return NULL;
}

static PJRT_Error *client_process(PJRT_Number_Args *args) {
  return answer_number(args, ((Client *)args->object)->process);
}

static PJRT_Error *platform_name(PJRT_Text_Args *args) {
  const char *name = platform_of(args->object);
  return answer_text(args, name, strlen(name));
}

static PJRT_Error *platform_version(PJRT_Text_Args *args) {
  return answer_text(args, PLATFORM " on IREE", strlen(PLATFORM " on IREE"));
}

static PJRT_Error *client_devices(PJRT_List_Args *args) {
  Client *client = args->object;
  return answer_list(args, client->device_list, client->device_count);
}

static PJRT_Error *client_own_devices(PJRT_List_Args *args) {
  Client *client = args->object;
  return answer_list(args, client->device_list + client->own_first, (size_t)client->own_count);
}

static PJRT_Error *client_memories(PJRT_List_Args *args) {
  Client *client = args->object;
  return answer_list(args, client->memory_list + client->own_first * MEMORY_KINDS,
                     (size_t)client->own_count * MEMORY_KINDS);
}

static PJRT_Error *client_lookup(PJRT_Lookup_Args *args) {
  Client *client = args->client;
  if (args->number < 0 || args->number >= client->device_count)
    return error_new(PJRT_INVALID_ARGUMENT, "no device %d: there are %d", args->number, client->device_count);
  args->device = &client->devices[args->number];
  return NULL;
}

/* By the number among this process's devices. */
static PJRT_Error *client_lookup_own(PJRT_Lookup_Args *args) {
  Client *client = args->client;
  if (args->number < 0 || args->number >= client->own_count)
    return error_new(PJRT_INVALID_ARGUMENT, "no device %d of this process: there are %d", args->number,
                     client->own_count);
  args->device = &client->devices[client->own_first + args->number];
  return NULL;
}

static PJRT_Error *client_topology(PJRT_Related_Args *args) { return answer_object(args, args->object); }

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
  return answer_number(args, ((Device *)args->object)->number);
}

static PJRT_Error *device_process(PJRT_Number_Args *args) {
  return answer_number(args, ((Device *)args->object)->process);
}

bool device_is_own(const Device *device) { return device->process == device->client->process; }

static PJRT_Error *device_place(PJRT_Number_Args *args) {
  const Device *device = args->object;
  return answer_number(args, device_is_own(device) ? device->number - device->client->own_first : -1);
}

static PJRT_Error *device_text(PJRT_Text_Args *args) {
  const char *text = ((Device *)args->object)->text;
  return answer_text(args, text, strlen(text));
}

static PJRT_Error *device_kind(PJRT_Text_Args *args) {
  const char *name = platform_of(((Device *)args->object)->client);
  return answer_text(args, name, strlen(name));
}

static PJRT_Error *device_debug_text(PJRT_Text_Args *args) {
  const char *text = ((Device *)args->object)->debug_text;
  return answer_text(args, text, strlen(text));
}

static PJRT_Error *description_attributes(PJRT_DescriptionAttributes_Args *args) {
  args->count = 0;
  args->attributes = NULL;
  return NULL;
}

static PJRT_Error *device_attributes(PJRT_Owned_Args *args) { return answer_bytes(args, NULL, 0); }

/* A device is its own description. */
static PJRT_Error *device_description(PJRT_Related_Args *args) { return answer_object(args, args->object); }

static PJRT_Error *device_is_addressable(PJRT_Flag_Args *args) {
  return answer_flag(args, device_is_own(args->object));
}

static PJRT_Error *device_memories(PJRT_List_Args *args) {
  return answer_list(args, ((Device *)args->object)->memory_list, MEMORY_KINDS);
}

static PJRT_Error *device_default_memory(PJRT_Related_Args *args) {
  return answer_object(args, memory_of(args->object, NULL));
}

/* The devices share one memory, so each tells of the whole. */
static PJRT_Error *device_memory_stats(PJRT_MemoryStats_Args *args) {
  int64_t count, largest, peak;
  args->peak_bytes_in_use.is_set = args->allocations.is_set = args->largest_allocation.is_set = true;
  args->limit.is_set = false;
  for (int i = 0; i < 6; i++) args->others[i].is_set = false;
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
  Memory *memory = args->object;
  return answer_number(args, memory->device->number * MEMORY_KINDS + memory->kind);
}

static PJRT_Error *memory_kind(PJRT_Text_Args *args) {
  const char *kind = memory_kinds[((Memory *)args->object)->kind];
  return answer_text(args, kind, strlen(kind));
}

/* jaxlib tells kinds of memory apart by these as well. */
static PJRT_Error *memory_kind_number(PJRT_Number_Args *args) {
  return answer_number(args, ((Memory *)args->object)->kind);
}

static PJRT_Error *memory_text(PJRT_Text_Args *args) {
  const char *text = ((Memory *)args->object)->text;
  return answer_text(args, text, strlen(text));
}

static PJRT_Error *memory_devices(PJRT_List_Args *args) {
  Device *device = ((Memory *)args->object)->device;
  return answer_list(args, &device->client->device_list[device->number], 1);
}

static PJRT_Error *topology_attributes(PJRT_List_Args *args) { return answer_list(args, NULL, 0); }

static PJRT_Error *topology_serialize(PJRT_Owned_Args *args) {
  char *text = malloc(32);
  if (text == NULL) abort();
  Client *client = args->object;
  int size = snprintf(text, 32, "%s %d", platform_of(client), client->device_count);
  answer_bytes(args, text, (size_t)size);
  args->handle = text;
  args->deleter = free;
  return NULL;
}

static PJRT_Error *topology_fingerprint(PJRT_Size_Args *args) {
  return answer_size(args, 0x686c6f66 + (size_t)((Client *)args->object)->device_count);
}

Memory *memory_of(void *device, void *memory) { return memory != NULL ? memory : &((Device *)device)->memories[0]; }

void fill_devices(PJRT_Function *table) {
  FILL(table, Plugin_Initialize, answer_nothing);
  FILL(table, Client_Create, client_create);
  FILL(table, Client_Destroy, client_destroy);
  FILL(table, Client_PlatformName, platform_name);
  FILL(table, Client_PlatformVersion, platform_version);
  FILL(table, Client_ProcessIndex, client_process);
  FILL(table, Client_Devices, client_devices);
  FILL(table, Client_AddressableDevices, client_own_devices);
  FILL(table, Client_AddressableMemories, client_memories);
  FILL(table, Client_LookupDevice, client_lookup);
  FILL(table, Client_LookupAddressableDevice, client_lookup_own);
  FILL(table, Client_TopologyDescription, client_topology);
  FILL(table, Client_DefaultDeviceAssignment, client_default_assignment);
  FILL(table, Client_UpdateGlobalProcessInfo, answer_nothing);
  FILL(table, DeviceDescription_Id, device_number);
  FILL(table, DeviceDescription_ProcessIndex, device_process);
  FILL(table, DeviceDescription_Attributes, description_attributes);
  FILL(table, DeviceDescription_Kind, device_kind);
  FILL(table, DeviceDescription_DebugString, device_debug_text);
  FILL(table, DeviceDescription_ToString, device_text);
  FILL(table, Device_GetDescription, device_description);
  FILL(table, Device_GetAttributes, device_attributes);
  FILL(table, Device_IsAddressable, device_is_addressable);
  FILL(table, Device_LocalHardwareId, device_place);
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
  FILL(table, TopologyDescription_Create, topology_create);
  FILL(table, TopologyDescription_Deserialize, topology_deserialize);
  FILL(table, TopologyDescription_Destroy, answer_nothing);
  FILL(table, TopologyDescription_PlatformName, platform_name);
  FILL(table, TopologyDescription_PlatformVersion, platform_version);
  FILL(table, TopologyDescription_GetDeviceDescriptions, client_devices);
  FILL(table, TopologyDescription_Attributes, topology_attributes);
  FILL(table, TopologyDescription_Serialize, topology_serialize);
  FILL(table, TopologyDescription_Fingerprint, topology_fingerprint);
}

// The functions of NVIDIA's driver library that IREE's runtime calls (CUDA driver API 11.3), over memory of the host.
#include "driver.h"

using namespace emulator;

EXPORTED int cuInit(unsigned) { return devices() > 0 ? kSuccess : kNoDevice; }
EXPORTED int cuDriverGetVersion(int* version) { return *version = 12040, kSuccess; }

EXPORTED int cuGetErrorName(int code, const char** name) {
  static const std::unordered_map<int, const char*> kNames = {{kSuccess, "CUDA_SUCCESS"},
                                                              {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
                                                              {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                              {kNoDevice, "CUDA_ERROR_NO_DEVICE"},
                                                              {kNoBinary, "CUDA_ERROR_NO_BINARY_FOR_GPU"},

                                                              {kInvalidPtx, "CUDA_ERROR_INVALID_PTX"},
                                                              {kNotFound, "CUDA_ERROR_NOT_FOUND"},
                                                              {kNotReady, "CUDA_ERROR_NOT_READY"},
                                                              {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                              {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED"}};
  auto found = kNames.find(code);
  *name = found == kNames.end() ? "CUDA_ERROR_UNKNOWN" : found->second;
  return kSuccess;
}

EXPORTED int cuGetErrorString(int code, const char** text) {
  static thread_local std::string said;
  std::lock_guard<std::mutex> guard(fault_lock);
  said = code == kIllegalAddress && !fault.empty() ? fault : "emulated";
  *text = said.c_str();
  return kSuccess;
}

EXPORTED int cuCtxCreate(void** context, unsigned, int device) {
  return *context = reinterpret_cast<void*>(static_cast<uintptr_t>(device) + 1), kSuccess;
}
EXPORTED int cuCtxDestroy(void*) { return kSuccess; }
EXPORTED int cuDevicePrimaryCtxRetain(void** context, int device) { return cuCtxCreate(context, 0, device); }
EXPORTED int cuDevicePrimaryCtxRelease(int) { return kSuccess; }
EXPORTED int cuCtxSetCurrent(void*) { return kSuccess; }
EXPORTED int cuCtxPushCurrent(void*) { return kSuccess; }
EXPORTED int cuCtxPopCurrent(void** context) {
  if (context) *context = reinterpret_cast<void*>(1);
  return kSuccess;
}

EXPORTED int cuDeviceGet(int* device, int ordinal) {
  return ordinal < devices() ? (*device = ordinal, kSuccess) : kInvalidDevice;
}
EXPORTED int cuDeviceGetCount(int* count) { return *count = devices(), kSuccess; }
EXPORTED int cuDeviceGetName(char* name, int length, int) {
  return std::snprintf(name, length, "Emulated GPU"), kSuccess;
}
EXPORTED int cuDeviceGetUuid(void* uuid, int device) {
  std::memset(uuid, 0x42, 16);
  static_cast<char*>(uuid)[15] = static_cast<char>(device);
  return kSuccess;
}

EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int) {
  static const std::unordered_map<int, int> kValues = {
      {1, 1024},  {2, 1024},    {3, 1024},    {4, 64},     {5, 0x7fffffff}, {6, 65535}, {7, 65535},
      {8, 49152}, {9, 65536},   {10, 32},     {12, 65536}, {13, 1410000},   {16, 8},    {19, 1},
      {31, 1},    {41, 1},      {81, 233472}, {82, 65536}, {83, 1},         {88, 1},    {89, 1},
      {90, 1},    {97, 232448}, {106, 32},    {115, 1}};
  if (attribute == 75)
    *value = architecture() / 10;
  else if (attribute == 76)
    *value = architecture() % 10;
  else if (auto found = kValues.find(attribute); found != kValues.end())
    *value = found->second;
  else
    *value = 0;
  return kSuccess;
}

EXPORTED int cuEventCreate(EventHandle* event, unsigned) {
  return *event = new std::shared_ptr<Event>(new Event), kSuccess;
}
EXPORTED int cuEventDestroy(EventHandle event) { return delete event, kSuccess; }
EXPORTED int cuEventRecord(EventHandle event, void* stream) { return record(event, stream_of(stream)), status(); }
EXPORTED int cuEventQuery(EventHandle event) {
  std::lock_guard<std::mutex> guard((*event)->lock);
  return (*event)->reached < (*event)->recorded ? static_cast<int>(kNotReady) : status();
}
EXPORTED int cuEventSynchronize(EventHandle event) { return await(*event, last_record(*event)), status(); }
EXPORTED int cuEventElapsedTime(float* milliseconds, EventHandle start, EventHandle end) {
  return *milliseconds = std::chrono::duration<float, std::milli>((*end)->at - (*start)->at).count(), kSuccess;
}

EXPORTED int cuStreamCreate(void** stream, unsigned) { return *stream = new Stream, kSuccess; }
EXPORTED int cuStreamDestroy(void* stream) { return delete static_cast<Stream*>(stream), kSuccess; }
EXPORTED int cuStreamSynchronize(void* stream) { return stream_of(stream).wait(), status(); }
EXPORTED int cuStreamWaitEvent(void* stream, EventHandle handle, unsigned) {
  auto event = *handle;
  stream_of(stream).add([event, number = last_record(event)] { await(event, number); });
  return status();
}
EXPORTED int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  return stream_of(stream).add([=] { function(data); }), status();
}

EXPORTED int cuMemAlloc(uint64_t* at, size_t size) {
  void* memory = allocate(size);
  *at = reinterpret_cast<uint64_t>(memory);
  return memory ? status() : kOutOfMemory;
}
EXPORTED int cuMemAllocManaged(uint64_t* at, size_t size, unsigned) { return cuMemAlloc(at, size); }
EXPORTED int cuMemFree(uint64_t at) {
  // Nothing that was asked for before still reads it.
  Stream::wait_for_all();
  return release(reinterpret_cast<void*>(at)), kSuccess;
}
EXPORTED int cuMemHostAlloc(void** at, size_t size, unsigned) {
  return (*at = allocate(size)) ? status() : kOutOfMemory;
}
EXPORTED int cuMemFreeHost(void* at) { return cuMemFree(reinterpret_cast<uint64_t>(at)); }
EXPORTED int cuMemHostRegister(void* at, size_t size, unsigned) { return add_memory(at, size), kSuccess; }
EXPORTED int cuMemHostUnregister(void* at) { return remove_memory(at), kSuccess; }
EXPORTED int cuMemHostGetDevicePointer(uint64_t* at, void* host, unsigned) {
  return *at = reinterpret_cast<uint64_t>(host), kSuccess;
}
EXPORTED int cuMemPrefetchAsync(uint64_t, size_t, int, void*) { return kSuccess; }
EXPORTED int cuMemPoolCreate(void** pool, const void*) { return *pool = new char, kSuccess; }
EXPORTED int cuMemPoolDestroy(void* pool) { return delete static_cast<char*>(pool), kSuccess; }
EXPORTED int cuMemPoolSetAccess(void*, const void*, size_t) { return kSuccess; }
EXPORTED int cuMemPoolGetAttribute(void*, int, void* value) { return *static_cast<uint64_t*>(value) = 0, kSuccess; }
EXPORTED int cuMemPoolSetAttribute(void*, int, void*) { return kSuccess; }
EXPORTED int cuMemPoolTrimTo(void*, size_t) { return kSuccess; }
EXPORTED int cuMemAllocFromPoolAsync(uint64_t* at, size_t size, void*, void*) { return cuMemAlloc(at, size); }
EXPORTED int cuMemFreeAsync(uint64_t at, void* stream) {
  return stream_of(stream).add([at] { release(reinterpret_cast<void*>(at)); }), status();
}

EXPORTED int cuMemsetD32Async(uint64_t at, unsigned value, size_t count, void* stream) {
  return stream_of(stream).add([=] { fill(at, value, 4, count); }), status();
}
EXPORTED int cuMemsetD16Async(uint64_t at, unsigned short value, size_t count, void* stream) {
  return stream_of(stream).add([=] { fill(at, value, 2, count); }), status();
}
EXPORTED int cuMemsetD8Async(uint64_t at, unsigned char value, size_t count, void* stream) {
  return stream_of(stream).add([=] { fill(at, value, 1, count); }), status();
}
EXPORTED int cuMemcpyAsync(uint64_t to, uint64_t from, size_t size, void* stream) {
  const char* bytes = reinterpret_cast<const char*>(from);
  if (has_memory(from)) {
    stream_of(stream).add([=] { std::memmove(reinterpret_cast<void*>(to), bytes, size); });
  } else {
    stream_of(stream).add(
        [to, kept = std::string(bytes, size)] { std::memcpy(reinterpret_cast<void*>(to), kept.data(), kept.size()); });
  }
  if (!has_memory(to)) stream_of(stream).wait();
  return status();
}
EXPORTED int cuMemcpyHtoDAsync(uint64_t to, const void* from, size_t size, void* stream) {
  return cuMemcpyAsync(to, reinterpret_cast<uint64_t>(from), size, stream);
}

EXPORTED int cuModuleLoadDataEx(Loaded** loaded, const void* image, unsigned, void*, void**) {
  try {
    auto made = std::make_unique<Loaded>();
    made->module = parse(static_cast<const char*>(image));
    int asked = std::atoi(made->module->target.c_str() + std::strlen("sm_"));
    if (asked > architecture()) return kNoBinary;
    for (const auto& [name, place] : made->module->globals)
      add_memory(reinterpret_cast<void*>(place.first), place.second);
    *loaded = made.release();
    std::lock_guard<std::mutex> guard(fault_lock);
    fault.clear();
    return kSuccess;
  } catch (const std::exception& error) {
    say(error.what());
    return kInvalidPtx;
  }
}
EXPORTED int cuModuleUnload(Loaded* loaded) {
  for (const auto& [name, place] : loaded->module->globals) remove_memory(reinterpret_cast<void*>(place.first));
  return delete loaded, kSuccess;
}
EXPORTED int cuModuleGetFunction(Kernel** kernel, Loaded* loaded, const char* name) {
  auto found = loaded->module->kernels.find(name);
  if (found == loaded->module->kernels.end()) return kNotFound;
  *kernel = new Kernel{loaded, found->second};
  return kSuccess;
}
EXPORTED int cuModuleGetGlobal(uint64_t* at, size_t* size, Loaded* loaded, const char* name) {
  auto found = loaded->module->globals.find(name);
  if (found == loaded->module->globals.end()) return kNotFound;
  if (at) *at = found->second.first;
  if (size) *size = found->second.second;
  return kSuccess;
}
EXPORTED int cuFuncSetAttribute(void*, int, int) { return kSuccess; }

EXPORTED int cuLaunchKernel(Kernel* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                            unsigned bz, unsigned shared_bytes, void* stream, void** arguments, void**) {
  Launch launch = prepared(kernel, {gx, gy, gz}, {bx, by, bz}, shared_bytes, arguments);
  stream_of(stream).add([launch = std::move(launch)] { execute(launch); });
  return status();
}

// By the names that programs which link the library see.
EXPORTED int cuCtxPushCurrent_v2(void* context) { return cuCtxPushCurrent(context); }
EXPORTED int cuCtxPopCurrent_v2(void** context) { return cuCtxPopCurrent(context); }
EXPORTED int cuDevicePrimaryCtxRelease_v2(int device) { return cuDevicePrimaryCtxRelease(device); }
EXPORTED int cuMemAlloc_v2(uint64_t* at, size_t size) { return cuMemAlloc(at, size); }
EXPORTED int cuMemFree_v2(uint64_t at) { return cuMemFree(at); }
EXPORTED int cuCtxSynchronize() {
  Stream::wait_for_all();
  return status();
}

// What tests read: the first fault.
EXPORTED const char* emulator_fault() {
  std::lock_guard<std::mutex> guard(fault_lock);
  return fault.c_str();
}

// Of graphs.cpp, whose arguments only they know.
extern "C" int cuGraphAddEmptyNode();
extern "C" int cuGraphAddEventRecordNode();
extern "C" int cuGraphAddKernelNode();
extern "C" int cuGraphAddMemcpyNode();
extern "C" int cuGraphAddMemsetNode();
extern "C" int cuGraphCreate();
extern "C" int cuGraphDestroy();
extern "C" int cuGraphExecDestroy();
extern "C" int cuGraphGetNodes();
extern "C" int cuGraphInstantiate();
extern "C" int cuGraphLaunch();

EXPORTED int cuGetProcAddress(const char* name, void** function, int, uint64_t) {
#define KNOWN(symbol)                         \
  {                                           \
    #symbol, reinterpret_cast<void*>(&symbol) \
  }
  static const std::unordered_map<std::string, void*> kFunctions = {KNOWN(cuInit),
                                                                    KNOWN(cuDriverGetVersion),
                                                                    KNOWN(cuGetErrorName),
                                                                    KNOWN(cuGetErrorString),
                                                                    KNOWN(cuCtxCreate),
                                                                    KNOWN(cuCtxDestroy),
                                                                    KNOWN(cuDevicePrimaryCtxRetain),
                                                                    KNOWN(cuDevicePrimaryCtxRelease),
                                                                    KNOWN(cuCtxSetCurrent),
                                                                    KNOWN(cuCtxPushCurrent),
                                                                    KNOWN(cuCtxPopCurrent),
                                                                    KNOWN(cuDeviceGet),
                                                                    KNOWN(cuDeviceGetCount),
                                                                    KNOWN(cuDeviceGetName),
                                                                    KNOWN(cuDeviceGetAttribute),
                                                                    KNOWN(cuDeviceGetUuid),
                                                                    KNOWN(cuEventCreate),
                                                                    KNOWN(cuEventDestroy),
                                                                    KNOWN(cuEventElapsedTime),
                                                                    KNOWN(cuEventQuery),
                                                                    KNOWN(cuEventRecord),
                                                                    KNOWN(cuEventSynchronize),
                                                                    KNOWN(cuGetProcAddress),
                                                                    KNOWN(cuGraphAddEmptyNode),
                                                                    KNOWN(cuGraphAddEventRecordNode),
                                                                    KNOWN(cuGraphAddMemcpyNode),
                                                                    KNOWN(cuGraphAddMemsetNode),
                                                                    KNOWN(cuGraphAddKernelNode),
                                                                    KNOWN(cuGraphCreate),
                                                                    KNOWN(cuGraphDestroy),
                                                                    KNOWN(cuGraphExecDestroy),
                                                                    KNOWN(cuGraphGetNodes),
                                                                    KNOWN(cuGraphInstantiate),
                                                                    KNOWN(cuGraphLaunch),
                                                                    KNOWN(cuMemAllocManaged),
                                                                    KNOWN(cuMemPrefetchAsync),
                                                                    KNOWN(cuMemAlloc),
                                                                    KNOWN(cuMemFree),
                                                                    KNOWN(cuMemFreeHost),
                                                                    KNOWN(cuMemHostAlloc),
                                                                    KNOWN(cuMemHostRegister),
                                                                    KNOWN(cuMemHostUnregister),
                                                                    KNOWN(cuMemHostGetDevicePointer),
                                                                    KNOWN(cuMemPoolCreate),
                                                                    KNOWN(cuMemPoolDestroy),
                                                                    KNOWN(cuMemPoolSetAccess),
                                                                    KNOWN(cuMemPoolGetAttribute),
                                                                    KNOWN(cuMemPoolSetAttribute),
                                                                    KNOWN(cuMemPoolTrimTo),
                                                                    KNOWN(cuMemAllocFromPoolAsync),
                                                                    KNOWN(cuMemFreeAsync),
                                                                    KNOWN(cuModuleGetFunction),
                                                                    KNOWN(cuModuleGetGlobal),
                                                                    KNOWN(cuModuleLoadDataEx),
                                                                    KNOWN(cuModuleUnload),
                                                                    KNOWN(cuStreamCreate),
                                                                    KNOWN(cuStreamDestroy),
                                                                    KNOWN(cuStreamSynchronize),
                                                                    KNOWN(cuStreamWaitEvent),
                                                                    KNOWN(cuMemsetD32Async),
                                                                    KNOWN(cuMemsetD16Async),
                                                                    KNOWN(cuMemsetD8Async),
                                                                    KNOWN(cuMemcpyAsync),
                                                                    KNOWN(cuMemcpyHtoDAsync),
                                                                    KNOWN(cuFuncSetAttribute),
                                                                    KNOWN(cuLaunchKernel),
                                                                    KNOWN(cuLaunchHostFunc)};
#undef KNOWN
  auto found = kFunctions.find(name);
  if (found == kFunctions.end()) return kNotFound;
  *function = found->second;
  return kSuccess;
}

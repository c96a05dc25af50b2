// Loads a vmfb and calls its function `main`: each further argument is an array in IREE's notation, and so is each result.
//   call_vmfb model.vmfb '2x3xf32=1 2 3 4 5 6' '3xf32=10 20 30'
// Tuples are their leaves in order; integers are signless (s32 is i32), as docs/deployment.md says.

#include <stdio.h>

#include "iree/runtime/api.h"

// Writes all results to standard output.
static iree_status_t print_results(iree_runtime_call_t* call, iree_allocator_t host) {
  while (iree_vm_list_size(iree_runtime_call_outputs(call)) > 0) {
    iree_hal_buffer_view_t* result = NULL;
    IREE_RETURN_IF_ERROR(iree_runtime_call_outputs_pop_front_buffer_view(call, &result));
    iree_status_t status = iree_hal_buffer_view_fprint(stdout, result, /*max_element_count=*/1024, host);
    iree_hal_buffer_view_release(result);
    IREE_RETURN_IF_ERROR(status);
    fputc('\n', stdout);
  }
  return iree_ok_status();
}

// Parses the arguments into buffers of the device, calls the function and prints what it returns.
static iree_status_t call_main(iree_runtime_session_t* session, int count, char** arguments) {
  iree_runtime_call_t call;
  IREE_RETURN_IF_ERROR(iree_runtime_call_initialize_by_name(session, IREE_SV("module.main"), &call));
  iree_status_t status = iree_ok_status();
  for (int i = 0; i < count && iree_status_is_ok(status); ++i) {
    iree_hal_buffer_view_t* array = NULL;
    status = iree_hal_buffer_view_parse(iree_make_cstring_view(arguments[i]), iree_runtime_session_device(session),
                                        iree_runtime_session_device_allocator(session), &array);
    // The call holds a reference of its own.
    if (iree_status_is_ok(status)) status = iree_runtime_call_inputs_push_back_buffer_view(&call, array);
    iree_hal_buffer_view_release(array);
  }
  if (iree_status_is_ok(status)) status = iree_runtime_call_invoke(&call, /*flags=*/0);
  if (iree_status_is_ok(status)) status = print_results(&call, iree_runtime_session_host_allocator(session));
  iree_runtime_call_deinitialize(&call);
  return status;
}

static iree_status_t run(iree_runtime_instance_t* instance, int count, char** words) {
  // local-sync runs in the calling thread, local-task in threads of its own.
  iree_hal_device_t* device = NULL;
  IREE_RETURN_IF_ERROR(iree_runtime_instance_try_create_default_device(instance, IREE_SV("local-task"), &device));
  iree_runtime_session_options_t options;
  iree_runtime_session_options_initialize(&options);
  iree_runtime_session_t* session = NULL;
  iree_status_t status = iree_runtime_session_create_with_device(
      instance, &options, device, iree_runtime_instance_host_allocator(instance), &session);
  iree_hal_device_release(device);
  if (iree_status_is_ok(status)) status = iree_runtime_session_append_bytecode_module_from_file(session, words[0]);
  if (iree_status_is_ok(status)) status = call_main(session, count - 1, words + 1);
  iree_runtime_session_release(session);
  return status;
}

int main(int count, char** words) {
  if (count < 2) {
    fprintf(stderr, "usage: call_vmfb FILE.vmfb [ARRAY]...\n");
    return 2;
  }
  iree_runtime_instance_options_t options;
  iree_runtime_instance_options_initialize(&options);
  iree_runtime_instance_options_use_all_available_drivers(&options);
  iree_runtime_instance_t* instance = NULL;
  iree_status_t status = iree_runtime_instance_create(&options, iree_allocator_system(), &instance);
  if (iree_status_is_ok(status)) status = run(instance, count - 1, words + 1);
  iree_runtime_instance_release(instance);
  if (iree_status_is_ok(status)) return 0;
  iree_status_fprint(stderr, status);
  iree_status_free(status);
  return 1;
}

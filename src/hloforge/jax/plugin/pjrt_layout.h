/* Where the fields of pjrt.h lie, checked when the plugin is compiled.
 *
 * jaxlib passes structs of XLA's pjrt_c_api.h, so a field that lies elsewhere here would read or overwrite what is not
 * its own. The numbers are those of that header at API 0.90 (TensorFlow 2.21 ships it) on a machine of 64 bits: later
 * versions with the same major number append fields and functions, and move none. A test compares them with the header
 * where one is installed (tests/jax/plugin/test_pjrt_layout.py). The last group is newer or not a struct of arguments: its
 * numbers are those of our declarations. The sizes that jaxlib 0.10.2 (API 0.112) passes to 76 functions agree, but
 * for three whose structs have more fields at their ends: Client_Create, DeserializeAndLoad, GetCompiledMemoryStats.
 */
#ifndef HLOFORGE_PJRT_LAYOUT_H
#define HLOFORGE_PJRT_LAYOUT_H

#include "pjrt_table.h"

#if UINTPTR_MAX == UINT64_MAX
#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field)

/* The table: 128 functions at API 0.90, which begin at the same place. */
AT(PJRT_Api, struct_size, 0); AT(PJRT_Api, extension_start, 8); AT(PJRT_Api, version, 16);
AT(PJRT_Api, version.major, 32); AT(PJRT_Api, version.minor, 36); AT(PJRT_Api, functions, 40);

/* Structs of API 0.90. */
SIZE(PJRT_Object_Args, 24); AT(PJRT_Object_Args, object, 16);
SIZE(PJRT_Related_Args, 32); AT(PJRT_Related_Args, object, 16); AT(PJRT_Related_Args, result, 24);
SIZE(PJRT_Number_Args, 32); AT(PJRT_Number_Args, object, 16); AT(PJRT_Number_Args, number, 24);
SIZE(PJRT_Size_Args, 32); AT(PJRT_Size_Args, object, 16); AT(PJRT_Size_Args, size, 24);
SIZE(PJRT_Flag_Args, 32); AT(PJRT_Flag_Args, object, 16); AT(PJRT_Flag_Args, flag, 24);
SIZE(PJRT_Text_Args, 40); AT(PJRT_Text_Args, object, 16); AT(PJRT_Text_Args, text, 24); AT(PJRT_Text_Args, size, 32);
SIZE(PJRT_List_Args, 40); AT(PJRT_List_Args, object, 16); AT(PJRT_List_Args, items, 24); AT(PJRT_List_Args, count, 32);
SIZE(PJRT_Owned_Args, 56); AT(PJRT_Owned_Args, object, 16); AT(PJRT_Owned_Args, bytes, 24);
AT(PJRT_Owned_Args, size, 32); AT(PJRT_Owned_Args, handle, 40); AT(PJRT_Owned_Args, deleter, 48);
SIZE(PJRT_MemoryKinds_Args, 48); AT(PJRT_MemoryKinds_Args, object, 16); AT(PJRT_MemoryKinds_Args, count, 24);
AT(PJRT_MemoryKinds_Args, kinds, 32); AT(PJRT_MemoryKinds_Args, sizes, 40);
SIZE(PJRT_NamedValue, 56); AT(PJRT_NamedValue, name, 16); AT(PJRT_NamedValue, name_size, 24);
AT(PJRT_NamedValue, kind, 32); AT(PJRT_NamedValue, string, 40); AT(PJRT_NamedValue, size, 48);
SIZE(PJRT_PluginAttributes_Args, 32); AT(PJRT_PluginAttributes_Args, attributes, 16);
AT(PJRT_PluginAttributes_Args, count, 24);
SIZE(PJRT_OnReady_Args, 40); AT(PJRT_OnReady_Args, event, 16); AT(PJRT_OnReady_Args, callback, 24);
AT(PJRT_OnReady_Args, user, 32);
SIZE(PJRT_EventCreate_Args, 24); AT(PJRT_EventCreate_Args, event, 16);
SIZE(PJRT_EventSet_Args, 48); AT(PJRT_EventSet_Args, event, 16); AT(PJRT_EventSet_Args, code, 24);
AT(PJRT_EventSet_Args, message, 32); AT(PJRT_EventSet_Args, message_size, 40);
SIZE(PJRT_ClientCreate_Args, 72); AT(PJRT_ClientCreate_Args, options, 16); AT(PJRT_ClientCreate_Args, option_count, 24);
AT(PJRT_ClientCreate_Args, key_value_store[0], 32); AT(PJRT_ClientCreate_Args, key_value_store[1], 40);
AT(PJRT_ClientCreate_Args, key_value_store[2], 48); AT(PJRT_ClientCreate_Args, key_value_store[3], 56);
AT(PJRT_ClientCreate_Args, client, 64);
SIZE(PJRT_TopologyCreate_Args, 56); AT(PJRT_TopologyCreate_Args, name, 16); AT(PJRT_TopologyCreate_Args, name_size, 24);
AT(PJRT_TopologyCreate_Args, options, 32); AT(PJRT_TopologyCreate_Args, option_count, 40);
AT(PJRT_TopologyCreate_Args, topology, 48);
SIZE(PJRT_TopologyDeserialize_Args, 40); AT(PJRT_TopologyDeserialize_Args, serialized, 16);
AT(PJRT_TopologyDeserialize_Args, size, 24); AT(PJRT_TopologyDeserialize_Args, topology, 32);
SIZE(PJRT_Lookup_Args, 40); AT(PJRT_Lookup_Args, client, 16); AT(PJRT_Lookup_Args, number, 24);
AT(PJRT_Lookup_Args, device, 32);
SIZE(PJRT_DefaultAssignment_Args, 48); AT(PJRT_DefaultAssignment_Args, client, 16);
AT(PJRT_DefaultAssignment_Args, replicas, 24); AT(PJRT_DefaultAssignment_Args, partitions, 28);
AT(PJRT_DefaultAssignment_Args, size, 32); AT(PJRT_DefaultAssignment_Args, assignment, 40);
SIZE(PJRT_DescriptionAttributes_Args, 40); AT(PJRT_DescriptionAttributes_Args, description, 16);
AT(PJRT_DescriptionAttributes_Args, count, 24); AT(PJRT_DescriptionAttributes_Args, attributes, 32);
SIZE(PJRT_TrackingEvent_Args, 48); AT(PJRT_TrackingEvent_Args, device, 16);
AT(PJRT_TrackingEvent_Args, description, 24); AT(PJRT_TrackingEvent_Args, description_size, 32);
AT(PJRT_TrackingEvent_Args, event, 40);
SIZE(PJRT_MemoryStats_Args, 192); AT(PJRT_MemoryStats_Args, device, 16); AT(PJRT_MemoryStats_Args, bytes_in_use, 24);
AT(PJRT_MemoryStats_Args, peak_bytes_in_use.value, 32); AT(PJRT_MemoryStats_Args, peak_bytes_in_use.is_set, 40);
AT(PJRT_MemoryStats_Args, allocations.value, 48); AT(PJRT_MemoryStats_Args, allocations.is_set, 56);
AT(PJRT_MemoryStats_Args, largest_allocation.value, 64); AT(PJRT_MemoryStats_Args, largest_allocation.is_set, 72);
AT(PJRT_MemoryStats_Args, limit.value, 80); AT(PJRT_MemoryStats_Args, limit.is_set, 88);
AT(PJRT_MemoryStats_Args, others[0].value, 96); AT(PJRT_MemoryStats_Args, others[0].is_set, 104);
AT(PJRT_MemoryStats_Args, others[1].value, 112); AT(PJRT_MemoryStats_Args, others[1].is_set, 120);
AT(PJRT_MemoryStats_Args, others[2].value, 128); AT(PJRT_MemoryStats_Args, others[2].is_set, 136);
AT(PJRT_MemoryStats_Args, others[3].value, 144); AT(PJRT_MemoryStats_Args, others[3].is_set, 152);
AT(PJRT_MemoryStats_Args, others[4].value, 160); AT(PJRT_MemoryStats_Args, others[4].is_set, 168);
AT(PJRT_MemoryStats_Args, others[5].value, 176); AT(PJRT_MemoryStats_Args, others[5].is_set, 184);
SIZE(PJRT_Layout, 80); AT(PJRT_Layout, tiled, 16); AT(PJRT_Layout, kind, 72); AT(PJRT_Layout, tiled.minor_to_major, 32);
AT(PJRT_Layout, tiled.rank, 40); AT(PJRT_Layout, tiled.tile_dims, 48); AT(PJRT_Layout, tiled.tile_dim_counts, 56);
AT(PJRT_Layout, tiled.tile_count, 64); AT(PJRT_Layout, strides.byte_strides, 32); AT(PJRT_Layout, strides.rank, 40);
SIZE(PJRT_BufferLayout_Args, 104); AT(PJRT_BufferLayout_Args, buffer, 16); AT(PJRT_BufferLayout_Args, layout, 24);
SIZE(PJRT_FromHost_Args, 120); AT(PJRT_FromHost_Args, client, 16); AT(PJRT_FromHost_Args, data, 24);
AT(PJRT_FromHost_Args, type, 32); AT(PJRT_FromHost_Args, dims, 40); AT(PJRT_FromHost_Args, rank, 48);
AT(PJRT_FromHost_Args, byte_strides, 56); AT(PJRT_FromHost_Args, stride_count, 64);
AT(PJRT_FromHost_Args, semantics, 72); AT(PJRT_FromHost_Args, device, 80); AT(PJRT_FromHost_Args, memory, 88);
AT(PJRT_FromHost_Args, layout, 96); AT(PJRT_FromHost_Args, done_with_host, 104); AT(PJRT_FromHost_Args, buffer, 112);
SIZE(PJRT_Uninitialized_Args, 80); AT(PJRT_Uninitialized_Args, client, 16); AT(PJRT_Uninitialized_Args, dims, 24);
AT(PJRT_Uninitialized_Args, rank, 32); AT(PJRT_Uninitialized_Args, type, 40); AT(PJRT_Uninitialized_Args, layout, 48);
AT(PJRT_Uninitialized_Args, device, 56); AT(PJRT_Uninitialized_Args, memory, 64);
AT(PJRT_Uninitialized_Args, buffer, 72);
SIZE(PJRT_ErrorBuffer_Args, 96); AT(PJRT_ErrorBuffer_Args, client, 16); AT(PJRT_ErrorBuffer_Args, code, 24);
AT(PJRT_ErrorBuffer_Args, message, 32); AT(PJRT_ErrorBuffer_Args, message_size, 40);
AT(PJRT_ErrorBuffer_Args, dims, 48); AT(PJRT_ErrorBuffer_Args, rank, 56); AT(PJRT_ErrorBuffer_Args, type, 64);
AT(PJRT_ErrorBuffer_Args, layout, 72); AT(PJRT_ErrorBuffer_Args, memory, 80); AT(PJRT_ErrorBuffer_Args, buffer, 88);
SIZE(PJRT_ViewOfMemory_Args, 112); AT(PJRT_ViewOfMemory_Args, client, 16); AT(PJRT_ViewOfMemory_Args, data, 24);
AT(PJRT_ViewOfMemory_Args, dims, 32); AT(PJRT_ViewOfMemory_Args, rank, 40); AT(PJRT_ViewOfMemory_Args, type, 48);
AT(PJRT_ViewOfMemory_Args, layout, 56); AT(PJRT_ViewOfMemory_Args, device, 64);
AT(PJRT_ViewOfMemory_Args, on_delete, 72); AT(PJRT_ViewOfMemory_Args, user, 80); AT(PJRT_ViewOfMemory_Args, stream, 88);
AT(PJRT_ViewOfMemory_Args, buffer, 96); AT(PJRT_ViewOfMemory_Args, memory, 104);
SIZE(PJRT_ToHost_Args, 56); AT(PJRT_ToHost_Args, buffer, 16); AT(PJRT_ToHost_Args, layout, 24);
AT(PJRT_ToHost_Args, destination, 32); AT(PJRT_ToHost_Args, size, 40); AT(PJRT_ToHost_Args, event, 48);
SIZE(PJRT_RawToHost_Args, 56); AT(PJRT_RawToHost_Args, buffer, 16); AT(PJRT_RawToHost_Args, destination, 24);
AT(PJRT_RawToHost_Args, offset, 32); AT(PJRT_RawToHost_Args, size, 40); AT(PJRT_RawToHost_Args, event, 48);
SIZE(PJRT_CopyTo_Args, 40); AT(PJRT_CopyTo_Args, buffer, 16); AT(PJRT_CopyTo_Args, place, 24);
AT(PJRT_CopyTo_Args, copy, 32);
SIZE(PJRT_Program, 48); AT(PJRT_Program, code, 16); AT(PJRT_Program, code_size, 24); AT(PJRT_Program, format, 32);
AT(PJRT_Program, format_size, 40);
SIZE(PJRT_ClientCompile_Args, 56); AT(PJRT_ClientCompile_Args, client, 16); AT(PJRT_ClientCompile_Args, program, 24);
AT(PJRT_ClientCompile_Args, options, 32); AT(PJRT_ClientCompile_Args, options_size, 40);
AT(PJRT_ClientCompile_Args, executable, 48);
SIZE(PJRT_Compile_Args, 64); AT(PJRT_Compile_Args, topology, 16); AT(PJRT_Compile_Args, program, 24);
AT(PJRT_Compile_Args, options, 32); AT(PJRT_Compile_Args, options_size, 40); AT(PJRT_Compile_Args, client, 48);
AT(PJRT_Compile_Args, executable, 56);
SIZE(PJRT_Deserialize_Args, 64); AT(PJRT_Deserialize_Args, client, 16); AT(PJRT_Deserialize_Args, serialized, 24);
AT(PJRT_Deserialize_Args, serialized_size, 32); AT(PJRT_Deserialize_Args, loaded, 40);
AT(PJRT_Deserialize_Args, options, 48); AT(PJRT_Deserialize_Args, options_size, 56);
SIZE(PJRT_OptimizedProgram_Args, 32); AT(PJRT_OptimizedProgram_Args, executable, 16);
AT(PJRT_OptimizedProgram_Args, program, 24);
SIZE(PJRT_Costs_Args, 40); AT(PJRT_Costs_Args, executable, 16); AT(PJRT_Costs_Args, count, 24);
AT(PJRT_Costs_Args, costs, 32);
SIZE(PJRT_OutputDimensions_Args, 48); AT(PJRT_OutputDimensions_Args, executable, 16);
AT(PJRT_OutputDimensions_Args, count, 24); AT(PJRT_OutputDimensions_Args, dims, 32);
AT(PJRT_OutputDimensions_Args, ranks, 40);
SIZE(PJRT_CompiledMemory_Args, 120); AT(PJRT_CompiledMemory_Args, executable, 16);
AT(PJRT_CompiledMemory_Args, generated_code, 24); AT(PJRT_CompiledMemory_Args, arguments, 32);
AT(PJRT_CompiledMemory_Args, outputs, 40); AT(PJRT_CompiledMemory_Args, aliases, 48);
AT(PJRT_CompiledMemory_Args, temporaries, 56); AT(PJRT_CompiledMemory_Args, on_host[0], 64);
AT(PJRT_CompiledMemory_Args, on_host[1], 72); AT(PJRT_CompiledMemory_Args, on_host[2], 80);
AT(PJRT_CompiledMemory_Args, on_host[3], 88); AT(PJRT_CompiledMemory_Args, on_host[4], 96);
AT(PJRT_CompiledMemory_Args, peak, 104); AT(PJRT_CompiledMemory_Args, total, 112);
SIZE(PJRT_ExecuteOptions, 72); AT(PJRT_ExecuteOptions, send_callbacks, 16); AT(PJRT_ExecuteOptions, recv_callbacks, 24);
AT(PJRT_ExecuteOptions, send_count, 32); AT(PJRT_ExecuteOptions, recv_count, 40);
AT(PJRT_ExecuteOptions, launch_id, 48); AT(PJRT_ExecuteOptions, kept_inputs, 56);
AT(PJRT_ExecuteOptions, kept_count, 64);
SIZE(PJRT_Execute_Args, 80); AT(PJRT_Execute_Args, executable, 16); AT(PJRT_Execute_Args, options, 24);
AT(PJRT_Execute_Args, arguments, 32); AT(PJRT_Execute_Args, devices, 40); AT(PJRT_Execute_Args, argument_count, 48);
AT(PJRT_Execute_Args, outputs, 56); AT(PJRT_Execute_Args, done, 64); AT(PJRT_Execute_Args, device, 72);
SIZE(PJRT_Extension, 24); AT(PJRT_Extension, struct_size, 0); AT(PJRT_Extension, type, 8); AT(PJRT_Extension, next, 16);
SIZE(PJRT_DefaultLayout_Args, 56); AT(PJRT_DefaultLayout_Args, object, 16); AT(PJRT_DefaultLayout_Args, type, 24);
AT(PJRT_DefaultLayout_Args, dims, 32); AT(PJRT_DefaultLayout_Args, rank, 40); AT(PJRT_DefaultLayout_Args, layout, 48);
SIZE(PJRT_ExecutableLayouts_Args, 40); AT(PJRT_ExecutableLayouts_Args, executable, 16);
AT(PJRT_ExecutableLayouts_Args, count, 24); AT(PJRT_ExecutableLayouts_Args, layouts, 32);

/* The profiler's. */
SIZE(PJRT_ProfilerError_Args, 24); AT(PJRT_ProfilerError_Args, struct_size, 0); AT(PJRT_ProfilerError_Args, priv, 8);
AT(PJRT_ProfilerError_Args, error, 16);
SIZE(PJRT_ProfilerErrorText_Args, 40); AT(PJRT_ProfilerErrorText_Args, priv, 8);
AT(PJRT_ProfilerErrorText_Args, error, 16); AT(PJRT_ProfilerErrorText_Args, text, 24);
AT(PJRT_ProfilerErrorText_Args, size, 32);
SIZE(PJRT_ProfilerErrorCode_Args, 32); AT(PJRT_ProfilerErrorCode_Args, priv, 8);
AT(PJRT_ProfilerErrorCode_Args, error, 16); AT(PJRT_ProfilerErrorCode_Args, code, 24);
SIZE(PJRT_ProfilerCreate_Args, 32); AT(PJRT_ProfilerCreate_Args, options, 8);
AT(PJRT_ProfilerCreate_Args, options_size, 16); AT(PJRT_ProfilerCreate_Args, profiler, 24);
SIZE(PJRT_Profiler_Args, 16); AT(PJRT_Profiler_Args, profiler, 8);
SIZE(PJRT_ProfilerCollect_Args, 32); AT(PJRT_ProfilerCollect_Args, profiler, 8);
AT(PJRT_ProfilerCollect_Args, buffer, 16); AT(PJRT_ProfilerCollect_Args, size, 24);
SIZE(PJRT_ProfilerFunctions, 80); AT(PJRT_ProfilerFunctions, priv, 8); AT(PJRT_ProfilerFunctions, error_destroy, 16);
AT(PJRT_ProfilerFunctions, error_message, 24); AT(PJRT_ProfilerFunctions, error_code, 32);
AT(PJRT_ProfilerFunctions, create, 40); AT(PJRT_ProfilerFunctions, destroy, 48); AT(PJRT_ProfilerFunctions, start, 56);
AT(PJRT_ProfilerFunctions, stop, 64); AT(PJRT_ProfilerFunctions, collect, 72);
SIZE(PJRT_ProfilerExtension, 40); AT(PJRT_ProfilerExtension, base, 0); AT(PJRT_ProfilerExtension, functions, 24);
AT(PJRT_ProfilerExtension, context, 32);

/* Newer structs, and the tables with which errors and memories begin. */
SIZE(PJRT_ErrorFunctions, 56); AT(PJRT_ErrorFunctions, struct_size, 0); AT(PJRT_ErrorFunctions, instance_size, 8);
AT(PJRT_ErrorFunctions, extension_start, 16); AT(PJRT_ErrorFunctions, destroy, 24);
AT(PJRT_ErrorFunctions, message, 32); AT(PJRT_ErrorFunctions, code, 40); AT(PJRT_ErrorFunctions, for_each_payload, 48);
SIZE(PJRT_MemoryFunctions, 40); AT(PJRT_MemoryFunctions, struct_size, 0); AT(PJRT_MemoryFunctions, extension_start, 8);
AT(PJRT_MemoryFunctions, instance_size, 16); AT(PJRT_MemoryFunctions, get_user_data, 24);
AT(PJRT_MemoryFunctions, set_user_data, 32);
SIZE(PJRT_Load_Args, 56); AT(PJRT_Load_Args, client, 16); AT(PJRT_Load_Args, executable, 24);
AT(PJRT_Load_Args, options, 32); AT(PJRT_Load_Args, options_size, 40); AT(PJRT_Load_Args, loaded, 48);
SIZE(PJRT_LogicalId, 8); AT(PJRT_LogicalId, replica, 0); AT(PJRT_LogicalId, partition, 4);
SIZE(PJRT_Shardings_Args, 48); AT(PJRT_Shardings_Args, executable, 16); AT(PJRT_Shardings_Args, count, 24);
AT(PJRT_Shardings_Args, shardings, 32); AT(PJRT_Shardings_Args, sizes, 40);

#undef SIZE
#undef AT
#endif

#endif

/* The extension module ``hloforge.jax.plugin._pjrt``: the table of functions, as the capsule that jaxlib takes. */

#include "plugin.h"

#include "answers.h"
#include "pjrt_layout.h"

static PJRT_Api api;

static PJRT_Error *unimplemented(void *args) {
  (void)args;
  return error_new(PJRT_UNIMPLEMENTED, "hloforge does not have this function of PJRT");
}

/* Of the programs that the plugin reads. Without it jaxlib writes them as of an old one. */
static int64_t stablehlo_version[3];

static PJRT_Error *plugin_attributes(PJRT_PluginAttributes_Args *args) {
  static const char name[] = "stablehlo_current_version";
  static PJRT_NamedValue version = {
      .struct_size = sizeof version,
      .name = name,
      .name_size = sizeof name - 1,
      .kind = PJRT_INT64_LIST,
      .int64_list = stablehlo_version,
      .size = 3,
  };
  args->attributes = &version;
  args->count = 1;
  return NULL;
}

static void fill_table(void) {
  api.struct_size = sizeof api;
  PJRT_Extension *layouts = layout_extension(), *shardings = sharding_extension();
  PJRT_Extension *profiler = profiler_extension();
  layouts->next = shardings;
  shardings->next = profiler;
  api.extension_start = layouts;
  api.version.struct_size = sizeof api.version;
  api.version.major = PJRT_MAJOR;
  api.version.minor = PJRT_MINOR;
  for (int i = 0; i < PJRT_SLOT_COUNT; i++) api.functions[i] = unimplemented;
  FILL(api.functions, Plugin_Attributes, plugin_attributes);
  fill_events(api.functions);
  fill_devices(api.functions);
  fill_buffers(api.functions);
  fill_executables(api.functions);
  fill_executable_facts(api.functions);
  fill_execute(api.functions);
}

static PyObject *py_api(PyObject *module, PyObject *version) {
  (void)module;
  long long parts[3];
  if (!PyArg_ParseTuple(version, "(LLL)", &parts[0], &parts[1], &parts[2])) return NULL;
  for (int i = 0; i < 3; i++) stablehlo_version[i] = parts[i];
  return PyCapsule_New(&api, "pjrt_c_api", NULL);
}

static PyObject *py_stop(PyObject *module, PyObject *nothing) {
  (void)module, (void)nothing;
  workers_stop();
  arrays_outlast();
  executables_end();
  python_forget();
  Py_RETURN_NONE;
}

static PyObject *py_guard(PyObject *module, PyObject *nothing) {
  (void)module, (void)nothing;
  buffers_are_guarded();
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"api", py_api, METH_VARARGS,
     "api(version)\n--\n\nThe table of PJRT's functions, as the capsule that jaxlib takes; it writes programs as of this "
     "version of StableHLO."},
    {"guard", py_guard, METH_NOARGS,
     "guard()\n--\n\nCopies to the host may be guarded from now on: execution.guards_copies_to_host() tells."},
    {"stop", py_stop, METH_NOARGS, "stop()\n--\n\nFinish what runs in the background; nothing will any more."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "hloforge.jax.plugin._pjrt",
    .m_doc = "hloforge as a device of JAX: the functions of the PJRT C API.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__pjrt(void) {
  if (!python_find()) return NULL;
  fill_table();
  return PyModule_Create(&definition);
}

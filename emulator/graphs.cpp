// The driver library's graphs. Nodes run in the order in which they were added: what they depend on is added before.
#include "driver.h"

using namespace emulator;

namespace {

struct GraphNode {
  std::function<void()> task;
};
struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;
};

struct KernelNode {
  Kernel* kernel;
  unsigned grid[3], block[3], shared_bytes;
  void** arguments;
  void** extra;
};
struct MemsetNode {
  uint64_t at;
  size_t pitch;
  unsigned value, element;
  size_t width, height;
};
struct CopyNode {  // CUDA_MEMCPY3D, of which IREE uses lines
  size_t from_x, from_y, from_z, from_lod;
  unsigned from_type;
  const void* from_host;
  uint64_t from_device;
  void* from_array;
  void* reserved_from;
  size_t from_pitch, from_height;
  size_t to_x, to_y, to_z, to_lod;
  unsigned to_type;
  void* to_host;
  uint64_t to_device;
  void* to_array;
  void* reserved_to;
  size_t to_pitch, to_height;
  size_t width, height, depth;
};

int add_node(GraphNode** node, Graph* graph, std::function<void()> task) {
  graph->nodes.push_back(std::make_unique<GraphNode>(GraphNode{std::move(task)}));
  *node = graph->nodes.back().get();
  return kSuccess;
}

}  // namespace

EXPORTED int cuGraphCreate(Graph** graph, unsigned) { return *graph = new Graph, kSuccess; }
EXPORTED int cuGraphDestroy(Graph* graph) { return delete graph, kSuccess; }
EXPORTED int cuGraphAddEmptyNode(GraphNode** node, Graph* graph, GraphNode* const*, size_t) {
  return add_node(node, graph, [] {});
}
EXPORTED int cuGraphAddEventRecordNode(GraphNode** node, Graph* graph, GraphNode* const*, size_t, EventHandle) {
  return add_node(node, graph, [] {});
}
EXPORTED int cuGraphAddKernelNode(GraphNode** node, Graph* graph, GraphNode* const*, size_t, const KernelNode* asked) {
  Launch launch = prepared(asked->kernel, asked->grid, asked->block, asked->shared_bytes, asked->arguments);
  return add_node(node, graph, [launch = std::move(launch)] { execute(launch); });
}
EXPORTED int cuGraphAddMemsetNode(GraphNode** node, Graph* graph, GraphNode* const*, size_t, const MemsetNode* asked,
                                  void*) {
  return add_node(node, graph, [n = *asked] {
    for (size_t row = 0; row < n.height; ++row) fill(n.at + row * n.pitch, n.value, n.element, n.width);
  });
}
EXPORTED int cuGraphAddMemcpyNode(GraphNode** node, Graph* graph, GraphNode* const*, size_t, const CopyNode* asked,
                                  void*) {
  constexpr unsigned kHost = 1;
  if (asked->height > 1 || asked->depth > 1) return kNotSupported;
  const char* from = asked->from_type == kHost ? static_cast<const char*>(asked->from_host)
                                               : reinterpret_cast<const char*>(asked->from_device);
  char* to = asked->to_type == kHost ? static_cast<char*>(asked->to_host) : reinterpret_cast<char*>(asked->to_device);
  return add_node(node, graph, [=, size = asked->width, from_x = asked->from_x, to_x = asked->to_x] {
    std::memmove(to + to_x, from + from_x, size);
  });
}
EXPORTED int cuGraphGetNodes(Graph* graph, GraphNode** nodes, size_t* count) {
  for (size_t n = 0; nodes && n < std::min(*count, graph->nodes.size()); ++n) nodes[n] = graph->nodes[n].get();
  return *count = graph->nodes.size(), kSuccess;
}
EXPORTED int cuGraphInstantiate(std::vector<std::function<void()>>** made, Graph* graph, GraphNode**, char*, size_t) {
  *made = new std::vector<std::function<void()>>;
  for (const auto& node : graph->nodes) (*made)->push_back(node->task);
  return kSuccess;
}
EXPORTED int cuGraphExecDestroy(std::vector<std::function<void()>>* made) { return delete made, kSuccess; }
EXPORTED int cuGraphLaunch(std::vector<std::function<void()>>* made, void* stream) {
  stream_of(stream).add([tasks = *made] {
    for (const auto& task : tasks) task();
  });
  return status();
}

// Handlers of XLA's typed FFI, as a user of JAX writes them.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error Scale(float factor, int64_t shift, std::string_view mode, ffi::Span<const float> weights,
                        ffi::Dictionary options, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y,
                        ffi::ResultBuffer<ffi::S32> rank) {
  if (mode == "fail") return ffi::Error(ffi::ErrorCode::kInvalidArgument, "asked to fail");
  auto extra = options.get<double>("extra");
  if (extra.has_error()) return extra.error();
  for (size_t i = 0; i < x.element_count(); ++i)
    y->typed_data()[i] = x.typed_data()[i] * factor + shift + weights[i % weights.size()] + *extra;
  rank->typed_data()[0] = static_cast<int32_t>(x.dimensions().size());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale, Scale,
                              ffi::Ffi::Bind()
                                  .Attr<float>("factor")
                                  .Attr<int64_t>("shift")
                                  .Attr<std::string_view>("mode")
                                  .Attr<ffi::Span<const float>>("weights")
                                  .Attr<ffi::Dictionary>("options")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::S32>>());

// State, scratch memory and a task of the thread pool.
static long alive = 0;
struct Counter {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  explicit Counter(int64_t start) : count(start) { ++alive; }
  ~Counter() { --alive; }
  int64_t count;
};
ffi::TypeId Counter::id = {};
ffi::TypeInfo Counter::info = ffi::MakeTypeInfo<Counter>();
extern "C" void* counter_type_id() { return &Counter::id; }
extern "C" void* counter_type_info() { return &Counter::info; }
extern "C" long counters_alive() { return alive; }

static ffi::ErrorOr<std::unique_ptr<Counter>> NewCounter(int64_t start) {
  if (start < 0) return ffi::Unexpected(ffi::Error::InvalidArgument("starts below zero"));
  return std::make_unique<Counter>(start);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(new_counter, NewCounter, ffi::Ffi::BindInstantiate().Attr<int64_t>("start"));

static ffi::Error Count(Counter* counter, ffi::ScratchAllocator scratch, ffi::ThreadPool pool,
                        ffi::ResultBuffer<ffi::S64> y) {
  auto memory = scratch.Allocate(64, 64);
  if (!memory.has_value()) return ffi::Error::Internal("no memory");
  int64_t* cell = static_cast<int64_t*>(*memory);
  pool.Schedule([=] { *cell = counter->count++; });
  y->typed_data()[0] = *cell;
  y->typed_data()[1] = reinterpret_cast<uintptr_t>(cell) % 64;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(count, Count,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::State<Counter>>()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Ctx<ffi::ThreadPool>()
                                  .Ret<ffi::Buffer<ffi::S64>>());

// Goes on in a thread of its own when it has returned.
static ffi::Future Later(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  const float* in = x.typed_data();
  float* out = y->typed_data();
  size_t count = x.element_count();
  std::thread([=, promise = std::move(promise)]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (size_t i = 0; i < count; ++i) out[i] = -in[i];
    if (in[0] < 0)
      promise.SetError(ffi::Error::Internal("negative"));
    else
      promise.SetAvailable();
  }).detach();
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(later, Later,
                              ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// As many bytes of the first array as the result has.
static ffi::Error Bytes(ffi::RemainingArgs args, ffi::RemainingRets rets) {
  auto x = args.get<ffi::AnyBuffer>(0);
  auto y = rets.get<ffi::AnyBuffer>(0);
  if (x.has_error()) return x.error();
  std::memcpy((*y)->untyped_data(), x->untyped_data(), (*y)->size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(bytes, Bytes, ffi::Ffi::Bind().RemainingArgs().RemainingRets());

static ffi::Error Ordered(ffi::Token, ffi::Buffer<ffi::S32> x, ffi::Result<ffi::Token>, ffi::ResultBuffer<ffi::S32> y) {
  y->typed_data()[0] = x.typed_data()[0] * 10;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(ordered, Ordered,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Token>()
                                  .Arg<ffi::Buffer<ffi::S32>>()
                                  .Ret<ffi::Token>()
                                  .Ret<ffi::Buffer<ffi::S32>>());

// The sizes of an array of 4-bit integers, and its second element in memory.
static ffi::Error Sizes(ffi::AnyBuffer x, ffi::ResultBuffer<ffi::S64> sizes, ffi::ResultBuffer<ffi::S32> second) {
  for (size_t i = 0; i < x.dimensions().size(); ++i) sizes->typed_data()[i] = x.dimensions()[i];
  second->typed_data()[0] = static_cast<const uint8_t*>(x.untyped_data())[0] >> 4;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(sizes, Sizes,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::Buffer<ffi::S64>>()
                                  .Ret<ffi::Buffer<ffi::S32>>());

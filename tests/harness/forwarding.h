// A backend that leaves everything to another one: what a test changes of it, it overrides.
#pragma once

#include <memory>

#include "runtime/backend.h"

namespace tenon::test {

class ForwardingBackend : public runtime::Backend {
 public:
  explicit ForwardingBackend(std::shared_ptr<const runtime::Backend> inner) : inner_(std::move(inner)) {}

  const codegen::Target& target() const override { return inner_->target(); }
  std::string device_name() const override { return inner_->device_name(); }
  codegen::Source emit(const codegen::Launch& launch) const override { return inner_->emit(launch); }
  runtime::Binary build(const codegen::Source& source) const override { return inner_->build(source); }
  std::shared_ptr<const runtime::LoadedKernel> load(const codegen::Source& source,
                                                    const runtime::Binary& binary) const override {
    return inner_->load(source, binary);
  }
  std::string disassemble(const codegen::Source& source) const override { return inner_->disassemble(source); }
  void launch(const runtime::LaunchCall& launch, void* stream) const override { inner_->launch(launch, stream); }
  runtime::EncodedTensorMap encode(const codegen::TensorMap& map, const Bindings& bindings) const override {
    return inner_->encode(map, bindings);
  }
  void* allocate(std::size_t bytes) const override { return inner_->allocate(bytes); }
  void release(void* memory) const noexcept override { inner_->release(memory); }
  void copy_in(void* to, const void* from, std::size_t bytes, void* stream) const override {
    inner_->copy_in(to, from, bytes, stream);
  }
  void copy_out(void* to, const void* from, std::size_t bytes, void* stream) const override {
    inner_->copy_out(to, from, bytes, stream);
  }
  void copy(void* to, const void* from, std::size_t bytes, void* stream) const override {
    inner_->copy(to, from, bytes, stream);
  }
  void fill(void* to, unsigned char byte, std::size_t bytes, void* stream) const override {
    inner_->fill(to, byte, bytes, stream);
  }
  void synchronize(void* stream) const override { inner_->synchronize(stream); }
  void drain() const override { inner_->drain(); }
  std::unique_ptr<runtime::Event> make_event() const override { return inner_->make_event(); }
  std::shared_ptr<void> make_stream() const override { return inner_->make_stream(); }
  int ordinal() const override { return inner_->ordinal(); }
  std::unique_ptr<runtime::Recording> record(const std::function<void(void*)>& work) const override {
    return inner_->record(work);
  }

 protected:
  const std::shared_ptr<const runtime::Backend> inner_;
};

}  // namespace tenon::test

// See hopper_on_host.h.
#include "tests/harness/hopper_on_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/harness/fibers.h"
#include "tests/harness/hopper_boxes.h"
#include "tests/harness/hopper_memory.h"
#include "tests/harness/hopper_products.h"

namespace tenon::test {
namespace {

constexpr int kWarp = 32, kWarpgroup = 128;
constexpr int kRegisters = 65536, kMostOfThread = 256;  // of a block, all of which its threads begin with

// An mbarrier (PTX ISA).
struct Barrier {
  unsigned arrivals = 0, pending = 0;
  std::int64_t bytes = 0;  // that are still to come
  unsigned phase = 0;      // the one that has not completed
  bool published = false;
  std::vector<int> waiting;
};

// Where a number of threads meet.
struct Meeting {
  int threads = 0, arrived = 0;
  std::vector<int> waiting;
};

struct Block {
  explicit Block(const ClusterLaunch& launch)
      : memory(launch.shared_bytes),
        slots(static_cast<std::size_t>(launch.threads)),
        warps(static_cast<std::size_t>(launch.threads / kWarp)),
        registers(slots.size(), std::min(kMostOfThread, kRegisters / launch.threads / 8 * 8)),
        waiting_for_products(static_cast<std::size_t>(launch.threads / kWarpgroup)),
        alive(launch.threads) {
    for (std::size_t i = 0; i < waiting_for_products.size(); ++i) products.emplace_back(memory);
  }
  SharedMemory memory;
  std::vector<unsigned long long> slots;
  Meeting all;
  std::vector<Meeting> warps;
  std::array<Meeting, 16> turns;
  std::map<unsigned, Barrier> barriers;  // by address
  std::vector<int> registers;            // of each thread
  int free_registers = 0;                // that threads gave
  std::vector<int> waiting_for_registers;
  std::deque<Products> products;  // of each warpgroup
  std::vector<std::vector<int>> waiting_for_products;
  int alive;
};

// A box under way to one block.
struct Box {
  int rank;
  unsigned address, barrier;
  std::array<std::byte, 128> map;
  std::array<int, 4> at;
};

// A box under way from one block, which a thread has asked for.
struct BoxOut {
  int rank, group;
  std::size_t thread;
  unsigned address;
  std::uint32_t asked;
  std::array<std::byte, 128> map;
  std::array<int, 4> at;
};

// A copy of a thread (cp.async).
struct Copy {
  unsigned address;
  const void* from;
  int bytes, available;
};

class Cluster final : public Hopper {
 public:
  explicit Cluster(const ClusterLaunch& launch)
      : launch_(launch),
        fibers_(launch.cluster * launch.threads, launch.seed),
        why_(static_cast<std::size_t>(launch.cluster * launch.threads)),
        groups_out_(why_.size()),
        copies_(why_.size()),
        fresh_barriers_(why_.size()) {
    for (int i = 0; i < launch.cluster; ++i) blocks_.emplace_back(launch);
  }

  void run() {
    running = this;
    fibers_.run({.body =
                     [this](int fiber) {
                       launch_.body(self_of(fiber));
                       end();
                     },
                 .resume = [this](int fiber) { launch_.resume(self_of(fiber)); },
                 .idle = [this] { return happen(); },
                 .deadlock = [this] { return deadlock(); }});
  }

  unsigned char* shared() override { return block().memory.data(); }
  unsigned shared_address(const void* place) override {
    if (!block().memory.contains(place)) fail("this is no place in the block's memory");
    return block().memory.address(place);
  }
  void wrote(const void* place, unsigned bytes) override {
    if (block().memory.contains(place)) check(block().memory.write(block().memory.address(place), bytes, thread()));
  }

  unsigned rank() override { return static_cast<unsigned>(fibers_.current() / launch_.threads); }
  void join_cluster() override { meet(all_, launch_.cluster * launch_.threads, {"at the barrier of the cluster"}); }
  void meet_in_memory(const void* counters, unsigned blocks) override {
    meet(in_memory_[counters], static_cast<int>(blocks), {"for the blocks of its tile"});
  }
  void load_of_block(float* x, const void* place, unsigned rank) override {
    std::memcpy(x, block_of(rank).memory.at(shared_address(place)), 4 * sizeof(float));
  }
  void wait_turn(int number, int threads) override {
    meet(turn(number), threads, {"for its turn, at barrier {}", number});
  }
  void give_turn(int number, int threads) override { come(turn(number), threads); }
  void give_registers(int count) override {
    int& has = registers(count);
    if (count > has) fail("a thread gives registers that it does not have");
    block().free_registers += has - count;
    has = count;
    wake(block().waiting_for_registers);
  }
  void take_registers(int count) override {
    int& has = registers(count);
    while (block().free_registers < count - has) {
      block().waiting_for_registers.push_back(fibers_.current());
      wait({"for registers"});
    }
    block().free_registers -= std::max(0, count - has);
    has = std::max(has, count);
  }

  void begin_barrier(unsigned long long* barrier, unsigned arrivals) override {
    const unsigned address = shared_address(barrier);
    if (address % 8 != 0) fail("a barrier lies at a multiple of 8 bytes");
    block().barriers[address] = {arrivals, arrivals, 0, 0, false, {}};
    fresh_barriers_[index()].push_back(address);
  }
  void publish_barriers() override {
    for (const unsigned address : fresh_barriers_[index()]) block().barriers[address].published = true;
    fresh_barriers_[index()].clear();
  }
  void arrive(unsigned long long* barrier, unsigned rank) override {
    const unsigned address = shared_address(barrier);
    Barrier& there = barrier_at(rank, address);
    if (there.pending == 0) fail("more arrive at a barrier than it counts");
    --there.pending;
    complete(there);
  }
  void expect_bytes(unsigned long long* barrier, unsigned bytes) override {
    barrier_at(rank(), shared_address(barrier)).bytes += bytes;
    arrive(barrier, rank());
  }
  void wait_arrival(unsigned long long* barrier, unsigned parity) override {
    const unsigned address = shared_address(barrier);
    Barrier& here = barrier_at(rank(), address);
    while ((here.phase & 1) == parity) {
      here.waiting.push_back(fibers_.current());
      const auto number = std::distance(block().barriers.begin(), block().barriers.find(address));
      wait({"for parity {} of barrier {}", static_cast<int>(parity), static_cast<int>(number)});
    }
  }

  void copy_box(void* to, const void* map, unsigned long long* barrier, unsigned blocks, int rank_or_all, int x, int y,
                int z, int w) override {
    Box box{0, shared_address(to), shared_address(barrier), {}, {x, y, z, w}};
    std::memcpy(box.map.data(), map, box.map.size());
    if (box.address % 128 != 0) fail("a box begins at a multiple of 128 bytes");
    const auto ask = [&](unsigned rank) {
      box.rank = static_cast<int>(rank);
      if (!barrier_at(rank, box.barrier).published) fail("the copy engine does not know of a barrier");
      if (!block_of(rank).memory.contains(box.address, box_bytes(map))) fail("a box exceeds the block's memory");
      check(block_of(rank).memory.begin_copy(box.address, box_bytes(map)));
      boxes_.push_back(box);
    };
    if (rank_or_all >= 0) return ask(static_cast<unsigned>(rank_or_all));  // of blocks that run at once, any number
    for (unsigned rank = 0; blocks >> rank != 0; ++rank)
      if ((blocks >> rank & 1) != 0) ask(rank);
  }
  void copy_box_out(const void* map, const void* from, int x, int y, int z, int w) override {
    BoxOut box{static_cast<int>(rank()),
               groups_out_[index()],
               index(),
               shared_address(from),
               block().memory.clock(),
               {},
               {x, y, z, w}};
    std::memcpy(box.map.data(), map, box.map.size());
    if (box.address % 128 != 0) fail("a box begins at a multiple of 128 bytes");
    if (!block().memory.contains(box.address, box_bytes(map))) fail("a box exceeds the block's memory");
    boxes_out_.push_back(box);
  }
  void commit_boxes() override { ++groups_out_[index()]; }
  void wait_boxes(int pending) override {
    const auto under_way = [&](const BoxOut& box) {
      return box.thread == index() && box.group < groups_out_[index()] - pending;
    };
    while (std::any_of(boxes_out_.begin(), boxes_out_.end(), under_way)) {
      waiting_for_boxes_.push_back(fibers_.current());
      wait({"for boxes that leave"});
    }
  }
  void copy_async(void* to, const void* from, int bytes, int available) override {
    const Copy copy{shared_address(to), from, bytes, available};
    check(block().memory.begin_copy(copy.address, static_cast<unsigned>(bytes)));
    if (copies_[index()].empty()) copies_[index()].emplace_back();
    copies_[index()].back().push_back(copy);
  }
  void commit_copies() override {
    if (copies_[index()].empty()) copies_[index()].emplace_back();
    copies_[index()].emplace_back();  // what follows is in no group yet
  }
  void wait_copies(int pending) override {
    auto& groups = copies_[index()];
    while (groups.size() > static_cast<std::size_t>(pending) + 1) {
      for (const Copy& copy : groups.front()) {
        std::memset(block().memory.at(copy.address), 0, static_cast<std::size_t>(copy.bytes));
        std::memcpy(block().memory.at(copy.address), copy.from, static_cast<std::size_t>(copy.available));
        block().memory.end_copy(copy.address, static_cast<unsigned>(copy.bytes), thread());
      }
      groups.pop_front();
    }
  }
  void publish_writes() override { block().memory.publish(thread()); }

  void begin_products() override { check(products().begin(thread() % kWarpgroup)); }
  void multiply(float* sums, unsigned long long a, unsigned long long b, bool add, int columns, const char* type_a,
                const char* type_b, bool across_a, bool across_b) override {
    const ProductCall call{a, b, add, columns, dtype(type_a), dtype(type_b), across_a, across_b, false};
    check(products().multiply(thread() % kWarpgroup, sums, call));
  }
  void multiply_fragment(float* sums, const unsigned* a, unsigned long long b, bool add, int columns,
                         const char* type_a, const char* type_b, bool across_b) override {
    const ProductCall call{0, b, add, columns, dtype(type_a), dtype(type_b), false, across_b, true};
    check(products().multiply(thread() % kWarpgroup, sums, call, a));
  }
  void commit_products() override { products().commit(thread() % kWarpgroup); }
  void wait_products(int pending) override {
    while (!products().arrived(thread() % kWarpgroup, pending)) {
      block().waiting_for_products[static_cast<std::size_t>(thread() / kWarpgroup)].push_back(fibers_.current());
      wait({"for products"});
    }
  }

 private:
  // For what a thread waits: a format and its numbers.
  struct Why {
    std::string_view text;
    int first = 0, second = 0;

    bool operator==(const Why&) const = default;
  };

  static inline Cluster* running = nullptr;

  static DType dtype(std::string_view type) {
    return type == "e4m3" ? DType::f8e4m3 : type == "e5m2" ? DType::f8e5m2 : type == "f16" ? DType::f16 : DType::bf16;
  }

  HostThread self_of(int fiber) {
    const int rank = fiber / launch_.threads, thread = fiber % launch_.threads;
    return {launch_.first_block + static_cast<unsigned>(rank),
            static_cast<unsigned>(thread),
            launch_.blocks,
            [] { running->meet(running->block().all, running->launch_.threads, {"for the threads of its block"}); },
            [](unsigned here) { running->meet(running->block().warps[here / kWarp], kWarp, {"for its warp"}); },
            blocks_[static_cast<std::size_t>(rank)].slots.data(),
            launch_.maps.data(),
            this};
  }

  std::size_t index() const { return static_cast<std::size_t>(fibers_.current()); }
  int thread() const { return fibers_.current() % launch_.threads; }
  Block& block() { return blocks_[index() / static_cast<std::size_t>(launch_.threads)]; }
  Products& products() { return block().products[static_cast<std::size_t>(thread() / kWarpgroup)]; }
  Block& block_of(unsigned rank) {
    if (rank >= blocks_.size()) fail("the cluster has no such block");
    if (blocks_[rank].alive == 0) fail("a block of the cluster has ended already");
    return blocks_[rank];
  }
  int& registers(int count) {
    if (count % 8 != 0 || count < 24 || count > kMostOfThread) fail("threads have 24 to 256 registers, in eights");
    return block().registers[static_cast<std::size_t>(thread())];
  }
  Meeting& turn(int number) {
    if (number < 1 || number > 15) fail("barriers have numbers up to 15");
    return block().turns[static_cast<std::size_t>(number)];
  }
  Barrier& barrier_at(unsigned rank, unsigned address) {
    auto& barriers = block_of(rank).barriers;
    const auto found = barriers.find(address);
    if (found == barriers.end()) fail(fmt::format("no barrier was begun at {}", address));
    return found->second;
  }

  // Leaves nothing on the fiber's stack, where it would not be released.
  [[noreturn]] void fail(std::string what) {
    what.insert(0, fmt::format("block {}, thread {}: ", launch_.first_block + rank(), thread()));
    fibers_.fail(std::move(what));
  }
  void check(std::string why_not) {
    if (!why_not.empty()) fail(std::move(why_not));
  }

  void wait(Why why) {
    why_[index()] = why;
    fibers_.wait();
  }
  void wake(std::vector<int>& waiting) {
    for (const int fiber : waiting) fibers_.wake(fiber);
    waiting.clear();
  }
  bool come(Meeting& meeting, int threads) {
    if (meeting.arrived > 0 && meeting.threads != threads) fail("threads meet others than they think");
    meeting.threads = threads;
    if (++meeting.arrived < threads) return false;
    meeting.arrived = 0;
    wake(meeting.waiting);
    return true;
  }
  void meet(Meeting& meeting, int threads, Why why) {
    if (come(meeting, threads)) return;
    meeting.waiting.push_back(fibers_.current());
    wait(why);
  }
  void complete(Barrier& barrier) {
    if (barrier.pending > 0 || barrier.bytes != 0) return;
    ++barrier.phase;
    barrier.pending = barrier.arrivals;
    wake(barrier.waiting);
  }

  void end() {
    if (thread() / kWarpgroup < static_cast<int>(block().products.size())) check(products().end(thread() % kWarpgroup));
    if (copies_[index()].size() > 1 || (copies_[index()].size() == 1 && !copies_[index()].front().empty()))
      fail("a thread ends while its copies are under way");
    if (--block().alive > 0) return;
    const int ended = static_cast<int>(rank());
    if (std::any_of(boxes_.begin(), boxes_.end(), [&](const Box& box) { return box.rank == ended; }))
      fail("a block ends while boxes are under way to it");
    if (std::any_of(boxes_out_.begin(), boxes_out_.end(), [&](const BoxOut& box) { return box.rank == ended; }))
      fail("a block ends while boxes are read from it");
  }

  // One of the things that have been asked for, now that all threads wait.
  bool happen() {
    std::vector<std::pair<Block*, std::size_t>> ready;
    for (Block& block : blocks_)
      for (std::size_t i = 0; i < block.products.size(); ++i)
        if (block.products[i].has_next()) ready.emplace_back(&block, i);
    const std::size_t count = boxes_.size() + boxes_out_.size() + ready.size();
    if (count == 0) return false;
    const std::size_t which = fibers_.random()() % count;
    if (which < boxes_.size()) {
      land(which);
    } else if (which < boxes_.size() + boxes_out_.size()) {
      leave(which - boxes_.size());
    } else {
      const auto [block, group] = ready[which - boxes_.size() - boxes_out_.size()];
      if (const std::string why = block->products[group].run_next(); !why.empty()) throw std::runtime_error(why);
      wake(block->waiting_for_products[group]);
    }
    return true;
  }
  void land(std::size_t which) {
    const Box box = boxes_[which];
    boxes_.erase(boxes_.begin() + static_cast<std::ptrdiff_t>(which));
    Block& block = blocks_[static_cast<std::size_t>(box.rank)];
    const unsigned bytes = box_bytes(box.map.data());
    write_box(block.memory, box.address, box.map.data(), box.at);
    block.memory.end_copy(box.address, bytes, -1);
    Barrier& barrier = block.barriers.at(box.barrier);
    barrier.bytes -= bytes;
    complete(barrier);
  }

  void leave(std::size_t which) {
    const BoxOut box = boxes_out_[which];
    boxes_out_.erase(boxes_out_.begin() + static_cast<std::ptrdiff_t>(which));
    Block& block = blocks_[static_cast<std::size_t>(box.rank)];
    const std::string why = read_box(block.memory, box.address, box.map.data(), box.at, box.asked);
    if (!why.empty()) throw std::runtime_error(why);
    wake(waiting_for_boxes_);
  }

  // Where each thread waits; neighbours that wait for the same are told of together.
  std::string deadlock() const {
    std::string text = "all threads wait:";
    const auto same = [&](int a, int b) {
      return a / launch_.threads == b / launch_.threads && fibers_.ended(a) == fibers_.ended(b) &&
             why_[static_cast<std::size_t>(a)] == why_[static_cast<std::size_t>(b)];
    };
    const auto count = static_cast<int>(why_.size());
    for (int first = 0, next = 1; first < count; first = next, ++next) {
      while (next < count && same(first, next)) ++next;
      if (fibers_.ended(first)) continue;
      const Why& why = why_[static_cast<std::size_t>(first)];
      const int last = next - 1;
      const std::string threads =
          first == last ? fmt::format("thread {} waits", first % launch_.threads)
                        : fmt::format("threads {} to {} wait", first % launch_.threads, last % launch_.threads);
      text += fmt::format("\n  block {}, {} {}", launch_.first_block + static_cast<unsigned>(first / launch_.threads),
                          threads, fmt::format(fmt::runtime(why.text), why.first, why.second));
    }
    return text;
  }

  const ClusterLaunch& launch_;
  Fibers fibers_;
  std::deque<Block> blocks_;
  Meeting all_;
  std::map<const void*, Meeting> in_memory_;  // by counters
  std::vector<Box> boxes_;                    // under way
  std::vector<BoxOut> boxes_out_;
  std::vector<int> waiting_for_boxes_;                 // to leave
  std::vector<Why> why_;                               // by thread of the cluster
  std::vector<int> groups_out_;                        // that each thread has committed
  std::vector<std::deque<std::vector<Copy>>> copies_;  // in groups; the last is not committed
  std::vector<std::vector<unsigned>> fresh_barriers_;  // that are not published
};

}  // namespace

void run_cluster(const ClusterLaunch& launch) { Cluster(launch).run(); }

}  // namespace tenon::test

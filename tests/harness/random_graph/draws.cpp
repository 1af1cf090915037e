// How often each kind of draw is made.
#include "tests/harness/random_graph/draws.h"

namespace tenon::test {

std::span<const Draw> all_draws() {
  static constexpr Draw kDraws[] = {
      {"map", 46, false, draw_map},
      {"power", 2, false, draw_power},
      {"reduce", 14, false, draw_reduce},
      {"view", 16, false, draw_view},
      {"matmul", 5, false, draw_matmul},
      {"attention", 1, false, draw_attention},
      {"source", 3, false, draw_source},
      {"composite", 8, false, draw_composite},
      {"view chain", 1, true, draw_view_chain},
      {"heads", 0.2, true, draw_heads},
      {"seen twice", 0.5, true, draw_seen_twice},
      {"stencil", 0.15, true, draw_stencil},
      {"roll", 0.3, true, draw_roll},
      {"many", 0.03, true, draw_many},
      {"weights", 0.4, true, draw_weights},
      {"joined rows", 0.6, true, draw_joined_rows},
      {"shifted product", 0.4, true, draw_shifted_product},
      {"both ways", 0.3, true, draw_both_ways},
      {"split reductions", 0.4, true, draw_split_reductions},
  };
  return kDraws;
}

}  // namespace tenon::test

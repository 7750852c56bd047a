"""Mistakes that people really made in collective kernels, each cut down to its protocol.

One file a case, with a `buggy` and a `fixed` kernel that differ in the mistake alone. The code is our
own; the source says where the story is told. `CASES` is the table: what shows the mistake, and as what.
"""

from __future__ import annotations

from dataclasses import dataclass

from asyncsim import RAW, WAR, WAW, Expected, Kernel
from kernels.field import (
    f01_one_shot_without_end_barrier,
    f02_in_place_without_read_barrier,
    f03_set_one_barrier_reused,
    f04_eq_wait_overshot,
    f05_set_zero_erases_next_credit,
    f06_flags_zeroed_too_late,
    f07_epoch_baked_into_graph,
    f08_epoch_restarts_counters_persist,
    f09_local_fill_without_entry_barrier,
    f10_parity_per_handle_slots_shared,
    f11_ring_without_credit_back,
    f12_one_counter_for_two_producers,
    f13_two_groups_one_signal_pad,
    f14_zero_size_rank_skips_signals,
    f15_divergent_trip_counts,
    f16_group_index_used_as_rank,
    f17_in_place_gather_reads_wrong_part,
    f18_division_drops_the_tail,
    f19_order_depends_on_rank,
    f20_sixteen_bit_accumulator,
    f21_maximum_not_symmetric_under_nan,
    f22_integer_average_divides_first,
    f23_signed_counter_wraps,
    f24_flag_of_another_block,
    f25_two_streams_one_communicator,
    f26_source_reused_before_put,
    f27_flag_overtakes_data,
    f28_late_reset_of_own_flag,
    f29_relaxed_sets_reordered,
    f30_flag_half_before_data_half,
    f31_one_counter_for_chunks_in_flight,
    f32_butterfly_skips_missing_partners,
    f33_two_epochs_for_one_scratch,
    f34_banks_of_two_strides,
    f35_baseline_of_each_block,
    f36_grid_barrier_without_a_round,
    f37_blocks_do_not_meet_after_the_wait,
    f38_pad_of_a_smaller_team,
    f39_window_larger_than_the_ring,
    f40_set_flag_of_many_producers,
    f41_barrier_with_too_few_threads,
    f42_late_flag_of_an_epoch_given_up,
    f43_each_survivor_its_own_dead,
    f44_flags_cleaned_at_readmission,
    f45_two_adapters_see_one_copy,
    f46_too_many_copies_pending,
    f47_lock_released_at_gpu_scope,
    f48_relaxed_start_barrier,
    f49_no_fence_after_the_swap,
    f50_locks_zeroed_without_a_fence,
    f51_semaphore_made_at_capture,
    f52_fill_races_with_the_signal,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldCase:
    """One mistake.

    Args:
        number: of the case: "F01".
        title: the mistake, as a sentence.
        source: where it is told.
        buggy: the kernel with the mistake.
        fixed: the same kernel without it.
        ranks: how many ranks show it.
        calls: how many calls back to back show it.
        memory: the memory model that shows it.
        expected: the finding that `buggy` must give.
        words: what the report must say besides: the reason of a hang or of a wrong number.
        proof: the verdict of `fixed`: "EXHAUSTED" for a kernel that one run does not decide.

    """

    number: str
    title: str
    source: str
    buggy: Kernel
    fixed: Kernel
    ranks: int
    calls: int
    memory: str = "sc"
    expected: Expected
    words: str = ""
    proof: str = "PROVED"


CASES: tuple[FieldCase, ...] = (
    FieldCase(
        number="F01", title="a one-shot all-reduce has no end barrier", source="pytorch#137257, aiter#3515",
        buggy=f01_one_shot_without_end_barrier.buggy, fixed=f01_one_shot_without_end_barrier.fixed,
        ranks=2, calls=2, memory="sc", expected=WAR("next call"),
    ),
    FieldCase(
        number="F02", title="a mesh all-reduce in place has no read barrier", source="pypto#1798",
        buggy=f02_in_place_without_read_barrier.buggy, fixed=f02_in_place_without_read_barrier.fixed,
        ranks=2, calls=1, memory="sc", expected=WAR("same call"),
    ),
    FieldCase(
        number="F03", title="a barrier of Set 1 and Ge 1 is used again", source="pypto#1829, iris#465, flux#17",
        buggy=f03_set_one_barrier_reused.buggy, fixed=f03_set_one_barrier_reused.fixed,
        ranks=2, calls=3, memory="sc", expected=RAW("same call"),
    ),
    FieldCase(
        number="F04", title="two barriers share a cell and wait with Eq", source="vllm#8558",
        buggy=f04_eq_wait_overshot.buggy, fixed=f04_eq_wait_overshot.fixed,
        ranks=2, calls=2, memory="sc", expected=Expected("unstable-wait"), words="overshot",
    ),
    FieldCase(
        number="F05", title="Set 0 erases the next credit", source="pypto#2279, pypto-lib#960",
        buggy=f05_set_zero_erases_next_credit.buggy, fixed=f05_set_zero_erases_next_credit.fixed,
        ranks=2, calls=2, memory="sc", expected=Expected("signal-race"), words="erased",
    ),
    FieldCase(
        number="F06", title="flags are zeroed after peers may signal", source="tvm#16797, pytorch#196546",
        buggy=f06_flags_zeroed_too_late.buggy, fixed=f06_flags_zeroed_too_late.fixed,
        ranks=2, calls=1, memory="sc", expected=Expected("signal-race"), words="erased",
    ),
    FieldCase(
        number="F07", title="a host epoch is baked into a replayed graph", source="aiter#3928, vllm#46913",
        buggy=f07_epoch_baked_into_graph.buggy, fixed=f07_epoch_baked_into_graph.fixed,
        ranks=2, calls=3, memory="sc", expected=RAW("same call"),
    ),
    FieldCase(
        number="F08", title="the epoch restarts and the counters persist", source="pypto-lib#960",
        buggy=f08_epoch_restarts_counters_persist.buggy, fixed=f08_epoch_restarts_counters_persist.fixed,
        ranks=2, calls=2, memory="sc", expected=RAW("same call"),
    ),
    FieldCase(
        number="F09", title="a late local fill wipes out received data", source="pytorch#196632",
        buggy=f09_local_fill_without_entry_barrier.buggy, fixed=f09_local_fill_without_entry_barrier.fixed,
        ranks=2, calls=1, memory="sc", expected=WAW("same call"),
    ),
    FieldCase(
        number="F10", title="parity is kept per handle, slots per group", source="nccl#2303, DeepEP#513",
        buggy=f10_parity_per_handle_slots_shared.buggy, fixed=f10_parity_per_handle_slots_shared.fixed,
        ranks=2, calls=3, memory="sc", expected=Expected("signal-race"), words="erased",
    ),
    FieldCase(
        number="F11", title="a ring gives no credit back", source="the Pallas guide, simpler#972",
        buggy=f11_ring_without_credit_back.buggy, fixed=f11_ring_without_credit_back.fixed,
        ranks=4, calls=1, memory="sc", expected=WAR("same call"),
    ),
    FieldCase(
        number="F12", title="one counter serves several producers", source="pypto-lib#1019",
        buggy=f12_one_counter_for_two_producers.buggy, fixed=f12_one_counter_for_two_producers.fixed,
        ranks=3, calls=2, memory="sc", expected=RAW("same call"),
    ),
    FieldCase(
        number="F13", title="two groups share one signal pad", source="pytorch#192581, SOS#1225",
        buggy=f13_two_groups_one_signal_pad.buggy, fixed=f13_two_groups_one_signal_pad.fixed,
        ranks=3, calls=1, memory="sc", expected=RAW("same call"),
    ),
    FieldCase(
        number="F14", title="a zero-size rank skips its signals", source="uccl#993, DeepEP#374",
        buggy=f14_zero_size_rank_skips_signals.buggy, fixed=f14_zero_size_rank_skips_signals.fixed,
        ranks=2, calls=1, memory="sc", expected=Expected("deadlock"), words="nobody will write",
    ),
    FieldCase(
        number="F15", title="trip counts diverge", source="vllm#43616, flashinfer#3408",
        buggy=f15_divergent_trip_counts.buggy, fixed=f15_divergent_trip_counts.fixed,
        ranks=2, calls=1, memory="sc", expected=Expected("deadlock"), words="nobody will write",
    ),
    FieldCase(
        number="F16", title="a group index is used as a world rank", source="pypto-lib#1021, SOS#1150",
        buggy=f16_group_index_used_as_rank.buggy, fixed=f16_group_index_used_as_rank.fixed,
        ranks=4, calls=1, memory="sc", expected=Expected("deadlock"), words="nobody will write",
    ),
    FieldCase(
        number="F17", title="an all-gather in place reads the wrong part", source="Aluminum#22",
        buggy=f17_in_place_gather_reads_wrong_part.buggy, fixed=f17_in_place_gather_reads_wrong_part.fixed,
        ranks=2, calls=1, memory="sc", expected=Expected("wrong-result"),
    ),
    FieldCase(
        number="F18", title="N // P drops the tail", source="pypto#1942, iris#524",
        buggy=f18_division_drops_the_tail.buggy, fixed=f18_division_drops_the_tail.fixed,
        ranks=3, calls=1, memory="sc", expected=Expected("wrong-result"),
    ),
    FieldCase(
        number="F19", title="the order of a sum depends on the rank", source="pytorch#129501, vllm#57042",
        buggy=f19_order_depends_on_rank.buggy, fixed=f19_order_depends_on_rank.fixed,
        ranks=3, calls=1, memory="sc", expected=Expected("ranks-differ"),
    ),
    FieldCase(
        number="F20", title="a sum is accumulated in 16 bits", source="TensorRT-LLM#16753",
        buggy=f20_sixteen_bit_accumulator.buggy, fixed=f20_sixteen_bit_accumulator.fixed,
        ranks=4, calls=1, memory="sc", expected=Expected("wrong-result"), words="float16",
    ),
    FieldCase(
        number="F21", title="a maximum is not symmetric under NaN", source="mlx#4072",
        buggy=f21_maximum_not_symmetric_under_nan.buggy, fixed=f21_maximum_not_symmetric_under_nan.fixed,
        ranks=2, calls=1, memory="sc", expected=Expected("ranks-differ"),
    ),
    FieldCase(
        number="F22", title="an integer average divides first", source="torchcomms#287, InfiniCCL#37",
        buggy=f22_integer_average_divides_first.buggy, fixed=f22_integer_average_divides_first.fixed,
        ranks=2, calls=1, memory="sc", expected=Expected("wrong-result"),
    ),
    FieldCase(
        number="F23", title="a signed counter wraps", source="rtp-llm#1418, tt-metal#9026",
        buggy=f23_signed_counter_wraps.buggy, fixed=f23_signed_counter_wraps.fixed,
        ranks=2, calls=4, memory="sc", expected=Expected("deadlock"), words="wrapped",
    ),
    FieldCase(
        number="F24", title="a block reads what other blocks publish", source="vllm#2760",
        buggy=f24_flag_of_another_block.buggy, fixed=f24_flag_of_another_block.fixed,
        ranks=2, calls=1, memory="sc", expected=RAW("same call"),
    ),
    FieldCase(
        number="F25", title="two streams run one communicator", source="sglang#31117",
        buggy=f25_two_streams_one_communicator.buggy, fixed=f25_two_streams_one_communicator.fixed,
        ranks=2, calls=1, memory="sc", expected=WAR("same call"), words="it hangs",
    ),
    FieldCase(
        number="F26", title="a source is reused before its put is complete", source="b12x#329, openshmem-spec#241",
        buggy=f26_source_reused_before_put.buggy, fixed=f26_source_reused_before_put.fixed,
        ranks=2, calls=1, memory="nic", expected=WAR("same call"),
    ),
    FieldCase(
        number="F27", title="a flag overtakes the data that it announces", source="PTOAS#711, aiter#4856",
        buggy=f27_flag_overtakes_data.buggy, fixed=f27_flag_overtakes_data.fixed,
        ranks=2, calls=1, memory="ldst", expected=RAW("same call"),
    ),
    FieldCase(
        number="F28", title="a reset of an own flag lands late", source="vllm#8404",
        buggy=f28_late_reset_of_own_flag.buggy, fixed=f28_late_reset_of_own_flag.fixed,
        ranks=2, calls=2, memory="ldst", expected=Expected("signal-race"), words="erased",
    ),
    FieldCase(
        number="F29", title="two relaxed Sets are reordered", source="pypto-lib#499",
        buggy=f29_relaxed_sets_reordered.buggy, fixed=f29_relaxed_sets_reordered.fixed,
        ranks=2, calls=1, memory="nic", expected=Expected("signal-race"), words="erased",
    ),
    FieldCase(
        number="F30", title="the flag half of a line is visible before its data half", source="nccl#2053",
        buggy=f30_flag_half_before_data_half.buggy, fixed=f30_flag_half_before_data_half.fixed,
        ranks=2, calls=1, memory="ldst:atom=1", expected=RAW("same call"),
    ),
    FieldCase(
        number="F31", title="one counter counts chunks that are in flight", source="NVIDIA/nvshmem#84",
        buggy=f31_one_counter_for_chunks_in_flight.buggy, fixed=f31_one_counter_for_chunks_in_flight.fixed,
        ranks=2, calls=1, memory="ldst", expected=RAW("same call"),
    ),
    FieldCase(
        number="F32", title="a butterfly barrier skips missing partners", source="meta-pytorch/torchcomms#3213",
        buggy=f32_butterfly_skips_missing_partners.buggy, fixed=f32_butterfly_skips_missing_partners.fixed,
        ranks=3, calls=2, memory="sc", expected=RAW("same call"),
    ),
    FieldCase(
        number="F33", title="two collectives count epochs for one scratch", source="ROCm/rocm-systems#8945",
        buggy=f33_two_epochs_for_one_scratch.buggy, fixed=f33_two_epochs_for_one_scratch.fixed,
        ranks=3, calls=1, memory="sc", expected=WAW("same call"),
    ),
    FieldCase(
        number="F34", title="the banks of two formats have other strides", source="ROCm/rocm-systems#8945",
        buggy=f34_banks_of_two_strides.buggy, fixed=f34_banks_of_two_strides.fixed,
        ranks=3, calls=1, memory="sc", expected=WAW("same call"),
    ),
    FieldCase(
        number="F35", title="each block takes its own baseline", source="ROCm/rocm-systems#11142, NVIDIA/nccl#1990",
        buggy=f35_baseline_of_each_block.buggy, fixed=f35_baseline_of_each_block.fixed,
        ranks=2, calls=1, memory="gpu", expected=Expected("deadlock"),
    ),
    FieldCase(
        number="F36", title="a grid barrier has no round", source="tile-ai/tilelang#2319",
        buggy=f36_grid_barrier_without_a_round.buggy, fixed=f36_grid_barrier_without_a_round.fixed,
        ranks=1, calls=1, memory="sc", expected=Expected("signal-race"), words="erase",
    ),
    FieldCase(
        number="F37", title="blocks do not meet after the wait of one", source="ROCm/rocm-systems#8936",
        buggy=f37_blocks_do_not_meet_after_the_wait.buggy, fixed=f37_blocks_do_not_meet_after_the_wait.fixed,
        ranks=2, calls=1, memory="sc", expected=RAW("same call"),
    ),
    FieldCase(
        number="F38", title="a pad is laid out for a smaller team", source="ROCm/rocm-systems#10388",
        buggy=f38_pad_of_a_smaller_team.buggy, fixed=f38_pad_of_a_smaller_team.fixed,
        ranks=3, calls=1, memory="sc", expected=RAW("same call"),
    ),
    FieldCase(
        number="F39", title="a window is larger than the ring", source="meta-pytorch/torchcomms#3016",
        buggy=f39_window_larger_than_the_ring.buggy, fixed=f39_window_larger_than_the_ring.fixed,
        ranks=2, calls=1, memory="sc", expected=Expected("deadlock"),
    ),
    FieldCase(
        number="F40", title="many producers set one flag", source="ROCm/iris#266",
        buggy=f40_set_flag_of_many_producers.buggy, fixed=f40_set_flag_of_many_producers.fixed,
        ranks=3, calls=1, memory="sc", expected=RAW("same call"),
    ),
    FieldCase(
        number="F41", title="a barrier has fewer threads than peers", source="pytorch/pytorch#170785",
        buggy=f41_barrier_with_too_few_threads.buggy, fixed=f41_barrier_with_too_few_threads.fixed,
        ranks=4, calls=2, memory="sc", expected=RAW("same call"),
    ),
    FieldCase(
        number="F42", title="the late flag of an epoch given up is taken",
        source="local-inference-lab/b12x#295, local-inference-lab/b12x#313",
        buggy=f42_late_flag_of_an_epoch_given_up.buggy, fixed=f42_late_flag_of_an_epoch_given_up.fixed,
        ranks=3, calls=1, memory="sc", expected=RAW("same call"), words="is not the golden", proof="EXHAUSTED",
    ),
    FieldCase(
        number="F43", title="each survivor makes its own list of the dead", source="vllm-project/vllm#46370",
        buggy=f43_each_survivor_its_own_dead.buggy, fixed=f43_each_survivor_its_own_dead.fixed,
        ranks=2, calls=1, memory="sc", expected=Expected("ranks-differ"), proof="EXHAUSTED",
    ),
    FieldCase(
        number="F44", title="flags are cleaned before an old signal came", source="flashinfer-ai/flashinfer#4183",
        buggy=f44_flags_cleaned_at_readmission.buggy, fixed=f44_flags_cleaned_at_readmission.fixed,
        ranks=2, calls=1, memory="sc", expected=Expected("signal-race"),
    ),
    FieldCase(
        number="F45", title="another adapter does not see what came yet", source="meta-pytorch/torchcomms#2373",
        buggy=f45_two_adapters_see_one_copy.buggy, fixed=f45_two_adapters_see_one_copy.fixed,
        ranks=2, calls=1, memory="nic", expected=RAW("same call"),
    ),
    FieldCase(
        number="F46", title="a copy loop leaves one copy too many pending", source="DeepEP#657",
        buggy=f46_too_many_copies_pending.buggy, fixed=f46_too_many_copies_pending.fixed,
        ranks=2, calls=2, memory="nic", expected=WAR("same call"),
    ),
    FieldCase(
        number="F47", title="a lock is released in the scope of one GPU", source="ROCm/iris#462",
        buggy=f47_lock_released_at_gpu_scope.buggy, fixed=f47_lock_released_at_gpu_scope.fixed,
        ranks=2, calls=1, memory="gpu", expected=RAW("same call"), words="the scopes do not include each other",
    ),
    FieldCase(
        number="F48", title="a start barrier is relaxed", source="vllm-project/vllm#57059, ROCm/aiter#4812",
        buggy=f48_relaxed_start_barrier.buggy, fixed=f48_relaxed_start_barrier.fixed,
        ranks=2, calls=1, memory="gpu", expected=RAW("same call"), words="relaxed",
    ),
    FieldCase(
        number="F49", title="no fence follows a compare-and-swap that won", source="deepseek-ai/DeepEP#703",
        buggy=f49_no_fence_after_the_swap.buggy, fixed=f49_no_fence_after_the_swap.fixed,
        ranks=2, calls=1, memory="gpu", expected=RAW("same call"), words="no acquire fence",
    ),
    FieldCase(
        number="F50", title="locks are zeroed and polled without a fence", source="ROCm/tritonBLAS#61",
        buggy=f50_locks_zeroed_without_a_fence.buggy, fixed=f50_locks_zeroed_without_a_fence.fixed,
        ranks=1, calls=2, memory="gpu", expected=RAW("same call"),
    ),
    FieldCase(
        number="F51", title="a semaphore is made at capture, not at replay", source="tenstorrent/tt-metal#48469",
        buggy=f51_semaphore_made_at_capture.buggy, fixed=f51_semaphore_made_at_capture.fixed,
        ranks=2, calls=2, memory="sc", expected=RAW("same call"),
    ),
    FieldCase(
        number="F52", title="a fill of the own flag races with the signal", source="pytorch/pytorch#195761",
        buggy=f52_fill_races_with_the_signal.buggy, fixed=f52_fill_races_with_the_signal.fixed,
        ranks=2, calls=1, memory="sc", expected=Expected("signal-race"), words="erased",
    ),
)  # fmt: skip

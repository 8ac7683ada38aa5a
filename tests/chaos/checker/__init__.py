"""The checker: which invariants a history breaks, and where."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tests.chaos.checker import acceptance, accounting, controls, keys, leases, rates, retries, scopes, states, steering
from tests.chaos.history import History

INVARIANTS: Final[Mapping[str, Callable[[History], Iterator[str]]]] = {
    "I1": acceptance.a_receipt_is_kept,
    "I2": acceptance.what_failed_was_not_written,
    "I3": acceptance.an_unknown_end_is_settled_by_sending_again,
    "I4": acceptance.an_operation_is_applied_once,
    "I5": acceptance.a_batch_is_whole_or_not_there,
    "I6": acceptance.nothing_came_from_nowhere,
    "I9": states.only_legal_moves,
    "I10": states.one_end_per_generation,
    "I11": retries.no_budget_is_exceeded_or_cut_short,
    "I12": states.attempts_are_numbered_without_gap,
    "I13": retries.nothing_runs_before_it_is_due,
    "I14": retries.delays_are_the_policys_and_drawn_once,
    "I15": controls.a_confirmed_cancel_holds,
    "I16": controls.each_change_is_one_revision,
    "I17": leases.one_lease_at_a_time,
    "I18": leases.only_the_owner_writes,
    "I19": leases.a_lost_attempt_is_silent,
    "I20": scopes.tokens_rise,
    "I21": scopes.capacities_are_kept,
    "I22": leases.runs_do_not_overlap,
    "I23": keys.one_live_job_per_active_key,
    "I24": keys.keys_name_one_job,
    "I25": rates.rates_are_kept,
    "I31": controls.a_command_is_applied_once,
    "I32": controls.a_change_and_its_audit_stand_together,
    "I34": controls.a_refused_control_has_no_effect,
    "I35": accounting.every_job_is_counted_once,
    "I36": accounting.everything_comes_to_rest,
    "I37": accounting.nothing_is_left_over,
    "I39": accounting.costs_are_possible,
    "I40": accounting.errors_are_storable,
    "pauses": steering.a_pause_holds,
    "steering": steering.a_steering_stands_in_the_audit,
    "events": states.events_tell_every_row_once,
}
"""By the names under which they are reported."""

_SHOWN: Final = 5


def violations(history: History) -> dict[str, list[str]]:
    """What is wrong, by invariant; empty for a sound history."""
    found = {name: list(invariant(history)) for name, invariant in INVARIANTS.items()}
    return {name: sentences for name, sentences in found.items() if sentences}


def told(found: Mapping[str, list[str]]) -> str:
    """The same for people, a few sentences of each."""
    lines = []
    for name, sentences in found.items():
        lines += [f"  {name}: {sentence}" for sentence in sentences[:_SHOWN]]
        if len(sentences) > _SHOWN:
            lines.append(f"  {name}: and {len(sentences) - _SHOWN} more")
    return "\n".join(lines)

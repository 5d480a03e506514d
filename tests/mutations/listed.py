"""Owns the list of hand mutations: a small fault in each gate, fence and binding, and the tests that must see it.

Each is a text of one source file, found there exactly once, and what stands in its place. A change of the source
that moves such a text changes this list with it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    """One fault: what it breaks, where, and the tests of which at least one turns red."""

    breaks: str
    """What holds no more, as a clause."""
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Node ids; a name without `[…]` takes every case of it."""


_CRASH = "tests/durable/test_crash_matrix.py"
_CRASHES = "tests/runtime/test_crashes.py"
_CONCURRENT = "tests/runtime/test_concurrency.py"
_HELD = "tests/runtime/test_held_calls.py"
_LOOP = "tests/runtime/test_faults_of_the_loop.py"
_APPROVALS = "tests/durable/test_approvals.py"
_RECONCILED = "tests/durable/test_reconciliation.py"
_ANSWERS = "tests/durable/test_what_tools_answer.py"
_LATE = "tests/runtime/test_late_answers.py"
_ENDINGS = "tests/durable/test_endings.py"
_GRANTS = "tests/durable/test_capabilities_life.py"
_ONE = "tests/field/test_one_response.py"
_STATE = "tests/facts/test_app_state.py"
_ADMISSION = "tests/decision/test_admission.py"
_DECISION = "tests/decision/test_decision.py"
_GATES = "tests/decision/test_gates.py"
_ARGUMENTS = "tests/decision/test_arguments.py"
_AUDIT = "tests/stores/test_audit.py"
_CONTRACT = "tests/stores/test_store_contract.py"
_CACHE = "tests/facts/test_read_cache.py"
_TOKENS = "tests/adapters/test_signed_tokens.py"

EFFECTS = (
    Mutation(
        "nothing is sent before its start is durable",
        "engine/runtime/driver.py",
        """        for body in (*before, *starts):
            journal.stage(body)
        if not await self._commit(journal):
            return
""",
        """        for body in (*before, *starts):
            journal.stage(body)
""",
        (f"{_CONCURRENT}::test_nothing_is_sent_before_its_start_is_durable",),
    ),
    Mutation(
        "a receipt follows its start",
        "engine/runtime/driver.py",
        """        for body in (*before, *starts):
            journal.stage(body)
        if not await self._commit(journal):
            return
        self._crash("before effect")
        sent = self._sending.expect(starts)
        began = time.monotonic()
        try:
            await self._sending.dispatch(sent, view.spec)
""",
        """        sent = self._sending.expect(starts)
        began = time.monotonic()
        try:
            await self._sending.dispatch(sent, view.spec)
            for body in (*before, *starts):
                journal.stage(body)
            if not await self._commit(journal):
                return
            self._crash("before effect")
""",
        (f"{_CRASH}::test_killed_around_an_effect_nothing_is_repeated_lost_or_ended_over",),
    ),
    Mutation(
        "a started write without a receipt is not sent again",
        "engine/lifecycle/recover.py",
        "if may_send_again(spec, call, present.now) and still_permitted(present, spec, call):\n        return Execute",
        "if still_permitted(present, spec, call):\n        return Execute",
        (f"{_CRASH}::test_killed_around_an_effect_nothing_is_repeated_lost_or_ended_over",),
    ),
    Mutation(
        "an unknown outcome is not sent again without `retry: same_key`",
        "engine/lifecycle/recover.py",
        "if spec.retry is not Retry.SAME_KEY or call.idempotency_key is None or call.attempts >= MAX_ATTEMPTS:",
        "if call.idempotency_key is None or call.attempts >= MAX_ATTEMPTS:",
        (f"{_RECONCILED}::test_a_write_is_sent_again_only_where_its_spec_says_so",),
    ),
    Mutation(
        "`retry: same_key` ends with the window of the key",
        "engine/lifecycle/recover.py",
        "return window is None or call.started_at is None or now - call.started_at < window",
        "return True",
        (f"{_RECONCILED}::test_same_key_sends_nothing_again_outside_its_window",),
    ),
    Mutation(
        "a call that is sent again is asked about again",
        "engine/lifecycle/retry.py",
        "return wanted and still_permitted(present, spec, call)",
        "return wanted",
        (f"{_RECONCILED}::test_same_key_sends_nothing_that_is_forbidden_by_now",),
    ),
    Mutation(
        "what is sent again carries the same key",
        "engine/lifecycle/recover.py",
        "        idempotency_key=call.idempotency_key,\n",
        '        idempotency_key=f"{call.idempotency_key}-{call.attempts}",\n',
        (f"{_RECONCILED}::test_same_key_sends_an_unknown_outcome_again_with_the_same_key",),
    ),
    Mutation(
        "an exception of a write leaves its outcome unknown",
        "engine/runtime/dispatch.py",
        "return Outcome.FAILED if start.tool_kind is Kind.READ else Outcome.UNKNOWN",
        "return Outcome.FAILED",
        (f"{_LOOP}::test_absence_proves_nothing_while_the_request_can_still_arrive",),
    ),
    Mutation(
        "nothing done the second time says nothing of the first time",
        "engine/runtime/dispatch.py",
        "if sent_before(spec, start):",
        "if False:",
        (f"{_ANSWERS}::test_nothing_done_the_second_time_says_nothing_of_the_first",),
    ),
    Mutation(
        "what a probe does not find proves nothing while the handler still runs",
        "engine/lifecycle/recover.py",
        "if absent and present.at_work(call.id):",
        "if False:",
        (f"{_LATE}::test_absence_proves_nothing_while_the_handler_still_runs",),
    ),
    Mutation(
        "a late answer waits until its driver has let go of the call",
        "engine/runtime/late_answers.py",
        "        self._free.wait()\n",
        "",
        (f"{_LATE}::test_an_answer_waits_until_its_driver_has_let_go_of_the_call",),
    ),
    Mutation(
        "the answer of a driver that lost its claim is handed over",
        "engine/runtime/driver.py",
        "            self._sending.hand_over()\n",
        "",
        (f"{_LATE}::test_the_answer_of_a_driver_that_lost_its_claim_is_not_lost",),
    ),
    Mutation(
        "what was read of app state before a stop does not count after it",
        "engine/lifecycle/acts.py",
        "call.refreshed.get(name) in present.refreshes",
        "name in call.refreshed",
        (f"{_STATE}::test_what_was_read_before_a_stop_does_not_count_for_the_call_that_is_resumed",),
    ),
    Mutation(
        "a yes lasts no longer than the newest version lets it",
        "engine/lifecycle/held.py",
        "return any(now - approval.requested_at > need.expires_at - now for need in needs)",
        "return False",
        (
            "tests/durable/test_a_version_loaded_meanwhile.py::"
            "test_a_yes_lasts_no_longer_than_the_newest_version_lets_it",
        ),
    ),
    Mutation(
        "the cap of a rule counts under whatever name the rule had before",
        "engine/policy/view.py",
        "    return {**spent, **counted}\n",
        "    return spent\n",
        (
            "tests/durable/test_a_version_loaded_meanwhile.py::"
            "test_the_cap_of_a_rule_counts_under_whatever_name_the_rule_had_before",
        ),
    ),
    Mutation(
        "a request that was once seen expired stays so",
        "engine/runtime/approvals.py",
        "            journal.stage(e.ApprovalExpired(call=held.id), fact=True)\n",
        "",
        (f"{_APPROVALS}::test_a_request_that_was_once_seen_expired_stays_so_though_the_clock_is_set_back",),
    ),
    Mutation(
        "rules of one name in several overlays have each their own people",
        "engine/policy/decision.py",
        "if name not in names)",
        "if name)",
        (f"{_APPROVALS}::test_rules_of_one_name_in_several_overlays_are_each_satisfied_by_their_own_people",),
    ),
    Mutation(
        "a fork goes on with the wall time that is left",
        "engine/lifecycle/fold.py",
        "    state.spent.wall_seconds = body.worked_seconds\n",
        "",
        ("tests/durable/test_forks.py::test_a_fork_goes_on_with_the_wall_time_that_is_left",),
    ),
    Mutation(
        "a lost answer leaves the outcome of a write unknown",
        "engine/lifecycle/recover.py",
        "outcome=Outcome.FAILED if read else Outcome.UNKNOWN,",
        "outcome=Outcome.FAILED,",
        (f"{_CRASHES}::test_an_effect_that_nobody_can_tell_of_is_named_and_never_sent_again",),
    ),
    Mutation(
        "a probe's absence counts only once the request cannot arrive any more",
        "engine/lifecycle/recover.py",
        "if absent and now < _cannot_arrive_after(spec, call):",
        "if False:",
        (f"{_LOOP}::test_absence_proves_nothing_while_the_request_can_still_arrive",),
    ),
    Mutation(
        "a probe that says neither leaves the outcome unknown",
        "engine/lifecycle/recover.py",
        "if declared.confirms is not None and declared.confirms.test(facts) is True:",
        "if declared.confirms is not None and declared.confirms.test(facts) is not False:",
        (f"{_RECONCILED}::test_a_probe_whose_answer_lacks_what_it_is_asked_for_confirms_nothing",),
    ),
    Mutation(
        "an equal key waits for the call that is under way",
        "engine/lifecycle/acts.py",
        "if other != call]",
        "if other != call and other not in state.unknown_calls]",
        (f"{_RECONCILED}::test_a_second_call_with_the_same_key_waits_for_the_first",),
    ),
    Mutation(
        "an equal key that was confirmed is not sent again",
        "engine/lifecycle/held.py",
        "    if first.receipt.outcome is Outcome.CONFIRMED:\n        return Record",
        "    if first.receipt.outcome is Outcome.FAILED:\n        return Record",
        (f"{_RECONCILED}::test_a_second_call_with_the_same_key_waits_for_the_first",),
    ),
    Mutation(
        "writes that touch the same thing do not overlap",
        "engine/lifecycle/walk.py",
        "        if any(_scope(verdict.spec, start.args) == scope for start in batch):\n",
        "        if False and scope:\n",
        ("tests/durable/test_order.py::test_two_edits_of_one_document_in_one_response_are_both_there",),
    ),
    Mutation(
        "an answer that came late is matched by its key",
        "engine/runtime/reconcile.py",
        "if found is None or found.idempotency_key != key or call not in state.unknown_calls:",
        "if found is None or call not in state.unknown_calls:",
        (f"{_RECONCILED}::test_a_stray_answer_is_attached_to_no_call",),
    ),
    Mutation(
        "an operator settles only what is in doubt",
        "engine/runtime/reconcile.py",
        "    if found.id not in state.unknown_calls:\n",
        "    if False:\n",
        (f"{_RECONCILED}::test_only_an_unknown_outcome_can_be_reconciled",),
    ),
)

GATES = (
    Mutation(
        "a finish over an unknown effect does not complete the Run",
        "engine/policy/gates.py",
        "unknown_effects=tuple(each for each in state.unknown_calls if _has_effects(state, each)),",
        "unknown_effects=(),",
        (f"{_GATES}::test_a_pending_approval_and_an_unknown_effect_are_gates_of_their_own",),
    ),
    Mutation(
        "a finish beside calls that are not settled is refused",
        "engine/policy/gates.py",
        "unsettled=tuple(each.id for each in open_calls if not _awaits_people(each)),",
        "unsettled=(),",
        (f"{_GATES}::test_finish_before_its_siblings_names_the_open_calls",),
    ),
    Mutation(
        "a finish beside a call that waits for people is refused",
        "engine/policy/gates.py",
        "pending_approvals=tuple(each.id for each in open_calls if _awaits_people(each)),",
        "pending_approvals=(),",
        (f"{_GATES}::test_a_pending_approval_and_an_unknown_effect_are_gates_of_their_own",),
    ),
    Mutation(
        "a Run that was told to stop does not complete",
        "engine/policy/gates.py",
        "    if facts.cancel_requested:\n",
        "    if False:\n",
        (f"{_GATES}::test_a_run_that_was_told_to_stop_may_not_complete",),
    ),
    Mutation(
        "a finish proposed before the model heard the user is refused",
        "engine/policy/gates.py",
        "return bool(state.turn and state.inputs and state.inputs[-1][0] > state.turn.asked_seq)",
        "return False",
        (f"{_HELD}::test_a_finish_proposed_before_the_model_heard_the_user_is_refused",),
    ),
    Mutation(
        "a condition gate that is not known does not pass",
        "engine/policy/gates.py",
        'why, objects = ("" if truth is True else f"it is {state}"), ()',
        'why, objects = ("" if truth is not False else f"it is {state}"), ()',
        (f"{_GATES}::test_a_condition_gate_that_is_not_known_does_not_pass",),
    ),
    Mutation(
        "evidence that is out of scope may not be cited",
        "engine/policy/gates.py",
        "        if cited.out_of_scope:\n",
        "        if False:\n",
        (f"{_GATES}::test_evidence_of_a_source_that_is_not_usable_is_out_of_scope",),
    ),
    Mutation(
        "an open hold keeps the finish away where the policy says so",
        "engine/policy/gates.py",
        "calls = facts.open_holds.get(gate.subject, ())",
        "calls: tuple[CallId, ...] = ()",
        (f"{_GATES}::test_holds_closed_names_the_open_hold",),
    ),
    Mutation(
        "the lifecycle itself refuses to complete over an unknown effect",
        "engine/lifecycle/machine.py",
        "return not self.run.unknown_calls",
        "return True",
        ("tests/lifecycle/test_machine.py::test_an_unknown_effect_keeps_completion_away_but_not_a_cancel",),
    ),
    Mutation(
        "a completed Run waits for an undoing of unknown outcome",
        "engine/lifecycle/settle.py",
        'if ending == "completed" and state.unknown_calls:',
        "if False:",
        (f"{_LOOP}::test_a_completed_run_waits_for_an_undoing_whose_outcome_nobody_knows",),
    ),
    Mutation(
        "a terminal Run names its unknown effects",
        "engine/lifecycle/settle.py",
        "unknown = tuple(state.unknown_calls)",
        "unknown = ()",
        (f"{_CRASHES}::test_an_effect_that_nobody_can_tell_of_is_named_and_never_sent_again",),
    ),
    Mutation(
        "effects are undone in reverse order",
        "engine/lifecycle/settle.py",
        "    for id_, undoable in reversed(confirmed.items()):\n",
        "    for id_, undoable in confirmed.items():\n",
        (f"{_ENDINGS}::test_effects_are_undone_in_reverse_order_each_as_a_call_of_its_own",),
    ),
    Mutation(
        "a consumed or lapsed hold is not undone",
        "engine/lifecycle/settle.py",
        "    if not call.holds:\n        return True\n",
        "    return True\n",
        (f"{_ENDINGS}::test_a_consumed_hold_is_neither_undone_nor_named",),
    ),
    Mutation(
        "a cancel lets nothing start",
        "engine/lifecycle/decide.py",
        "        if state.cancel_requested is not None:\n            return Record",
        "        if False:\n            return Record",
        (f"{_ENDINGS}::test_a_cancel_settles_or_names_every_open_call_and_lets_nothing_start",),
    ),
)

FENCES = (
    Mutation(
        "the permission epoch is compared before anything else",
        "engine/policy/admission.py",
        "    if state.epoch != epoch:\n        return Fence(state.moved_by)\n",
        "",
        (f"{_ADMISSION}::test_a_proposal_of_an_older_epoch_is_fenced_whatever_it_is",),
    ),
    Mutation(
        "a granted capability fences the rest of its response",
        "engine/lifecycle/walk.py",
        "        if state.epoch != self.turn.epoch:\n            fenced = tuple(self._fenced())\n",
        "        if False:\n            fenced = tuple(self._fenced())\n",
        (f"{_CONCURRENT}::test_a_permission_that_moves_while_a_write_is_queued_fences_the_queued_one_only",),
    ),
    Mutation(
        "a permission event moves the epoch",
        "engine/lifecycle/fold_standing.py",
        "    state.epoch += 1\n",
        "    state.epoch += 0\n",
        (f"{_GRANTS}::test_a_revocation_fences_what_is_left_of_the_response",),
    ),
    Mutation(
        "only what the turn's contract offers is judged at all",
        "engine/policy/admission.py",
        "    if proposal.tool not in offered:\n",
        "    if False:\n",
        (f"{_ADMISSION}::test_every_name_that_is_not_offered_gets_the_same_answer",),
    ),
    Mutation(
        "a response cut by its length runs reads only",
        "engine/policy/admission.py",
        "    if finish in _CUT and (spec is None or",
        "    if finish in () and (spec is None or",
        (f"{_ADMISSION}::test_a_response_cut_by_its_length_runs_reads_only",),
    ),
    Mutation(
        "deny wins",
        "engine/policy/decision.py",
        "    if denies:\n        return Decision(Verdict.DENY",
        "    if denies and not permits:\n        return Decision(Verdict.DENY",
        (f"{_DECISION}::test_deny_wins_and_is_named_with_its_place",),
    ),
    Mutation(
        "unknown permits nothing",
        "engine/policy/decision.py",
        "elif truth is True and may_permit(rule, facts):",
        "elif truth is not False and may_permit(rule, facts):",
        (f"{_DECISION}::test_unknown_restricts_and_never_permits",),
    ),
    Mutation(
        "an overlay permits nothing",
        "engine/policy/decision.py",
        '    if rule.origin != "policy":\n        return False\n',
        "",
        (f"{_DECISION}::test_an_overlay_cannot_permit_even_if_it_says_so",),
    ),
    Mutation(
        "the newer version of the policy restricts",
        "engine/policy/decision.py",
        "        first = _stricter(first, replace(other, policy",
        "        _stricter(first, replace(other, policy",
        (f"{_GRANTS}::test_a_running_run_is_restricted_by_a_loaded_version_at_its_next_call",),
    ),
    Mutation(
        "an unattended rule ends at its cap",
        "engine/policy/decision.py",
        "return rule.unattended is None or facts.unattended.get(rule.id, 0) < rule.unattended.max_per_run",
        "return True",
        (f"{_DECISION}::test_beyond_its_cap_an_unattended_rule_permits_nothing",),
    ),
    Mutation(
        "a held call is decided again under the policy of then",
        "engine/lifecycle/held.py",
        "verdict = readmit(present.policies, present.state, spec, call.id, args, present.facts)",
        "verdict = readmit(present.policies[:1], present.state, spec, call.id, args, present.facts[:1])",
        (f"{_APPROVALS}::test_a_call_that_the_newer_policy_denies_is_not_executed_whoever_approved_it",),
    ),
    Mutation(
        "a source that is shut while a call waits is not written to",
        "engine/lifecycle/held.py",
        "    if shut is not None:\n",
        "    if False:\n",
        (f"{_HELD}::test_a_source_that_is_shut_while_its_call_waits_is_not_written_to",),
    ),
    Mutation(
        "state that changed since the model saw it stops the call",
        "engine/policy/freshness.py",
        "        elif before != held.version:\n",
        "        elif False:\n",
        (f"{_STATE}::test_an_order_under_a_changed_cart_is_not_executed_and_the_receipt_says_what_changed",),
    ),
    Mutation(
        "a call does not run with other bound state than people saw",
        "engine/lifecycle/acts.py",
        'return None if moved is None else f"{moved} changed',
        'return None if moved != "" else f"{moved} changed',
        (f"{_STATE}::test_a_call_that_people_approved_does_not_run_with_another_value_than_they_saw",),
    ),
    Mutation(
        "a cached answer ends with a write on its source",
        "engine/lifecycle/read_cache.py",
        "if age > _lifetime(present.policy, spec, spec.cache) or _written_since(state, spec, first):",
        "if age > _lifetime(present.policy, spec, spec.cache):",
        (f"{_CACHE}::test_a_write_on_the_same_source_invalidates",),
    ),
    Mutation(
        "per-tool budgets hold",
        "engine/policy/admission.py",
        "return cap is not None and state.spent.per_tool.get(tool, 0) >= cap + counted",
        "return False",
        (f"{_LOOP}::test_reads_of_one_response_cannot_overdraw_a_budget_per_tool",),
    ),
    Mutation(
        "an append under an older claim is refused",
        "engine/adapters/sql_schema.py",
        'held = fits.where(runs.c.claim_epoch == param("epoch_is"))',
        "held = fits",
        (f"{_CONTRACT}::TestSqliteStore::test_a_claim_lapses_and_its_driver_can_no_longer_append",),
    ),
    Mutation(
        "an append names the log that it saw",
        "engine/adapters/sql_schema.py",
        'fits = sa.update(runs).where(at, runs.c.seq == param("seq_is"), runs.c.hash == param("hash_is"))',
        "fits = sa.update(runs).where(at)",
        (f"{_CONTRACT}::TestSqliteStore::test_an_append_after_a_newer_log_is_a_conflict",),
    ),
    Mutation(
        "a living claim keeps others out",
        "engine/adapters/refusals.py",
        "if self.owner is None or self.expires_at <= timestamp(now) or is_dead(self.owner):",
        "if True:",
        (f"{_CONCURRENT}::test_a_second_driver_is_refused_while_a_claim_lives",),
    ),
    Mutation(
        "a conflict is decided again instead of appended over",
        "engine/runtime/journal.py",
        "        kept = [staged for staged in self._staged if staged.fact]\n",
        "        kept = list(self._staged)\n",
        (
            f"{_CONCURRENT}::test_a_policy_loaded_during_the_model_call_fences_what_was_proposed_before",
            f"{_CONCURRENT}::test_a_driver_whose_every_append_meets_a_newer_log_still_gets_on",
        ),
    ),
    Mutation(
        "a closed turn and receipts survive a conflict",
        "engine/runtime/journal.py",
        "        kept = [staged for staged in self._staged if staged.fact]\n",
        "        kept: list[_Staged] = []\n",
        (f"{_CONCURRENT}::test_receipts_are_kept_when_somebody_spoke_meanwhile",),
    ),
)

BINDINGS = (
    Mutation(
        "an approval is bound to the arguments",
        "engine/policy/binding.py",
        '            "args": dict(args),\n',
        "",
        (f"{_ADMISSION}::test_the_digest_fits_tool_spec_arguments_principal_and_policy",),
    ),
    Mutation(
        "an approval is bound to the principal",
        "engine/policy/binding.py",
        '            "principal": None if principal is None else principal.model_dump(mode="json"),\n',
        "",
        (f"{_ADMISSION}::test_the_digest_fits_tool_spec_arguments_principal_and_policy",),
    ),
    Mutation(
        "an approval is bound to the policy",
        "engine/policy/binding.py",
        '            "policy": policy_digest,\n',
        "",
        (f"{_ADMISSION}::test_the_digest_fits_tool_spec_arguments_principal_and_policy",),
    ),
    Mutation(
        "an approval is bound to the tool spec",
        "engine/policy/binding.py",
        '            "spec": spec_digest,\n',
        "",
        (f"{_ADMISSION}::test_the_digest_fits_tool_spec_arguments_principal_and_policy",),
    ),
    Mutation(
        "a yes counts for the stored call only",
        "engine/lifecycle/held.py",
        "if call.approval is None or call.approval.digest != verdict.digest:",
        "if call.approval is None:",
        (f"{_APPROVALS}::test_a_yes_to_a_request_that_names_another_call_lets_nothing_run",),
    ),
    Mutation(
        "a yes to another call than was shown is refused",
        "engine/runtime/approvals.py",
        "if decision.digest is not None and decision.digest != approval.digest:",
        "if False:",
        (f"{_APPROVALS}::test_an_approval_of_what_was_shown_before_the_edit_is_refused",),
    ),
    Mutation(
        "an edit takes the approvals back that were given before it",
        "engine/lifecycle/fold_standing.py",
        "    approval.given.clear()\n",
        "",
        (f"{_APPROVALS}::test_who_approved_the_original_did_not_approve_the_amended_call",),
    ),
    Mutation(
        "a quorum counts different people",
        "engine/lifecycle/held.py",
        "len({actor.id for actor, rules in given if need.rule in rules}) >= need.quorum",
        "len([actor.id for actor, rules in given if need.rule in rules]) >= need.quorum",
        (
            f"{_APPROVALS}::test_one_person_who_said_yes_twice_is_not_two_of_the_people_that_a_newer_policy_wants",
        ),
    ),
    Mutation(
        "a quorum is waited for",
        "engine/domain/state.py",
        "< need.quorum",
        "< 1",
        (f"{_APPROVALS}::test_a_quorum_counts_different_people_and_nobody_twice",),
    ),
    Mutation(
        "the requester does not approve their own call",
        "engine/policy/eligibility.py",
        "if need.not_requester and requester is not None and by.id == requester.id:",
        "if False:",
        (f"{_APPROVALS}::test_an_approval_without_an_eligible_approver_changes_nothing_and_is_recorded",),
    ),
    Mutation(
        "the same id from another issuer is another person",
        "engine/policy/eligibility.py",
        "return requester is not None and by.id == requester.id and issuer_of(by) == (requester.issuer or LOCAL)",
        "return requester is not None and by.id == requester.id",
        (f"{_APPROVALS}::test_the_same_id_from_another_issuer_is_not_the_requester",),
    ),
    Mutation(
        "an approver holds one of the named roles",
        "engine/policy/eligibility.py",
        "if need.roles and not set(need.roles) & set(by.roles):",
        "if False:",
        (f"{_APPROVALS}::test_an_approval_without_an_eligible_approver_changes_nothing_and_is_recorded",),
    ),
    Mutation(
        "a demanded signature is demanded",
        "engine/policy/eligibility.py",
        "if need.signed and issuer_of(by) == LOCAL:",
        "if False:",
        (f"{_APPROVALS}::test_a_policy_can_demand_signed_approvers",),
    ),
    Mutation(
        "a yes is in time up to its very expiry, and not after it",
        "engine/lifecycle/recover.py",
        "    return any(now > need.expires_at for need in approval.requirements if need.rule in missing)",
        "    return any(now >= need.expires_at for need in approval.requirements if need.rule in missing)",
        (f"{_APPROVALS}::test_an_approval_counts_up_to_the_very_millisecond_of_its_expiry",),
    ),
    Mutation(
        "silence is never yes",
        "engine/lifecycle/held.py",
        """    if not approval.decided:
        return None
    if approval.decided != "approved":
        return Record((decided_against(call),))
    return None if blocked else _decide_again""",
        """    if not approval.decided:
        return None
    return None if blocked else _decide_again""",
        (f"{_APPROVALS}::test_refused_expired_undecided_and_never_asked_are_told_apart",),
    ),
    Mutation(
        "a refusal wins over an approval",
        "engine/lifecycle/fold_calls.py",
        "    if call.approval is not None and call.status is CallStatus.HELD:\n        call.approval.decided",
        "    if call.approval is not None and not call.approval.decided:\n        call.approval.decided",
        (f"{_APPROVALS}::test_a_refusal_wins_over_an_approval_until_the_call_starts",),
    ),
    Mutation(
        "a decided call is not decided again",
        "engine/runtime/approvals.py",
        "    return call.approval is not None and not call.approval.decided\n",
        "    return call.approval is not None\n",
        (
            "tests/durable/test_retail_orders.py::test_a_second_yes_is_refused_and_recorded_and_the_order_is_placed_once",
        ),
    ),
    Mutation(
        "only declared arguments can be edited",
        "engine/runtime/approvals.py",
        "    if fixed:\n",
        "    if False:\n",
        (f"{_APPROVALS}::test_only_declared_arguments_of_the_same_tool_can_be_edited",),
    ),
    Mutation(
        "a standing approval covers equal arguments only",
        "engine/lifecycle/standing.py",
        "        if canonical(standing.args) == wanted:\n",
        "        if wanted:\n",
        (f"{_APPROVALS}::test_a_standing_approval_covers_no_other_argument",),
    ),
    Mutation(
        "a standing approval ends",
        "engine/lifecycle/standing.py",
        "    if standing.ended or standing.calls_left == 0:\n        return False\n"
        "    return standing.expires_at is None or now <= standing.expires_at\n",
        "    return not standing.ended\n",
        (f"{_APPROVALS}::test_a_standing_approval_that_ran_out_covers_nothing_before_its_end_is_recorded",),
    ),
    Mutation(
        "a standing approval answers for every rule that asks, or for none",
        "engine/lifecycle/standing.py",
        "return tuple(covered) if len(covered) == len(found) else ()",
        "return tuple(covered)",
        (f"{_APPROVALS}::test_a_standing_approval_of_one_rule_does_not_answer_for_another",),
    ),
    Mutation(
        "only who may revoke revokes",
        "engine/runtime/revoking.py",
        "        if not _may(library, state, grant, by):\n",
        "        if False:\n",
        (f"{_GRANTS}::test_only_the_named_roles_and_the_principal_may_revoke",),
    ),
    Mutation(
        "a grant that lapsed permits nothing before its expiry is recorded",
        "engine/policy/view.py",
        "        if is_active(grant, now):\n",
        "        if not grant.ended:\n",
        (f"{_DECISION}::test_a_grant_that_lapsed_permits_nothing_before_its_expiry_is_recorded",),
    ),
    Mutation(
        "what the Host binds is not taken from the model",
        "engine/policy/admission.py",
        "args = in_order(spec, {**bound, **read.values}) if stored_args is None else stored_args",
        "args = in_order(spec, {**read.values}) if stored_args is None else stored_args",
        (f"{_STATE}::test_bound_parameters_come_from_state_task_principal_and_evidence",),
    ),
    Mutation(
        "an idempotency key is made of the arguments that it names",
        "engine/policy/binding.py",
        "        return args.get(name)\n",
        "        return None\n",
        (f"{_ADMISSION}::test_an_idempotency_key_is_made_of_host_facts_and_typed_arguments",),
    ),
    Mutation(
        "the hash covers who said it",
        "engine/domain/events.py",
        '{_quoted(timestamp(recorded_at))},{_quoted(actor)},{epoch},"',
        '{_quoted(timestamp(recorded_at))},{epoch},"',
        (f"{_AUDIT}::test_tampering_is_named_by_its_first_event",),
    ),
    Mutation(
        "an audit compares each event with the one before it",
        "engine/runtime/audit.py",
        "    if row.previous != before.hash:\n",
        "    if False:\n",
        (f"{_AUDIT}::test_an_event_rewritten_with_a_fitting_hash_breaks_the_next_one",),
    ),
    Mutation(
        "a head kept elsewhere shows a cut tail",
        "engine/runtime/audit.py",
        "if known is not None and known.seq > head.seq:",
        "if known is stored and known is not None and known.seq > head.seq:",
        (f"{_AUDIT}::test_a_cut_tail_shows_only_against_a_head_kept_elsewhere",),
    ),
    Mutation(
        "a token is of its audience",
        "engine/adapters/signed_tokens.py",
        "                audience=issuer.audience,\n",
        '                audience=jwt.decode(text, options={"verify_signature": False}).get("aud"),\n',
        (f"{_TOKENS}::test_anything_unverified_is_refused",),
    ),
)

MUTATIONS = {
    "Effects and receipts": EFFECTS,
    "Gates and ends": GATES,
    "Fences": FENCES,
    "Bindings and approvals": BINDINGS,
}
"""Section of the page -> its mutations."""

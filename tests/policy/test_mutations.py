"""One fault at a time in the example policies: the rule that is raised, and the characters it points at."""

from __future__ import annotations

import pytest

from tests.policy.examples import OVERLAY, POLICIES, TOOLS, changed, compiled, under

P, T = POLICIES, TOOLS

MUTATIONS = [
    # the YAML profile
    (
        "retail",
        P,
        'when: "principal.suspended"',
        "when: !principal.suspended",
        "Y102",
        "!principal.suspended",
    ),
    ("retail", P, "owner: shop-platform", "owner: shop-platform\nowner: b", "Y103", "owner"),
    ("retail", P, "task:\n", "task: &t\n", "Y104", "&t"),
    ("retail", P, "agentctl: policy/v1", "agentctl: polices/v1", "Y105", "polices/v1"),
    ("retail", T, "agentctl: tools/v1", "agentctl: policy/v1", "Y105", "policy/v1"),
    # shape
    ("retail", P, '    unattended: {because: "A', '    unatended: {because: "A', "Y201", "unatended"),
    ("retail", P, "owner: shop-platform\n", "", "Y202", "agentctl"),
    ("retail", P, "owner: shop-platform", "owner:", "Y205", "owner"),
    ("retail", P, "on_policy_change: pin", "on_policy_change: pinn", "Y204", "pinn"),
    ("retail", P, 'cost_usd: "0.60"', "cost_usd: 0.60", "Y205", "0.60"),
    ("retail", P, "wall_time: 20m", "wall_time: 20 minutes", "Y205", "20 minutes"),
    ("retail", P, "turns: 30", 'turns: "30"', "Y205", '"30"'),
    ("retail", P, "values: [web, kiosk]", "values: [NO, kiosk]", "Y205", "NO"),
    (
        "retail",
        P,
        "    effect: deny\n",
        "    effect: deny\n    fresh: [{state: cart, max_age: 5s}]\n",
        "Y203",
        "fresh",
    ),
    (
        "retail",
        T,
        "    source: catalog\n",
        "    source: catalog\n    effects: [cart.look]\n",
        "Y203",
        "effects",
    ),
    ("ops", T, "params: {path: {type: path}}", "params: {path: {type: path, min: 3}}", "Y203", "min"),
    ("ops", P, "covers: [assistant_text]", "covers: [user_input]", "Y204", "user_input"),
    # the rule that names a fault of shape more exactly
    ("mini", T, "    idempotency: {key: [owner, note]}\n", "", "W201", "delete_note"),
    ("mini", T, "idempotency: {key: [owner, note]}", "idempotency: {key: []}", "W201", "idempotency"),
    (
        "ops",
        T,
        '    reconcile: {manual: "Compare the file with the stored content"}\n',
        "",
        "W202",
        "edit_file",
    ),
    ("mini", T, "    effects: [note.delete]\n", "", "W203", "delete_note"),
    (
        "ops",
        T,
        "    effects: [worktree.edit]\n    reversible: true\n",
        "    effects: [worktree.edit]\n",
        "W204",
        "edit_file",
    ),
    (
        "ops",
        T,
        "    compensate: {tool: close_pull_request, args: {number: result.number}, on: [run_failed]}\n",
        "",
        "W205",
        "open_pull_request",
    ),
    (
        "mini",
        T,
        "    effects: [note.delete]\n",
        "    effects: [note.delete]\n    cache: {ttl: 1m, key: [note]}\n",
        "W206",
        "cache",
    ),
    ("fund", T, "scope: principal", "scope: shared", "W216", "shared"),
    ("mini", P, "effect: allow, roles: [user],", "effect: allow,", "P207", "id"),
    ("fund", OVERLAY, "effect: require", "effect: allow", "P210", "allow"),
    ("fund", P, "    expires:  {after: 2h, calls: 40}\n", "", "K304", "documents"),
    ("fund", P, "expires:  {after: 2h, calls: 40}", "expires:  {}", "K304", "expires"),
    ("retail", P, "  turns: 30\n", "", "B701", "budgets"),
    ("retail", P, "calls: {total: 80, ", "calls: {", "B701", "calls"),
    ("mini", P, "gates: {finish: []}", "gates: {finish: [no_unsettled_calls]}", "G503", "no_unsettled_calls"),
    ("mini", P, "gates: {finish: []}", 'gates: {finish: [{llm_judge: "complete?"}]}', "S303", "llm_judge"),
    ("mini", P, "owner: me", "owner: me\nblocked_words: [x]", "S303", "blocked_words"),
    ("mini", T, "{type: text, max_len: 100}", '{type: text, pattern: "tea"}', "S303", "pattern"),
    ("mini", P, "gates: {finish: []}", 'gates: {finish: [{when: "args.done"}]}', "M404", "args"),
    # names
    (
        "retail",
        P,
        "tools: [search_products, check_stock]",
        "tools: [search_products, chek_stock]",
        "R201",
        "chek_stock",
    ),
    (
        "retail",
        P,
        "tools: [search_products, check_stock]",
        "tools: [search_products, check_stock, finish]",
        "R201",
        "finish",
    ),
    ("retail", P, "    roles: [shopper]\n", "    roles: [shoper]\n", "R202", "shoper"),
    ("fund", P, "needs: [documents]", "needs: [document]", "R203", "document"),
    ("retail", P, "- id: suggest\n", "- id: browse\n", "R204", "browse"),
    ("retail", T, "    source: catalog\n", "    source: catalogue\n", "R205", "catalogue"),
    ("retail", P, "- {state: profile, max_age: 5m}", "- {state: profiles, max_age: 5m}", "R206", "profiles"),
    ("retail", T, "bind: state.profile.email", "bind: state.profile.mail", "R206", "mail"),
    (
        "retail",
        P,
        "fields: [items, total_minor, currency]",
        "fields: [item, total_minor, currency]",
        "R206",
        "item",
    ),
    ("retail", T, "consumed_by: order.place", "consumed_by: order.placed", "R207", "order.placed"),
    ("retail", T, "of: {type: ref, of: product}", "of: {type: ref, of: products}", "R208", "products"),
    ("fund", P, "- output_committed: research_note", "- output_committed: note", "R209", "note"),
    (
        "fund",
        P,
        "tests: [../tests/fund-research.test.yaml]",
        "tests: [../tests/missing.yaml]",
        "R210",
        "../tests/missing.yaml",
    ),
    (
        "fund",
        P,
        "system: ../prompts/system.md.j2",
        "system: ../prompts/sytem.md.j2",
        "R210",
        "../prompts/sytem.md.j2",
    ),
    ("retail", P, "per_tool: {place_order: 1,", "per_tool: {place_orders: 1,", "B703", "place_orders"),
    (
        "mini",
        P,
        "effect: allow, roles: [user], tools: [find_note]",
        'effect: allow, roles: [user], tools: ["kind:read"]',
        "P205",
        '"kind:read"',
    ),
    (
        "retail",
        P,
        '["kind:write", "kind:hybrid"]',
        '["kind:write", "effect:orders.*"]',
        "R207",
        '"effect:orders.*"',
    ),
    ("mini", T, "    kind: read\n", "    kind: read\n    labels: [private]\n", "N104", "private"),
    # types
    ("retail", P, 'when: "principal.suspended"', 'when: "principle.suspended"', "C102", "principle"),
    ("retail", P, "args.total_minor <= limits", "args.total_minr <= limits", "C103", "total_minr"),
    ("retail", P, "size(state.cart.items) > 0", "state.cart.items > 0", "C104", None),
    ("retail", P, "size(state.cart.items) > 0", "len(state.cart.items) > 0", "C105", "len"),
    ("retail", P, "&& task.channel == 'kiosk'", "&& task.channel == 'kiosc'", "C106", "'kiosc'"),
    ("retail", P, "args.template == 'order_question'", "args.message == 'question'", "S301", None),
    ("retail", T, "suggestion_id: result.suggestion_id", "suggestion_id: result.suggestionid", "W211", None),
    (
        "retail",
        T,
        "get_suggestion, args: {key: idempotency_key}",
        "get_suggestion, args: {kee: idempotency_key}",
        "W220",
        None,
    ),
    ("retail", T, "key: [cart_id, sku, quantity]", "key: [cart_id, skuu, quantity]", "C103", "skuu"),
    ("retail", P, "value: 5000, max: 10000", "value: 50000, max: 10000", "Y205", "50000"),
    (
        "retail",
        P,
        "vars: [task.channel]",
        "vars: [state.cart.total_minor, task.channel]",
        "M407",
        "state.cart.total_minor",
    ),
    ("retail", P, "vars: [task.channel]", "vars: []", "X805", "task.channel"),
    ("retail", P, "shows: [args.to, args.template", "shows: [args.too, args.template", "C103", "args.too"),
    ("retail", P, "    refresh: get_cart\n", "    refresh: get_profile\n", "Y205", "get_profile"),
]


@pytest.mark.parametrize(("name", "where", "old", "new", "code", "text"), MUTATIONS)
def test_one_fault_raises_the_rule_that_names_it(
    name: str, where: str | dict[str, str], old: str, new: str, code: str, text: str | None
) -> None:
    files = changed(where if isinstance(where, str) else where[name], old, new)
    found = compiled(name, files).diagnostics
    assert {each.code for each in found} == {code}, [f"{each.code} {each.message}" for each in found]
    assert all(each.help and each.message for each in found)
    if text is not None:
        assert text in {under(files, each) for each in found}

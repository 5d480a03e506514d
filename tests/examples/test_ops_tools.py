"""The operations tools work on a real working copy; forge, CI and cluster are local stand-ins."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from ops_agent import git, place, tools

from engine import Failed, NotExecuted
from engine.adapters.function_tools import FunctionTools
from engine.policy.compiler import compile_policy
from tests.examples.call_context import call

ROOT = Path(__file__).resolve().parents[2]
REPO = "shipping-rates"
FIXED = "if order_minor >= FREE_FROM_MINOR"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home made once; tests get a copy, which is quicker than git."""
    folder = tmp_path_factory.mktemp("ops") / "home"
    place.setup(folder)
    return folder


@pytest.fixture(autouse=True)
def home(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    shutil.copytree(made, folder)
    monkeypatch.setenv("AGENTCTL_OPS_HOME", str(folder))
    git.run(folder / "work", "remote", "set-url", "origin", str(folder / "origin.git"))
    return folder


def _fix(key: str = "edit-1") -> dict[str, object]:
    found = tools.read_file("src/rates.py", call())
    content = found["text"].replace("if order_minor > FREE_FROM_MINOR", FIXED)
    return tools.edit_file("src/rates.py", found["blob"], content, call(key))


def _branches(home: Path) -> str:
    return subprocess.run(
        ["git", "-C", str(home / "origin.git"), "branch", "--list"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_every_handler_of_the_policy_fits_its_function() -> None:
    policy = compile_policy(str(ROOT / "policies" / "repo-ops.policy.yaml")).policy
    assert policy is not None
    assert FunctionTools({}, [ROOT / "examples"]).check(list(policy.tools.values())) == []


def test_home_is_made_on_first_use_where_the_variable_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTCTL_OPS_HOME", str(tmp_path / "new"))
    assert tools.repo_state(REPO)["dirty"] is False
    assert (tmp_path / "new" / "work" / "src" / "rates.py").is_file()


def test_file_is_read_with_the_blob_that_git_has() -> None:
    found = tools.read_file("docs/rates.md", call())
    assert found["blob"] == git.run(place.worktree(), "rev-parse", "HEAD:docs/rates.md").strip()
    assert found["text"].startswith("# Rates")


@pytest.mark.parametrize(
    "path", ["../ops.sqlite", "/etc/passwd", ".git/config", "src/../.git/config", "", "."]
)
def test_file_outside_the_working_copy_is_refused(path: str) -> None:
    with pytest.raises(Failed):
        tools.read_file(path, call())


def test_link_to_a_closed_folder_is_refused(home: Path) -> None:
    (home / "work" / "docs" / "key.md").symlink_to(home / "work" / "secrets" / "deploy-key.txt")
    with pytest.raises(Failed, match="not a file"):
        tools.read_file("docs/key.md", call())


def test_file_that_is_missing_or_no_text_fails(home: Path) -> None:
    (home / "work" / "src" / "logo.png").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(Failed, match="there is no file"):
        tools.read_file("src/none.py", call())
    with pytest.raises(Failed, match="not a text file"):
        tools.read_file("src/logo.png", call())


def test_search_shows_lines_but_nothing_of_secrets() -> None:
    hits = tools.search_code("FREE_FROM_MINOR", context=call())["hits"]
    assert {hit["path"] for hit in hits} == {"src/rates.py"}
    assert tools.search_code("deploy key", context=call())["hits"] == []
    assert tools.search_code("postgres://", context=call())["hits"] == []
    assert tools.search_code("FREE_FROM_MINOR", under="docs", context=call())["hits"] == []


def test_edit_on_a_stale_base_is_not_executed() -> None:
    found = tools.read_file("src/rates.py", call())
    _fix()
    with pytest.raises(NotExecuted, match="read it again"):
        tools.edit_file("src/rates.py", found["blob"], "x = 1\n", call("edit-2"))
    assert FIXED in tools.read_file("src/rates.py", call())["text"]


def test_edit_under_a_repeated_key_is_the_first_edit() -> None:
    found = tools.read_file("src/rates.py", call())
    first = tools.edit_file("src/rates.py", found["blob"], "x = 1\n", call("e"))
    assert tools.edit_file("src/rates.py", found["blob"], "x = 2\n", call("e")) == first
    assert tools.read_file("src/rates.py", call())["text"] == "x = 1\n"


def test_restore_brings_the_edited_text_back() -> None:
    before = tools.read_file("src/rates.py", call())
    _fix()
    assert tools.repo_state(REPO)["dirty"] is True
    tools.restore_file("src/rates.py", before["blob"])
    assert tools.repo_state(REPO)["dirty"] is False
    with pytest.raises(Failed, match="no blob"):
        tools.restore_file("src/rates.py", "0" * 40)


def test_unit_check_fails_on_the_bug_and_passes_on_the_fix() -> None:
    red = tools.run_check("unit", call())
    assert (red["verdict"], red["check_id"]) == ("fail", "check-1")
    assert "610 != 0" in red["output"]
    _fix()
    assert tools.run_check("unit", call())["verdict"] == "pass"


def test_other_checks_find_their_own_faults(home: Path) -> None:
    assert [tools.run_check(name, call())["verdict"] for name in ("lint", "types", "build")] == ["pass"] * 3
    (home / "work" / "src" / "extra.py").write_text("def f(x):\n\treturn x \n")
    assert [tools.run_check(name, call())["verdict"] for name in ("lint", "types", "build")] == [
        "fail",
        "fail",
        "pass",
    ]
    (home / "work" / "src" / "extra.py").write_text("def f(:\n")
    assert "extra.py:1" in tools.run_check("build", call())["output"]
    with pytest.raises(Failed, match="deploy"):
        tools.run_check("deploy", call())


def test_issue_is_read_with_its_comments() -> None:
    issue = tools.read_issue(42)
    assert issue["issue_id"] == "issue-42"
    assert "restart billing" in issue["comments"][0]["body"]
    with pytest.raises(Failed, match="no issue 7"):
        tools.read_issue(7)


def test_pull_request_pushes_the_working_copy_and_leaves_it_as_it_is(home: Path) -> None:
    _fix()
    opened = tools.open_pull_request(REPO, "agent/fix-1", "Ship free from 50.00", "See issue 41.", call("p"))
    assert "agent/fix-1" in _branches(home)
    pushed = git.run(home / "origin.git", "show", "agent/fix-1:src/rates.py")
    assert FIXED in pushed
    assert FIXED not in git.run(home / "origin.git", "show", "main:src/rates.py")
    assert tools.repo_state(REPO)["dirty"] is True
    assert (opened["number"], tools.find_pull_request("agent/fix-1")) == (1, {"found": True})
    assert tools.find_pull_request("agent/other") == {"found": False}


def test_pull_request_under_a_repeated_key_is_the_first_one() -> None:
    _fix()
    first = tools.open_pull_request(REPO, "agent/fix-1", "t", "b", call("p"))
    assert tools.open_pull_request(REPO, "agent/fix-1", "t", "b", call("p")) == first
    with pytest.raises(NotExecuted, match="already"):
        tools.open_pull_request(REPO, "agent/fix-1", "t", "b", call("q"))


def test_pull_request_without_a_change_or_for_another_repository_is_refused(home: Path) -> None:
    with pytest.raises(NotExecuted, match="no change"):
        tools.open_pull_request(REPO, "agent/fix-1", "t", "b", call("p"))
    with pytest.raises(Failed, match="elsewhere"):
        tools.open_pull_request("elsewhere", "agent/fix-1", "t", "b", call("p"))
    assert "agent" not in _branches(home)
    assert tools.find_pull_request("agent/fix-1") == {"found": False}


def test_branch_of_a_call_that_died_before_its_pull_request_is_overwritten(home: Path) -> None:
    _fix()
    git.run(home / "work", "push", "--quiet", "origin", "HEAD:refs/heads/agent/fix-1")
    assert tools.find_pull_request("agent/fix-1") == {"found": False}
    assert tools.open_pull_request(REPO, "agent/fix-1", "t", "b", call("p"))["number"] == 1


def test_closing_a_pull_request_twice_closes_it_once(home: Path) -> None:
    _fix()
    number = tools.open_pull_request(REPO, "agent/fix-1", "t", "b", call("p"))["number"]
    assert tools.close_pull_request(number) == tools.close_pull_request(number)
    assert "agent/fix-1" not in _branches(home)
    with pytest.raises(Failed):
        tools.close_pull_request(99)


def test_host_runs_its_four_programs_and_nothing_else() -> None:
    assert "89%" in tools.run_command(["df"], call("c1"))["output"]
    assert (
        "api@staging: active (degraded)"
        in tools.run_command(["systemctl", "status", "api"], call("c2"))["output"]
    )
    for argv in (
        ["df;rm", "-rf"],
        ["systemctl", "stop", "api"],
        ["df", "-h"],
        [],
        ["systemctl", "status", "moon"],
    ):
        with pytest.raises(NotExecuted):
            tools.run_command(argv, call("c3"))


def test_restart_under_a_repeated_key_restarts_once_within_ten_minutes() -> None:
    first = tools.restart_service("api", "staging", call("r"))
    assert tools.restart_service("api", "staging", call("r", 9)) == first
    assert tools.restart_service("api", "staging", call("r", 10))["restarts"] == 2
    assert tools.service_status("r") == {"restarted": True}
    assert tools.service_status("s") == {"restarted": False}
    assert "active (running)" in tools.run_command(["systemctl", "status", "api"], call("c"))["output"]


def test_restart_in_an_unknown_cluster_or_without_a_key_is_not_executed() -> None:
    with pytest.raises(NotExecuted, match="moon"):
        tools.restart_service("api", "moon", call("r"))
    with pytest.raises(NotExecuted, match="key"):
        tools.restart_service("api", "staging", call(None))
    assert tools.service_status("r") == {"restarted": False}


def test_machine_without_git_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotExecuted, match="`git` is not installed"):
        tools.repo_state(REPO)

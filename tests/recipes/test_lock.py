"""The lock on a run's folder: one training at a time, whatever has become of the last one."""

import contextlib
import json
import multiprocessing
import os
import socket

import pytest

from minitransformer.recipes.folder import locked

HERE = socket.gethostname()


def lock_file(folder, text):
    """A lock file that nobody holds."""
    folder.mkdir()
    (folder / "lock").write_text(text, encoding="utf8")
    return folder / "lock"


def text_of(**changes):
    return json.dumps({"pid": 7, "host": HERE, "started": "2026-11-22 09:30:00", **changes})


def test_lock_says_who_holds_it_and_is_removed_at_the_end(tmp_path):
    with locked(tmp_path):
        lock = json.loads((tmp_path / "lock").read_text("utf8"))
        assert (lock["pid"], lock["host"], len(lock["started"])) == (os.getpid(), HERE, len("2026-11-22 09:30:00"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_lock_is_removed_after_an_error(error, tmp_path):
    with pytest.raises(error), locked(tmp_path):
        raise error
    assert list(tmp_path.iterdir()) == []


def test_folder_that_was_created_stays_only_if_something_was_saved(tmp_path):
    with locked(tmp_path / "runs" / "empty"):
        pass
    assert list(tmp_path.iterdir()) == []
    with locked(tmp_path / "runs" / "full"):
        (tmp_path / "runs" / "full" / "model").touch()
    assert [path.name for path in (tmp_path / "runs" / "full").iterdir()] == ["model"]


def test_second_lock_on_a_folder_is_refused_and_leaves_the_first(tmp_path):
    refused = rf"^{tmp_path} is in use: process {os.getpid()} on {HERE} has trained there since 20"
    with locked(tmp_path):
        for _ in range(2):
            with pytest.raises(ValueError, match=refused), locked(tmp_path):
                pass
        assert (tmp_path / "lock").exists()
        with locked(tmp_path / "other"):
            pass
    with locked(tmp_path):
        pass


STALE = {
    "of a process that is gone": text_of(pid=2**22 + 1),
    "whose number belongs to another process by now": text_of(pid=os.getppid()),
    "whose number is ours by now": text_of(pid=os.getpid()),
    "of a process that was killed before it wrote": "",
    "of nonsense": "nonsense",
    "of a list": "[1]",
}


@pytest.mark.parametrize("file", STALE)
def test_file_that_nobody_holds_is_no_lock(file, tmp_path):
    lock_file(tmp_path / "run", STALE[file])
    with locked(tmp_path / "run"):
        assert json.loads((tmp_path / "run" / "lock").read_text("utf8"))["pid"] == os.getpid()


@pytest.mark.parametrize("kind", ["link", "hard link", "link to nothing", "pipe", "folder"])
def test_lock_that_is_no_file_of_ours_is_refused_and_nothing_elsewhere_is_changed(kind, tmp_path):
    (tmp_path / "precious").write_text("precious")
    path = tmp_path / "run" / "lock"
    path.parent.mkdir()
    make = {
        "link": lambda: path.symlink_to("../precious"),
        "hard link": lambda: path.hardlink_to(tmp_path / "precious"),
        "link to nothing": lambda: path.symlink_to("../nothing"),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }
    make[kind]()
    with pytest.raises(OSError, match=f"^cannot lock the folder {path.parent}: {path} is "), locked(path.parent):
        pass
    assert (tmp_path / "precious").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["precious", "run"]
    assert os.listdir(path.parent) == ["lock"]


def test_file_of_another_computer_is_a_lock_until_it_is_deleted(tmp_path):
    path = lock_file(tmp_path / "run", text_of(host="another-computer"))
    refused = "process 7 on another-computer has trained there since 2026-11-22 09:30:00; if it has ended, delete "
    with pytest.raises(ValueError, match=f"run is in use: {refused}{path}$"), locked(path.parent):
        pass
    assert path.exists()
    path.unlink()
    with locked(path.parent):
        pass


def test_lock_that_its_owner_deletes_while_another_waits_for_it_is_taken_from_the_new_file(tmp_path, monkeypatch):
    """The owner ends between the moments in which the other process opens the file and locks it."""
    from minitransformer.recipes import folder

    lock_file(tmp_path / "run", "")
    plain, calls = folder._lock, []

    def delete_first(file):
        calls.append(file)
        if len(calls) == 1:
            (tmp_path / "run" / "lock").unlink()
        plain(file)

    monkeypatch.setattr(folder, "_lock", delete_first)
    with locked(tmp_path / "run"):
        assert len(calls) == 2
        with pytest.raises(ValueError, match="is in use"), locked(tmp_path / "run"):
            pass


def hold_until_killed(folder, ready):
    with locked(folder):
        ready.set()
        multiprocessing.Event().wait()


def try_to_add_one(folder, rounds):
    """Add 1 to a number in a file `rounds` times, whenever the lock is free."""
    while rounds:
        with contextlib.suppress(ValueError), locked(folder):
            path = folder / "number"
            path.write_text(str(int(path.read_text()) + 1))
            rounds -= 1


def test_lock_of_a_killed_process_is_free(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=hold_until_killed, args=(tmp_path, ready))
    process.start()
    assert ready.wait(60)
    with pytest.raises(ValueError, match=f"is in use: process {process.pid} on"), locked(tmp_path):
        pass
    process.kill()
    process.join()
    assert (tmp_path / "lock").exists()
    with locked(tmp_path):
        pass


@pytest.mark.exhaustive
def test_processes_that_want_the_same_folder_never_have_it_at_the_same_time(tmp_path):
    (tmp_path / "number").write_text("0")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=try_to_add_one, args=(tmp_path, 50)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert (tmp_path / "number").read_text() == "150"

"""Prints the museum's table at the end of `pytest tests/museum`."""


def pytest_terminal_summary(terminalreporter, config):
    """bug -> what caught it, unless the museum ran only as a part of all tests."""
    if not any("museum" in str(argument) for argument in config.invocation_params.args):
        return
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome)]
    rows = [value for report in reports for key, value in report.user_properties if key == "caught"]
    if not rows:
        return
    terminalreporter.section(f"{len(rows)} bugs and what caught them")
    for name, caught_by in rows:
        terminalreporter.write_line(name)
        for alarm in caught_by:
            terminalreporter.write_line(f"    {alarm or 'NOT CAUGHT'}")

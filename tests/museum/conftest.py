"""Prints the museum's table at the end of `pytest tests/museum`."""


def pytest_terminal_summary(terminalreporter, config):
    """bug -> what caught it, unless the museum ran only as a part of all tests."""
    if not any("museum" in str(argument) for argument in config.invocation_params.args):
        return
    reports = terminalreporter.getreports("passed")
    rows = [value for report in reports for key, value in report.user_properties if key == "caught"]
    if rows:
        terminalreporter.section(f"{len(rows)} bugs and what caught them")
    for row in rows:
        terminalreporter.write_line(row)

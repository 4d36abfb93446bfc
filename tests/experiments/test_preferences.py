"""The scripts of docs/preferences.md, as an experiment runs them."""

import pytest

from experiments import preferences


def test_a_page_whose_scripts_have_changed_is_refused():
    with pytest.raises(ValueError, match="must have 'a line that is not there' once"):
        preferences.run(0, {"a line that is not there": ""})

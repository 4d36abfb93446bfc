"""`minitransformer bench --device-report`: the whole check of a GPU in one command."""

import json

from minitransformer.backend import backend_name, use_backend
from minitransformer.bench.device_report import PARTS, make_report
from minitransformer.files import written_whole
from minitransformer.progress import tqdm


def run_device_report(arguments):
    """Run every part on the GPU (or the backend that was asked for), print the table, save the JSON file."""
    if not arguments.backend and backend_name() == "numpy":
        use_backend("cupy")
    path = arguments.plots / "device_report.json"
    with tqdm(total=len(PARTS), disable=None, leave=False, bar_format="{l_bar}{bar}| {postfix}") as bar:

        def progress(part, share):
            bar.n = list(PARTS).index(part) + share
            bar.set_postfix_str(part)

        report = make_report(show=tqdm.write, progress=progress)
    arguments.plots.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as partial:
        partial.write_text(json.dumps(report, indent=1) + "\n", encoding="utf8")
    print(f"\n{'all passed' if report['passed'] else 'NOT ALL PASSED'}; saved {path}")
    if arguments.json:
        print(json.dumps(report))
    return 0 if report["passed"] else 1

"""`minitransformer devices`: what there is to compute on."""

import json

from minitransformer.devices import list_devices

HELP = "list what there is to compute on: the CPU, and NVIDIA GPUs through CuPy"
DESCRIPTION = """\
List the devices that the two backends can use here, or what is missing:

  minitransformer devices                 what is usable
  minitransformer devices --json          the same for programs

Every command computes on one of them:

  minitransformer train reverse --backend numpy     on the CPU, the default
  minitransformer train reverse --backend cupy      on an NVIDIA GPU
  MINITRANSFORMER_BACKEND=cupy minitransformer ...   the same, for all commands

With a GPU, `minitransformer bench --device-report` checks everything on it that is to be true.
"""


def add_arguments(parser):
    """None of its own."""


def run(arguments):
    """Print one paragraph a device."""
    devices = list_devices()
    for device in devices:
        mark = "usable" if device["usable"] else "not usable here"
        print(f"{device['backend']}: {mark}\n  {device['name']}")
        for key, value in device.items():
            if key not in ("backend", "usable", "name"):
                print(f"  {key:<28} {f'{value / 1e9:.0f} GB' if key == 'memory' else value}")
    if arguments.json:
        print(json.dumps(devices))
    return 0

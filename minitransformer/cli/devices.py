"""`minitransformer devices`: list the available devices."""

import argparse
from typing import Any

from minitransformer.system.devices import list_devices
from minitransformer.system.terminal import wrap

DESCRIPTION = """\
List the devices that the two backends can use on this machine, and say what is missing for the others:

  minitransformer devices
  minitransformer devices --json

To choose the device of a command:

  minitransformer train reverse --backend numpy     on the CPU, the default
  minitransformer train reverse --backend cupy      on an NVIDIA GPU
  MINITRANSFORMER_BACKEND=cupy minitransformer ...   on an NVIDIA GPU, for all commands

On a GPU, `minitransformer experiment device` checks the gradients, the agreement with NumPy,
the training and the speed.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This command has no arguments of its own."""


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Print one paragraph per device."""
    devices = list_devices()
    for device in devices:
        mark = "usable" if device["usable"] else "not usable here"
        print(f"{device['backend']}: {mark}")
        print(wrap(device["name"], "  ", "  "))
        for key, value in device.items():
            if key not in ("backend", "usable", "name"):
                print(f"  {key:<28} {f'{value / 1e9:.0f} GB' if key == 'memory' else value}")
    return 0, devices

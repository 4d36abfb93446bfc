"""Progress bars: tqdm's, or none on a bare machine without it (as one that is lent for a measurement may be)."""

try:
    from tqdm import tqdm
except ImportError:

    class tqdm:
        """As much of tqdm as the package uses, without a bar."""

        def __init__(self, iterable=(), total=None, **options):
            self.iterable, self.total, self.n = iterable, total, 0

        def __iter__(self):
            return iter(self.iterable)

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            pass

        def update(self, n=1):
            """One step further."""
            self.n += n

        def set_postfix_str(self, text):
            """What a bar would show."""

        def refresh(self):
            """Draw the bar."""

        @staticmethod
        def write(text):
            """A line above the bar."""
            print(text, flush=True)


__all__ = ["tqdm"]

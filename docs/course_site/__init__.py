"""What the site needs beyond Sphinx and MyST-NB. Each file does one thing; extension.py connects them."""

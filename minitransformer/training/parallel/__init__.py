"""Training on several threads (threads.py), and in several processes (processes.py) over a communicator."""

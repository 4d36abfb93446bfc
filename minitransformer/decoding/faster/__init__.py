"""The same tokens sooner: key-value caches, folded weights, speculation."""

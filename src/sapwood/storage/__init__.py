"""Files: the container of models, writing that is whole or not at all, and locks."""

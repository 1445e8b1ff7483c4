"""Scripts of the gallery are run by a test of their own, and by the site generator."""

collect_ignore_glob = ["gallery/*", "examples/*", "_build/*"]

"""Looking inside a tree: text, frame, picture, explanation."""

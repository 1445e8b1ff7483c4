"""Several trees behind one encoder of rows: the forest and the adaptive tree."""

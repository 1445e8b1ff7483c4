// Guides first: a term of the field should lead to the page that explains it, not to a list of names.
var Scorer = {
  score: (result) => {
    const [page, , , , score] = result;
    const boosts = [
      ["howto/", 30], ["tutorials/", 25], ["explanation/", 25], ["start/quickstart", 20],
      ["start/glossary", -60], ["reference/api", -20], ["reference/commands/", -20],
      ["development/", -30],
    ];
    const found = boosts.find(([start]) => page.startsWith(start));
    return found ? score + found[1] : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

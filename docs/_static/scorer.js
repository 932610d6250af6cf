/* The order of search results: pages that answer a question come before names, and the records of the design last. */
var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    if (/^(design|changelog|genindex)/.test(page)) return score - 30;
    if (/troubleshooting|coming-from/.test(page)) return score - 8;  // they name everything
    if (/^(tutorial|howto|install|concepts)/.test(page)) return score + 8;
    return score;
  },
  // What follows is Sphinx's default.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

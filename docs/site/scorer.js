// Ranks what a search finds: pages for users before the reference and the course, and of these the pages whose titles
// begin as the words that are searched for.
const GUIDES = /^[\w-]+$/; // pages of docs/ itself, not of its folders
const SEARCHED = (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().trim();
var Scorer = {
  score: (result) => {
    const [docname, title, anchor, description, score] = result;
    const begins = SEARCHED.length > 3 && title.toLowerCase().startsWith(SEARCHED.slice(0, 7));
    return score + (GUIDES.test(docname) && docname !== "index" ? 12 + (begins && !anchor ? 3 : 0) : 0);
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

// Search a built site by Sphinx's own script: node site_search.js FOLDER TERM... prints the pages, best first.
const fs = require("fs");
const vm = require("vm");

const [root, ...terms] = process.argv.slice(2);
const nothing = () => null;
const element = () => ({
  setAttribute: nothing, appendChild: nothing, append: nothing, querySelector: nothing, style: {},
  classList: { add: nothing, remove: nothing }, dataset: { content_root: "./" },
});
const document = {
  readyState: "loading", addEventListener: nothing, getElementById: nothing, createElement: element,
  querySelector: nothing, querySelectorAll: () => [], head: element(), body: element(),
  documentElement: { dataset: { content_root: "./" }, lang: "en" },
};
const context = {
  console, document, URLSearchParams, Set, Map, setTimeout, addEventListener: nothing,
  location: { search: "" }, localStorage: { setItem: nothing }, SPHINX_HIGHLIGHT_ENABLED: false,
  DOCUMENTATION_OPTIONS: { FILE_SUFFIX: ".html", LINK_SUFFIX: ".html", BUILDER: "html" },
};
context.window = context.globalThis = context;
vm.createContext(context);
const load = (name) => vm.runInContext(fs.readFileSync(`${root}/${name}`, "utf8"), context);
for (const name of ["doctools", "base-stemmer", "english-stemmer", "language_data", "searchtools"]) {
  load(`_static/${name}.js`);
}
vm.runInContext("this.Search = Search; this._ = (text) => text; Search.status = {};", context);
load("searchindex.js");
for (const term of terms) {
  context.term = term;
  const found = vm.runInContext("Search._performSearch(...Search._parseQuery(term))", context);
  console.log(JSON.stringify([...found].reverse().map((each) => each[0])));
}

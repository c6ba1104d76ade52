// Shows results while the query is typed. Without this script the form leads to the page of results.

const DELAY_MS = 150;

const form = document.querySelector('form[role="search"]');
const input = form.querySelector("input");
const main = document.querySelector("main");

let results = document.getElementById("results");
let timer;
let latest = 0;

input.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(showResults, DELAY_MS);
});

async function showResults() {
  const request = ++latest;
  const query = input.value.trim();
  if (query === "") return results?.replaceChildren();
  const response = await fetch(`${form.action}?${new URLSearchParams({ q: query })}`);
  if (!response.ok || request !== latest) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (results === null) {
    results = document.createElement("div");
    results.id = "results";
    main.prepend(results);
  }
  results.setAttribute("role", "status");
  results.replaceChildren(...page.getElementById("results").childNodes);
}

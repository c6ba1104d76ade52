import { createGraphiQLFetcher } from "@graphiql/toolkit";
import { GraphiQL } from "graphiql";
import { createElement } from "react";
import { createRoot } from "react-dom/client";
import "graphiql/style.css";
import "./page.css";

const { endpoint, query } = JSON.parse(document.getElementById("settings").textContent);
const subscriptionUrl = new URL(endpoint, location.href);
subscriptionUrl.protocol = location.protocol === "https:" ? "wss:" : "ws:";

let csrfToken = null;

/** Users signed in on this server run operations by their session cookie, which needs the session's CSRF token. */
async function fetchWithCsrfToken(url, options) {
  const send = () => {
    const headers = new Headers(options.headers);
    if (csrfToken) headers.set("X-CSRF-Token", csrfToken);
    return fetch(url, { ...options, headers });
  };
  const response = await send();
  if (response.status !== 403) return response;
  const tokenResponse = await fetch("/csrf-token");
  if (!tokenResponse.ok) return response;
  csrfToken = (await tokenResponse.json()).csrfToken;
  return send();
}

const fetcher = createGraphiQLFetcher({
  url: endpoint,
  subscriptionUrl: subscriptionUrl.href,
  fetch: fetchWithCsrfToken,
});

const container = document.getElementById("graphiql");
new MutationObserver(makeAccessible).observe(container, { childList: true, subtree: true });
createRoot(container).render(
  createElement(
    GraphiQL,
    { fetcher, defaultQuery: query, shouldPersistHeaders: false, defaultEditorToolsVisibility: false },
    createElement(GraphiQL.Logo, null, createElement("h1", { className: "graphiql-title" }, "GraphiQL")),
  ),
);

/** Names the editors, lets the keyboard scroll them, and makes the list of tabs, which contain buttons, an ordinary list. */
function makeAccessible() {
  for (const input of container.querySelectorAll(".CodeMirror textarea:not([aria-label])")) {
    const label = input.closest("[aria-label]")?.getAttribute("aria-label") ?? "Editor";
    input.setAttribute("aria-label", label);
  }
  for (const region of container.querySelectorAll('.CodeMirror-scroll[tabindex="-1"]')) {
    region.setAttribute("tabindex", "0");
  }
  for (const element of container.querySelectorAll(
    ".graphiql-tabs[role], .graphiql-tab[role], #graphiql-session[role]",
  )) {
    element.removeAttribute("role");
    element.removeAttribute("aria-selected");
    element.removeAttribute("aria-labelledby");
  }
}

